"""Imported by the process that commands and services of the tests are forked from: loads the kernels once."""

import gc

import numpy as np

from spinegraph import SPINE, Graph

_RING = [(node, (node + 1) % 9) for node in range(9)] + [(0, 4)]
for _features in (None, np.eye(9, 3, dtype=np.float32) + 1):
    _graph = Graph.from_edges(_RING, features=_features)
    _model = SPINE(dim=8, threads=1).fit(_graph)  # one thread: a fork copies no other
    _model.transform(_graph, [0])
    repr(_model.similar(0, n=1))
    _model.roles()
gc.freeze()  # so that a fork does not look through it, and copies nothing
