"""The build's part: kernels as they stand in their rooms, gathered into one Cython extension.

`gather` finds the kernels, `inference` the types of what they use, `cython_text` writes them down.
"""
