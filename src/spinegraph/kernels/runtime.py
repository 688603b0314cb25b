"""How kernels are compiled and run: the decorator, its cache on disk, and threads."""

import os
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial
from hashlib import blake2b
from pathlib import Path
from typing import Any, TypeVar

import numba
import numpy as np
from numba.core.caching import FunctionCache

from spinegraph.errors import ParameterError, UncachedKernelsWarning

Kernel = Callable[..., Any]


def compiled(function: Kernel | None = None, **options: Any) -> Kernel:
    """Compile a function with Numba, without the interpreter's lock; options are those of ``numba.njit``."""
    if function is None:
        return partial(compiled, **options)
    kernel: Kernel = numba.njit(**{"nogil": True, **options})(function)
    if kernel is not function:  # it is, where compiling is switched off
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


@cache  # once a process, though every kernel has a cache of its own
def _warn(reason: str) -> None:
    warnings.warn(
        f"compiled kernels cannot be kept ({reason}), so the next process compiles them again; "
        "set NUMBA_CACHE_DIR to a folder with room",
        UncachedKernelsWarning,
        stacklevel=2,
    )


Result = TypeVar("Result")


def thread_count(threads: int | None) -> int:
    """Return the number given, or of the cores that this process may use."""
    if threads is None:
        affinity = getattr(os, "sched_getaffinity", None)
        return len(affinity(0)) if affinity else os.cpu_count() or 1
    if isinstance(threads, bool) or not isinstance(threads, int | np.integer) or threads < 1:
        raise ParameterError(f"threads must be a whole number >= 1, or None for all cores; got {threads!r}")
    return int(threads)


def run_blocks(
    task: Callable[[int, int], Result], size: int, *, block: int, threads: int | None = None
) -> list[Result]:
    """Call ``task(start, stop)`` for consecutive blocks of ``range(size)``; results in block order."""
    bounds = [(start, min(start + block, size)) for start in range(0, size, block)]
    workers = min(thread_count(threads), len(bounds))

    def quietly(bound: tuple[int, int]) -> Result:
        with np.errstate(over="ignore"):  # hashes overflow; uncompiled kernels would warn about it
            return task(*bound)

    if workers <= 1:
        return [quietly(bound) for bound in bounds]
    with ThreadPoolExecutor(workers) as pool:
        return list(pool.map(quietly, bounds))
