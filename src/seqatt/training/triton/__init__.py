"""The training step as Triton kernels."""
