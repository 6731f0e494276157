"""``repeats``: selections on halves of the rows, pooled into one answer that says how sure it is."""
