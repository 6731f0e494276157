"""False discovery rates by knockoffs: copies of the features that compete with them."""
