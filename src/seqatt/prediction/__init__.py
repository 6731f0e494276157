"""A model to take home: networks retrained on the selected features, with their preprocessing, and files of it."""
