"""Training with several processes (ranks)."""
