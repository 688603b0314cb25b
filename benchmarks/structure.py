"""Rooted PageRank and DTW: walks beside a chase, push by tolerance, overlap with the exact top k, growth.

``python -m benchmarks.structure [walks] [push] [overlap] [growth] [dtw]`` runs those named, or all; prints
JSON. Pinned opponents are the chase through random neighbours (one walker per thread, int32 indices, a 64-bit
LCG, multiply-shift instead of modulo, no other work) and the plain DTW (float64, reuses its two rows).
"""

import json
import os
import sys
import time
from pathlib import Path

import numba
import numpy as np
from scipy.sparse import csr_array

from spinegraph import Graph, made
from spinegraph.kernels.runtime import run_blocks
from spinegraph.structure.pagerank import rooted_pagerank
from spinegraph.structure.similarity import as_rows, candidates, comparison, similar_nodes

WALK_POSITIONS = 10 * 40
CHASE_STEPS = 20_000_000
PAIRS = 400_000
_MULTIPLIER = np.uint64(6364136223846793005)
_INCREMENT = np.uint64(1442695040888963407)


def walks(graph, threads=2, repeats=5):
    """Time the whole stage (m=10, l=40, k=20) and the chase, the best of alternating runs."""
    ours, bare = [], []
    for _ in range(repeats):
        bare.append(_seconds(chase, graph, CHASE_STEPS, threads) / CHASE_STEPS)
        ours.append(_seconds(rooted_pagerank, graph, k=20, method="walks", threads=threads) / len(graph))
    return {
        "threads": threads,
        "chase_steps_per_s": round(1 / min(bare)),
        "walk_steps_per_s": round(WALK_POSITIONS / min(ours)),
        "walk_roots_per_s": round(1 / min(ours)),
        "times_chase": round(WALK_POSITIONS * min(bare) / min(ours), 2),
    }


def push(graph, threads=2, settings=((0.5, 20, 0.2), (0.5, 20, 0.1), (0.5, 20, 0.03), (0.85, 50, 0.3))):
    """Time push at several settings, beside the walks, on a sample of roots; with peak memory."""
    rng = np.random.default_rng(0)
    rows = [_row(graph, threads, rng.choice(len(graph), 20_000, replace=False), method="walks")]
    for continuation, k, tolerance in settings:
        roots = rng.choice(
            len(graph), 4000 if tolerance >= 0.1 and continuation == 0.5 else 400, replace=False
        )
        rows.append(_row(graph, threads, roots, continuation=continuation, k=k, tolerance=tolerance))
    return rows


def _row(graph, threads, roots, **settings):
    taken, peak = _peak(rooted_pagerank, graph, roots=roots, threads=threads, **settings)
    return {
        **settings,
        "roots_per_s": round(len(roots) / taken),
        "peak_mb": peak,
        "graph_mb": _input_mb(graph),
    }


def overlap(folder, threads=2, settings=((0.5, 20), (0.8, 50), (0.9, 200)), tolerances=(1e-2, 1e-3, 1e-4)):
    """Compare push with the exact k largest, where tied nodes count as right; and time it."""
    table = []
    for name in ("cora", "citeseer", "pubmed"):
        graph = _load(folder, name)
        roots = np.random.default_rng(0).choice(len(graph), 400, replace=False)
        for continuation, k in settings:
            exact = _exact(graph, roots, continuation)
            last = -np.sort(-exact, axis=1)[:, k - 1, None]
            possible = np.minimum((exact > 0).sum(axis=1), k)
            for tolerance in tolerances:
                given = {"k": k, "continuation": continuation, "tolerance": tolerance, "threads": threads}
                found = rooted_pagerank(graph, roots=roots, **given)
                taken = _seconds(rooted_pagerank, graph, roots=roots, **given)
                held = np.where(found.nodes >= 0, exact[np.arange(len(roots))[:, None], found.nodes], 0)
                right = ((held > 0) & (held >= last - 1e-9)).sum(axis=1) / possible
                table.append(
                    {
                        "network": name,
                        "continuation": continuation,
                        "k": k,
                        "tolerance": tolerance,
                        "overlap": round(float(right.mean()), 4),
                        "rows_all_right": round(float((right == 1).mean()), 3),
                        "roots_per_s": round(len(roots) / taken),
                    }
                )
    return table


