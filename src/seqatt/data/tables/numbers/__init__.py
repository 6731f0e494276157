"""Numeric columns: their moments, and their extreme values."""
