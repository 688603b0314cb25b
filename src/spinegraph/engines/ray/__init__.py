"""The stages of a fit, and vectors in shards, as tasks on a Ray cluster. Ray is imported nowhere else."""
