"""The models that the loop trains."""
