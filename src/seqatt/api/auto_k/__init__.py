"""The number of features that k="auto" selects."""
