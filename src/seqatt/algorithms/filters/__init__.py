"""Methods that train no network: filters and trees."""
