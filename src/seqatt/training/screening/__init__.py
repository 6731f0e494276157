"""Statistics computed before training: transformed columns, univariate tests and score penalties."""
