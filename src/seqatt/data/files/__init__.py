"""Files, read a batch at a time."""
