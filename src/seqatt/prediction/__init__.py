"""Deployable models: networks retrained on the selected features, with preprocessing, calibration and export."""
