"""The mark of a kernel: compiled when first called, and kept on disk for the next process if it can be.

Numba looks only at the file of the outermost function to see whether what it kept is still right; a change in
a file that it calls would go unnoticed. So what is kept also bears a digest of all kernels.
"""

import os
import warnings
from collections.abc import Callable
from functools import cache, partial
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numba
from numba.core.caching import FunctionCache

from spinegraph.errors import UncachedKernelsWarning

Kernel = Callable[..., Any]


def compiled(function: Kernel | None = None, **options: Any) -> Kernel:
    """Compile a function with Numba, without the interpreter's lock; options are those of ``numba.njit``."""
    if function is None:
        return partial(compiled, **options)
    kernel: Kernel = numba.njit(nogil=True, **options)(function)
    if kernel is not function:  # as it is where compiling is switched off
        try:
            kernel._cache = _Cache(function)  # type: ignore[attr-defined]
        except (RuntimeError, OSError):  # a folder that may not be written to, and no home either
            _tell("no folder that Numba may write to was found")
    return kernel


class _Cache(FunctionCache):  # type: ignore[misc]
    """Numba's cache; where the disk takes nothing, the kernel is compiled by the next process again."""

    def save_overload(self, signature: Any, data: Any) -> None:
        try:
            super().save_overload(signature, data)
        except OSError as fault:
            self.disable()
            _tell(f"{self.cache_path}: {os.strerror(fault.errno) if fault.errno else fault}")

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
def _tell(reason: str) -> None:
    warnings.warn(
        f"compiled kernels cannot be kept ({reason}), so the next process compiles them again; "
        "set NUMBA_CACHE_DIR to a folder with room",
        UncachedKernelsWarning,
        stacklevel=2,
    )
