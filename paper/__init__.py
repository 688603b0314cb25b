"""The paper's experiments: every table and figure, beside its baselines and controls."""
