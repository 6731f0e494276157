"""Training and counting over files, a batch at a time."""
