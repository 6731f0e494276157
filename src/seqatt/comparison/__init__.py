"""Comparison of feature selection methods on the same rows: the runs, their statistics and their display."""
