"""Compiled kernels: arrays and scalars in, arrays out.

Numba keeps what it compiled in ``__pycache__`` beside these files and looks only at the file of the outermost
function to see whether that is still right. A change in a file that it calls would go unnoticed, so whatever
is older than the newest of these files is thrown away here.
"""

from contextlib import suppress
from pathlib import Path


def _forget_stale_caches(folder: Path) -> None:
    newest = max((source.stat().st_mtime for source in folder.glob("*.py")), default=0.0)
    for index in (folder / "__pycache__").glob("*.nbi"):
        # Another process may be at the same, or the folder read-only; then Numba's own check must do.
        with suppress(OSError):
            if index.stat().st_mtime < newest:
                index.unlink()


_forget_stale_caches(Path(__file__).parent)
