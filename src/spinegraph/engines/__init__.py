"""Who runs the stages of a fit, and of an embedding in shards."""
