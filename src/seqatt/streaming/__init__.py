"""Selection from files, one batch at a time: training, and sums over rows."""