def growth(threads=2, sizes=(10_000, 100_000, 1_000_000, 3_000_000)):
    """Time walks, push and the chase on growing graphs with random ids; with peak memory of the walks."""
    rows = []
    for size in sizes:
        graph = made.random_graph(size, edges_per_node=10)
        bare = min(_seconds(chase, graph, 4_000_000, threads) for _ in range(3)) / 4_000_000
        taken, peak = _peak(rooted_pagerank, graph, k=20, method="walks", threads=threads)
        roots = np.random.default_rng(0).choice(size, 2000, replace=False)
        pushed = _seconds(rooted_pagerank, graph, tolerance=0.1, roots=roots, threads=threads)
        ten = _seconds(rooted_pagerank, graph, tolerance=0.1, roots=roots[:10], threads=threads)
        output = size * (20 * 8 + 16)
        rows.append(
            {
                "nodes": size,
                "chase_ns_per_step": round(bare * 1e9, 2),
                "walks_us_per_root": round(taken / size * 1e6, 2),
                "push_us_per_root": round(pushed / len(roots) * 1e6, 1),
                "push_ten_roots_ms": round(ten * 1e3, 2),
                "input_mb": _input_mb(graph),
                "output_mb": round(output / 2**20, 1),
                "peak_mb": peak,
            }
        )
    first = rows[0]
    for row in rows:
        slower = row["chase_ns_per_step"] / first["chase_ns_per_step"]
        row["walks_growth_over_chase_growth"] = round(
            row["walks_us_per_root"] / first["walks_us_per_root"] / slower, 3
        )
        row["push_growth_over_chase_growth"] = round(
            row["push_us_per_root"] / first["push_us_per_root"] / slower, 3
        )
    return rows


def pair_distances(weights, pairs, threads):
    """Compare profiles (n, k) of pairs (m, 2) in blocks, as similar_nodes does."""
    compare = comparison("dtw", as_rows(weights, "weights"))
    left, right = np.ascontiguousarray(pairs.T, np.int64)
    some = run_blocks(lambda a, b: compare(left[a:b], right[a:b]), len(left), block=16_384, threads=threads)
    return np.concatenate(some)


def dtw(graph, threads=2, repeats=5):
    """Time DTW of candidate pairs at k = 20 beside the plain version, and compare their results."""
    profile = rooted_pagerank(graph, k=20, method="walks", threads=threads)
    chosen = candidates(graph.degrees, profile.weights)
    left, slot = np.nonzero(chosen >= 0)
    pairs = np.stack([left, chosen[left, slot]], axis=1)[:PAIRS]
    weights, exact = profile.weights, profile.weights.astype(np.float64)
    ours, plain = [], []
    for _ in range(repeats):
        plain.append(_seconds(plain_dtw, exact, pairs, threads))
        ours.append(_seconds(pair_distances, weights, pairs, threads=threads))
    stage = min(_seconds(similar_nodes, profile, chosen, threads=threads) for _ in range(2))
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


def _exact(graph, roots, continuation):
    """Return rows of (1-b)(I-bP)^-1 by its power series, (r, n)."""
    n, degrees = len(graph), graph.degrees
    incoming = csr_array((np.ones(len(graph.indices)), graph.indices, graph.indptr), shape=(n, n))
    term = np.zeros((n, len(roots)))
    term[roots, np.arange(len(roots))] = 1 - continuation
    total = term.copy()
    while term.max() > 1e-13:
        stays = (degrees == 0)[:, None] * term
        term = continuation * (incoming @ (term / np.maximum(degrees, 1)[:, None]) + stays)
        total += term
    return total.T


def _seconds(call, *arguments, **settings):
    started = time.perf_counter()
    call(*arguments, **settings)
    return time.perf_counter() - started


