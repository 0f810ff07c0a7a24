"""The exercises, one module (or folder) for each notebook."""
