"""Which features may be selected, and what they cost."""
