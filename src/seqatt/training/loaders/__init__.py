"""Loaders: batches of tables and of files for training."""
