"""LEIR as CUDA: kernels right by construction, their text, and cubins without a GPU."""
