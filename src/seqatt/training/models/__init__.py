"""The models that are trained, their losses and their optimizer."""
