"""The training step as Triton kernels, for a GPU."""
