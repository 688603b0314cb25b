"""Random walks: visit counts of walks that return to their root, and plain walks.

A rooted walk is a chain of excursions from its root. All excursions of a few roots advance together, one step
at a time: the steps of one round wait for memory at once, not one after the other.

``plan`` is a plain tuple. It lists the steps that go on, not those that return; then, per excursion under
way, its next step, the node it stands on, and the bits for it::

    bits    uint32   what chooses the neighbour
    fresh   uint8    1 where a step leaves the root, 0 where it follows the one before it; 1 after the last
    visits  nodes    where each step arrives
    at, nodes, draws
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinegraph.kernels.adjacency import Adjacency
from spinegraph.kernels.compiled import compiled
from spinegraph.kernels.counter import count_visits, new_counter
from spinegraph.kernels.rng import GAMMA, PLAIN_WALKS, mix, stream_starts
from spinegraph.kernels.rows import row_of
from spinegraph.kernels.steps import alias_rows, take_steps
from spinegraph.kernels.threads import run_blocks

# Steps planned together: enough to hide the memory's latency, few enough to stay in the nearest cache.
_TOGETHER = 1600
_LOW = np.uint64(0xFFFFFFFF)
_S32 = np.uint64(32)


@compiled
def walk_roots(adjacency, tables, roots, starts, walks, walk_length, threshold, top, tied_nodes):
    """Count visits of rooted walks and write the k most visited of each root into its row of ``top``.

    ``starts`` (r,) are the roots' random streams; a walk goes on when 32 random bits are below ``threshold``.
    ``top`` and ``tied_nodes`` are as in ``keep_top``.
    """
    most = walks * (walk_length - 1)
    group = max(1, _TOGETHER // max(most, 1))
    size = group * most + 1
    plan = (
        np.empty(size, dtype=np.uint32),
        np.empty(size, dtype=np.uint8),
        np.empty(size, dtype=adjacency[1].dtype),
        np.empty(size, dtype=np.int64),
        np.empty(size, dtype=adjacency[1].dtype),
        np.empty(size, dtype=np.uint32),
    )
    fresh, visits = plan[1], plan[2]
    ends = np.empty(group, dtype=np.int64)
    counter = new_counter(walks * walk_length, adjacency[1])
    for first in range(0, roots.size, group):
        last = min(first + group, roots.size)
        under_way = 0
        steps = 0
        for row in range(first, last):
            root = roots[row]
            start, stop, _ = row_of(adjacency[0], adjacency[3], adjacency[4], root)
            # A root without neighbours never leaves; no other node without neighbours can be reached.
            if stop > start:
                steps, under_way = _draw(
                    plan, root, starts[row], walks, walk_length, threshold, steps, under_way
                )
            ends[row - first] = steps
        fresh[steps] = 1
        _advance(adjacency, tables, plan, under_way)
        steps = 0
        for row in range(first, last):
            seen = visits[steps : ends[row - first]]
            count_visits(counter, roots[row], walks * walk_length, seen, row, top, tied_nodes)
            steps = ends[row - first]


@compiled
def _draw(plan, root, stream, walks, walk_length, threshold, steps, under_way):
    """Draw where one root's walks go on and where they return; (steps, under_way) with this root's added."""
    bits, fresh, _, at, nodes, _ = plan
    for _ in range(walks):
        leaves = np.int64(1)
        for _ in range(walk_length - 1):
            stream += GAMMA
            draw = mix(stream)
            goes = np.int64((draw >> _S32) < threshold)
            bits[steps] = draw & _LOW
            fresh[steps] = leaves
            at[under_way] = steps
            nodes[under_way] = root
            under_way += goes & leaves
            steps += goes
            leaves = 1 - goes
    return steps, under_way


@compiled
def _advance(adjacency, tables, plan, under_way):
    """Take every planned step: a round of first steps, a round of second ones, until no excursion is left."""
    bits, fresh, visits, at, nodes, draws = plan
    while under_way > 0:
        for i in range(under_way):
            draws[i] = bits[at[i]]
        take_steps(adjacency, tables, nodes, draws, under_way)
        ahead = np.int64(0)
        for i in range(under_way):
            step = at[i]
            visits[step] = nodes[i]
            at[ahead] = step + 1
            nodes[ahead] = nodes[i]
            ahead += 1 - np.int64(fresh[step + 1])
        under_way = ahead


def plain_walks(
    adjacency: Adjacency,
    roots: NDArray[np.int64],
    walks: int,
    walk_length: int,
    seed: int,
    stage: int = PLAIN_WALKS,
    keys: NDArray[np.uint64] | None = None,
    threads: int | None = None,
) -> NDArray[Any]:
    """Walk without return, each step to a neighbour in proportion to edge weight.

    Parameters
    ----------
    adjacency : Adjacency
    roots : int64 array (r,)
    walks, walk_length : int
        Walks per root, and their positions, the root included.
    seed, stage : int
        A draw depends on these, on the root's key and on nothing else.
    keys : uint64 array (r,), optional
        By default the roots themselves.
    threads : int, optional
        All cores by default.

    Returns
    -------
    int32 array (r * walks, walk_length)
        The walks of one root after another; a root without neighbours is followed by -1. (int64 when the
        adjacency's indices are.)

    Examples
    --------
    >>> pair = Adjacency.of(np.array([0, 1, 2]), np.array([1, 0], dtype=np.int32))
    >>> plain_walks(pair, np.array([1]), walks=2, walk_length=4, seed=0).tolist()
    [[1, 0, 1, 0], [1, 0, 1, 0]]
    """
    tables, threads = alias_rows(adjacency, roots.size * walks * walk_length, threads)
    streams = stream_starts(seed, stage, roots.astype(np.uint64) if keys is None else keys)
    out = np.empty((roots.size * walks, walk_length), dtype=adjacency.indices.dtype)

    def task(start: int, stop: int) -> None:
        lines = out[start * walks : stop * walks]
        walk_plainly(tuple(adjacency), tables, roots[start:stop], streams[start:stop], walks, lines)

    run_blocks(task, roots.size, block=1024, threads=threads)
    return out


@compiled
def walk_plainly(adjacency, tables, roots, starts, walks, out):
    """Write walks without return into ``out`` (r * walks, length); -1 after a root without neighbours."""
    length = out.shape[1]
    group = max(1, _TOGETHER // walks)
    nodes = np.empty(group * walks, dtype=out.dtype)
    streams = np.empty(group * walks, dtype=np.uint64)
    lines = np.empty(group * walks, dtype=np.int64)
    bits = np.empty(group * walks, dtype=np.uint32)
    for first in range(0, roots.size, group):
        count = 0
        for row in range(first, min(first + group, roots.size)):
            start, stop, _ = row_of(adjacency[0], adjacency[3], adjacency[4], roots[row])
            for walk in range(walks):
                line = row * walks + walk
                out[line, 0] = roots[row]
                if start == stop:
                    out[line, 1:] = -1
                    continue
                nodes[count] = roots[row]
                streams[count] = starts[row] + GAMMA * np.uint64(walk * length)
                lines[count] = line
                count += 1
        for position in range(1, length):
            for i in range(count):
                streams[i] += GAMMA
                bits[i] = mix(streams[i]) >> _S32
            take_steps(adjacency, tables, nodes, bits, count)
            for i in range(count):
                out[lines[i], position] = nodes[i]
