"""Readers, one per kind of file; :mod:`spinegraph.graph.read` is their door."""
