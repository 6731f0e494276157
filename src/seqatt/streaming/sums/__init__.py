"""Methods that need only sums over the rows."""
