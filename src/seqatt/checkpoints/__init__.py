"""Writing a run to disk and resuming it."""
