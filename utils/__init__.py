"""The finished version of what the notebooks build: read it after them."""
