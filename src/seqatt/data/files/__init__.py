"""Files too large for memory: row groups, schema sample, shards, shuffling and batches."""
