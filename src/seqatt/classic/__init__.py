"""Methods that train no network."""
