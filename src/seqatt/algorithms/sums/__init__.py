"""Methods that select from sums over the rows, accumulated in one pass."""
