"""The paper's tables, run again with seqatt's public names. ``make paper`` runs them all."""
