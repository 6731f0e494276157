"""Methods side by side on the same rows: running them, and what can be said of what they found."""
