"""Compiling and running kernels: the decorator, its cache on disk, and threads."""

import os
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from functools import cache, partial
from hashlib import blake2b
from pathlib import Path
from threading import Event, Lock, Thread
from typing import Any, TypeVar

import numba
import numpy as np
from numba.core.caching import FunctionCache
from threadpoolctl import threadpool_limits

from spinegraph.errors import ParameterError, UncachedKernelsWarning

Kernel = Callable[..., Any]


def compiled(function: Kernel | None = None, **options: Any) -> Kernel:
    """Compile a function with Numba, releasing the GIL; options are those of ``numba.njit``."""
    if function is None:
        return partial(compiled, **options)
    kernel: Kernel = numba.njit(**{"nogil": True, **options})(function)
    if kernel is not function:  # with NUMBA_DISABLE_JIT it is
        try:
            kernel._cache = _Cache(function)  # type: ignore[attr-defined]
        except (RuntimeError, OSError):  # no writable folder, and no home either
            _warn("no folder that Numba may write to was found")
    return kernel


class _Cache(FunctionCache):  # type: ignore[misc]
    """Numba's cache, keyed by the sources of all kernels; a full disk is a warning."""

    def save_overload(self, signature: Any, data: Any) -> None:
        try:
            super().save_overload(signature, data)
        except OSError as fault:
            self.disable()
            _warn(f"{self.cache_path}: {os.strerror(fault.errno) if fault.errno else fault}")

    def _index_key(self, signature: Any, codegen: Any) -> Any:
        return *super()._index_key(signature, codegen), _digest(Path(__file__).parent)


@cache
def _digest(folder: Path) -> str:
    """Return a digest of all kernels' sources."""
    found = blake2b(digest_size=16)
    for source in sorted(folder.glob("*.py")):
        found.update(source.read_bytes())
    return found.hexdigest()


@cache  # once per process, although every kernel has its own cache
def _warn(reason: str) -> None:
    warnings.warn(
        f"compiled kernels cannot be cached ({reason}), so the next process compiles them again; "
        "set NUMBA_CACHE_DIR to a writable folder with free space",
        UncachedKernelsWarning,
        stacklevel=2,
    )


class _BlasLimit(Thread):
    """Limits BLAS to one thread while it runs; threadpoolctl lifts a limit only in the thread that set it."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.is_set, self.is_over = Event(), Event()

    def run(self) -> None:
        with threadpool_limits(1):
            self.is_set.set()
            self.is_over.wait()


_blas_lock, _blas_users = Lock(), 0
_blas_limit = _BlasLimit()


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Limit BLAS to one thread in the whole process: several round differently, and wait for one another.

    The last of several callers to leave lifts the limit.
    """
    global _blas_users, _blas_limit
    with _blas_lock:
        is_first, _blas_users = not _blas_users, _blas_users + 1
        if is_first:
            _blas_limit = _BlasLimit()
            _blas_limit.start()
            _blas_limit.is_set.wait()
    try:
        # If the caller has set a limit, only its thread can set another.
        with threadpool_limits(1) if is_first else nullcontext():
            yield
    finally:
        with _blas_lock:
            _blas_users -= 1
            if not _blas_users:
                _blas_limit.is_over.set()
                _blas_limit.join()


Result = TypeVar("Result")


def thread_count(threads: int | None) -> int:
    """Return ``threads``, or the number of cores that this process may use."""
    if threads is None:
        affinity = getattr(os, "sched_getaffinity", None)
        return len(affinity(0)) if affinity else os.cpu_count() or 1
    if isinstance(threads, bool) or not isinstance(threads, int | np.integer) or threads < 1:
        raise ParameterError(f"threads must be a whole number >= 1, or None for all cores; got {threads!r}")
    return int(threads)


def run_blocks(
    task: Callable[[int, int], Result], size: int, *, block: int, threads: int | None = None
) -> list[Result]:
    """Call ``task(start, stop)`` for consecutive blocks of ``range(size)``; return results in block order."""
    bounds = [(start, min(start + block, size)) for start in range(0, size, block)]
    workers = min(thread_count(threads), len(bounds))

    def quietly(bound: tuple[int, int]) -> Result:
        with np.errstate(over="ignore"):  # hashes overflow; uncompiled kernels would warn about it
            return task(*bound)

    if workers <= 1:
        return [quietly(bound) for bound in bounds]
    with ThreadPoolExecutor(workers) as pool:
        return list(pool.map(quietly, bounds))
