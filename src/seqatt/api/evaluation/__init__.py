"""Evaluation of selected features: networks trained on them alone, measured on test rows."""
