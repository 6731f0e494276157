"""Encodes the columns of files: numbers, categories and the target."""
