"""How many threads Torch uses, without changing the caller's world."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from spinegraph.kernels.threads import thread_count


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
    before = torch.get_num_threads()
    torch.set_num_threads(thread_count(threads))
    try:
        yield
    finally:
        torch.set_num_threads(before)
