"""The exercises, one module for each notebook."""
