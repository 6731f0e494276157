"""The facts of a selection or a comparison: all that a report shows, as plain lists, numbers and texts."""
