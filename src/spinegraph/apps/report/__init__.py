"""The report: what a model found, as one page that opens anywhere."""
