"""File formats that are read in batches: one module per format, listed in ``found_files.FORMATS``."""
