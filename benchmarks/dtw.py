"""DTW of candidate pairs at k = 20 on ego_twitter, beside the plain version, in one run."""

import json
import os
import sys
import time
from pathlib import Path

import numpy as np
from benchmarks.plain_dtw import plain_dtw

from spinegraph import Graph
from spinegraph.structure.pagerank import rooted_pagerank
from spinegraph.structure.similarity import candidates, pair_distances, similar_nodes

PAIRS = 400_000


def measure(graph, threads=2, repeats=5):
    """Pairs per second of both, the best of alternating runs, and the largest relative difference."""
    profile = rooted_pagerank(graph, k=20, method="walks", threads=threads)
    chosen = candidates(graph.degrees, profile.weights)
    left, slot = np.nonzero(chosen >= 0)
    pairs = np.stack([left, chosen[left, slot]], axis=1)[:PAIRS]
    weights, exact = profile.weights, profile.weights.astype(np.float64)
    ours, plain = [], []
    for _ in range(repeats):
        plain.append(_seconds(lambda: plain_dtw(exact, pairs, threads)))
        ours.append(_seconds(lambda: pair_distances(weights, pairs, threads=threads)))
    stage = min(_seconds(lambda: similar_nodes(profile, chosen, threads=threads)) for _ in range(2))
    slow, fast = plain_dtw(exact, pairs, threads), pair_distances(weights, pairs, threads=threads)
    return {
        "pairs": len(pairs),
        "threads": threads,
        "plain_pairs_per_s": round(len(pairs) / min(plain)),
        "pairs_per_s": round(len(pairs) / min(ours)),
        "times_plain": round(min(plain) / min(ours), 2),
        "largest_relative_error": float(np.max(np.abs(fast - slow) / np.maximum(slow, 1e-12))),
        "similar_nodes_s": round(stage, 3),
        "similar_nodes_pairs": int((chosen >= 0).sum()),
    }


def _seconds(call):
    started = time.perf_counter()
    call()
    return time.perf_counter() - started


def main():
    path = Path(os.environ.get("SPINEGRAPH_DATA", "../shared/data")) / "ego_twitter.npz"
    if not path.exists():
        sys.exit(f"{path} is not there: set SPINEGRAPH_DATA to the folder of the real networks")
    with np.load(path, allow_pickle=False) as data:
        graph = Graph.from_edges(data["edges"], num_nodes=int(data["num_nodes"]))
    print(json.dumps(measure(graph), indent=2))


if __name__ == "__main__":
    main()
