"""The service: vectors, look-alikes and reasons for nodes that arrive now."""
