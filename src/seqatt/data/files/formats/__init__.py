"""File formats that are read in batches: one module per format, listed in ``registry.FORMATS``."""
