"""How many threads Torch uses, without changing the caller's world."""

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock, local

import torch

from spinegraph.kernels.threads import thread_count

_lock = Lock()
_here = local()
_before: list[int] = []  # how many there were, of each that is inside


@contextmanager
def torch_threads(threads: int | None) -> Iterator[None]:
    """Let Torch use so many threads inside, and as many as before outside.

    >>> before = torch.get_num_threads()
    >>> with torch_threads(1):
    ...     torch.get_num_threads()
    1
    >>> torch.get_num_threads() == before
    True
    """
    count = thread_count(threads)
    with _lock:
        is_nested = getattr(_here, "is_inside", False)
        # Of fits side by side each sees what the others set, so the first alone knows how it was.
        before = _before[0] if _before and not is_nested else torch.get_num_threads()
        _before.append(before)
        _here.is_inside = True
        torch.set_num_threads(count)
    try:
        yield
    finally:
        with _lock:
            torch.set_num_threads(before)
            _here.is_inside = is_nested
            _before.remove(before)
