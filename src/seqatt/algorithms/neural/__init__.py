"""Sequential Attention, and methods with a training step of their own."""
