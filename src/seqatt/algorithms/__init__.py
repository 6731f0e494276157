"""The selection methods, one file each."""
