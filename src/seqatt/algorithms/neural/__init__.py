"""Methods that train a neural network."""
