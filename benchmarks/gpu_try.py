# ruff: noqa: B023, SIM115
"""Tries of products, push and copies on the device, to choose from; not part of the results."""

import sys
from concurrent.futures import ThreadPoolExecutor
from time import perf_counter

import numpy as np
import torch

from spinegraph import Config, made
from spinegraph.engines.gpu.engine import GpuEngine


def timed(name, run, repeats=3):
    run()
    torch.cuda.synchronize()
    start = perf_counter()
    for _ in range(repeats):
        run()
    torch.cuda.synchronize()
    print(f"{(perf_counter() - start) / repeats * 1e3:10.2f} ms  {name}", flush=True)


def main(size):
    engine = GpuEngine("cuda")
    graph = made.random_graph(size, 10)
    links = engine._links(graph.adjacency())
    matrix = torch.sparse_csr_tensor(
        links.indptr.int(), links.indices, torch.ones(len(links.indices), device="cuda"), (size, size)
    )
    for width in (1, 2, 8, 16, 28, 32, 33, 50, 64, 96, 128):
        if size * width > 1e9:
            continue
        right = torch.randn(size, width, device="cuda")
        timed(f"{size} nodes, {width} columns: embedding_bag", lambda: links.rows.times(right))
        timed(f"{size} nodes, {width} columns: sparse CSR", lambda: matrix @ right)
    double = torch.randn(size, 2, device="cuda", dtype=torch.float64)
    timed("2 columns of doubles: embedding_bag", lambda: links.links.times(double))
    config = Config()
    for batch in (65_536, 262_144, 1_000_000):
        roots = np.arange(min(batch, size))
        timed(f"push of {len(roots)} roots", lambda: engine._profile(graph, config, roots), repeats=2)
    entries = torch.randint(0, 2**62, (1 << 25,), device="cuda")
    timed("sort of 2^25 keys", lambda: entries.sort())
    keys = entries.sort().values
    timed("2^25 of searchsorted", lambda: torch.searchsorted(keys, entries))
    rows = torch.randn(65_536, 200, device="cuda")
    start = perf_counter()
    staged = [torch.empty(rows.shape, pin_memory=True) for _ in range(16)]
    print(f"pin 16 x 52 MB: {perf_counter() - start:.3f} s")
    timed("52 MB to pinned memory", lambda: staged[0].copy_(rows, non_blocking=True))
    timed("52 MB to plain memory", rows.cpu)
    for threads in (1, 4, 8, 16):
        out = np.empty((40 * 65_536, 200), np.float32)
        start = perf_counter()
        with ThreadPoolExecutor(threads) as pool:
            list(
                pool.map(
                    lambda at: np.copyto(out[at * 65_536 : (at + 1) * 65_536], staged[at % 16].numpy()),
                    range(40),
                )
            )
        print(f"2.1 GB into new memory by {threads} threads: {perf_counter() - start:.3f} s")
    print(f"huge pages: {open('/sys/kernel/mm/transparent_hugepage/enabled').read().strip()}")


if __name__ == "__main__":
    main(int(sys.argv[1]))
