"""What networks are trained for: one file per kind of target, and a row in ``table.py``."""
