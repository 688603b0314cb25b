"""Blocks of work on threads: compiled kernels let go of the interpreter lock, so plain threads do.

No Numba thread pool is involved: its setting stays the caller's, kernels compile faster without it, and
several threads of a server may call the same kernel. A block's result may not depend on the other blocks.
"""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import numpy as np

from spinegraph.errors import ParameterError

Result = TypeVar("Result")


def thread_count(threads: int | None) -> int:
    """How many threads to use: the number given, or as many as this process may run on.

    Examples
    --------
    >>> thread_count(3)
    3
    """
    if threads is None:
        affinity = getattr(os, "sched_getaffinity", None)
        return len(affinity(0)) if affinity else os.cpu_count() or 1
    if isinstance(threads, bool) or not isinstance(threads, int | np.integer) or threads < 1:
        raise ParameterError(f"threads must be a whole number >= 1, or None for all cores; got {threads!r}")
    return int(threads)


def run_blocks(
    task: Callable[[int, int], Result], size: int, *, block: int, threads: int | None = None
) -> list[Result]:
    """Call ``task(start, stop)`` for consecutive blocks of ``range(size)``; results in block order.

    Examples
    --------
    >>> run_blocks(lambda start, stop: stop - start, 10, block=4, threads=2)
    [4, 4, 2]
    """
    bounds = [(start, min(start + block, size)) for start in range(0, size, block)]
    workers = min(thread_count(threads), len(bounds))

    def quietly(bound: tuple[int, int]) -> Result:
        # Hashes wrap around; uncompiled kernels would warn about it.
        with np.errstate(over="ignore"):
            return task(*bound)

    if workers <= 1:
        return [quietly(bound) for bound in bounds]
    with ThreadPoolExecutor(workers) as pool:
        return list(pool.map(quietly, bounds))