def _peak(call, *arguments, **settings):
    """Return seconds, and by how many MB the process's memory rose in the meantime (None off Linux)."""
    status, reset = Path("/proc/self/status"), Path("/proc/self/clear_refs")
    if not reset.exists():
        return _seconds(call, *arguments, **settings), None
    reset.write_text("5")
    before = _kilobytes(status, "VmRSS")
    taken = _seconds(call, *arguments, **settings)
    return taken, round((_kilobytes(status, "VmHWM") - before) / 1024, 1)


def _kilobytes(status, field):
    return next(int(line.split()[1]) for line in status.read_text().splitlines() if line.startswith(field))


def _input_mb(graph):
    return round((graph.indptr.nbytes + graph.indices.nbytes) / 2**20, 1)


def _load(folder, name):
    path = folder / f"{name}.npz"
    if not path.exists():
        sys.exit(f"{path} is not there: set SPINEGRAPH_DATA to the folder of the real networks")
    with np.load(path, allow_pickle=False) as data:
        return Graph.from_edges(data["edges"], num_nodes=int(data["num_nodes"]))


@numba.njit(cache=True, nogil=True)
def _chase(indptr, indices, start, steps, seed):
    node = np.uint32(start)
    state = np.uint64(seed)
    for _ in range(steps):
        state = state * _MULTIPLIER + _INCREMENT
        first = np.uint64(indptr[node])
        degree = np.uint64(indptr[node + np.uint32(1)]) - first
        node = np.uint32(indices[first + (((state >> np.uint64(32)) * degree) >> np.uint64(32))])
    return node


def chase(graph, steps, threads):
    """Take ``steps`` steps in all, in walks of 100,000 from nodes that have neighbours."""
    starts = np.flatnonzero(graph.degrees)
    rng = np.random.default_rng(0)
    blocks = max(steps // 100_000, 1)
    chosen = rng.choice(starts, blocks)

    def task(start, stop):
        for block in range(start, stop):
            _chase(graph.indptr, graph.indices, chosen[block], 100_000, block)

    run_blocks(task, blocks, block=1, threads=threads)
    return blocks * 100_000


@numba.njit(cache=True, nogil=True)
def _plain(rows, pairs, distances):
    k = rows.shape[1]
    previous, current = np.empty(k + 1), np.empty(k + 1)
    for pair in range(len(pairs)):
        a, b = rows[pairs[pair, 0]], rows[pairs[pair, 1]]
        previous[:] = np.inf
        previous[0] = 0.0
        for i in range(k):
            current[0] = np.inf
            x = a[i] + 1e-3
            for j in range(k):
                y = b[j] + 1e-3
                cost = max(x, y) / min(x, y) - 1.0
                current[j + 1] = cost + min(previous[j], previous[j + 1], current[j])
            previous, current = current, previous
        distances[pair] = previous[k]


def plain_dtw(rows, pairs, threads):
    """DTW distances float64 (m,) of ``pairs`` (m, 2) of float64 ``rows`` (n, k)."""
    distances = np.empty(len(pairs))
    run_blocks(
        lambda start, stop: _plain(rows, pairs[start:stop], distances[start:stop]),
        len(pairs),
        block=16_384,
        threads=threads,
    )
    return distances


def main():
    chosen = sys.argv[1:] or ["walks", "push", "overlap", "growth", "dtw"]
    folder = Path(os.environ.get("SPINEGRAPH_DATA") or "../shared/data")
    warm = made.karate()
    for method in ("walks", "push"):
        rooted_pagerank(warm, method=method)
    chase(warm, 1000, 1)
    results = {}
    if {"walks", "push", "dtw"} & set(chosen):
        graph = _load(folder, "ego_twitter")
        results |= {"walks": walks(graph)} if "walks" in chosen else {}
        results |= {"push": push(graph)} if "push" in chosen else {}
        results |= {"dtw": dtw(graph)} if "dtw" in chosen else {}
    results |= {"overlap": overlap(folder)} if "overlap" in chosen else {}
    results |= {"growth": growth()} if "growth" in chosen else {}
    print(json.dumps(results, indent=2))


if __name__ == "__main__":
    main()
