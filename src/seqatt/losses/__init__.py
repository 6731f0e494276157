"""Losses: one module per kind of target, registered in ``table.py``."""
