"""Other libraries' graphs to and from :class:`spinegraph.Graph`; users meet these as its methods."""
