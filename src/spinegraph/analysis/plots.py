"""Figures, as ``sg.plot``: a map of vectors, twins side by side, profiles, the loss, and two distances.

Each takes a fitted SPINE, or the part that it needs, and returns a Plotly figure.

>>> import spinegraph as sg
>>> sg.plot.twins(sg.made.karate(), 0, 33).layout.height
320
"""

from spinegraph.analysis.plot_fit import distances, loss
from spinegraph.analysis.plot_map import map
from spinegraph.analysis.plot_nodes import profile, twins

__all__ = ["distances", "loss", "map", "profile", "twins"]
