"""Post-selection checks: feature importance on held-out rows, and a comparison with random features."""
