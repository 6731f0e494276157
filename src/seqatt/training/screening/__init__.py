"""Statistics computed before training."""
