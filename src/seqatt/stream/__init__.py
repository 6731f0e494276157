"""Selecting from files that need not fit in memory: read once, a batch at a time."""
