"""The paper's tables and more, run with seqatt's public names. ``make paper`` runs all of them."""
