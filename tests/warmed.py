"""Imported by the process that commands and services of the tests are forked from: loads the kernels once."""

import numpy as np

from spinegraph import SPINE, Graph

_RING = [(node, (node + 1) % 9) for node in range(9)] + [(0, 4)]
_GRAPH = Graph.from_edges(_RING, features=np.eye(9, 3, dtype=np.float32) + 1)
SPINE(dim=8, threads=1).fit(_GRAPH).transform(_GRAPH)  # one thread: a fork copies no other
