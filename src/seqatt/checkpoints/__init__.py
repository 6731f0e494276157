"""Checkpoints: write the state of a run to disk and resume it."""
