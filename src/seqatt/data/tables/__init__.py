"""Tables in memory: containers, encoding, target and groups of columns."""
