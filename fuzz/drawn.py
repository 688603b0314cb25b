"""Arrays drawn from bytes: the keys a reader knows, and anything for their types, shapes and values."""

from collections.abc import Sequence
from typing import Any

import atheris
import numpy as np
from numpy.typing import NDArray

_KINDS = ("<i8", "<i4", "<f4", "<f8", "<u8", "|u1", "|b1", "<U3", "|S3", "<c16", "<M8[s]", "|V4", ">i8")


def arrays(data: bytes, keys: Sequence[str], kinds: Sequence[str] = _KINDS) -> dict[str, NDArray[Any]]:
    """Return some arrays by name; small integers are likely, since they pass for positions."""
    draw = atheris.FuzzedDataProvider(data)
    found: dict[str, NDArray[Any]] = {}
    for _ in range(draw.ConsumeIntInRange(0, 12)):
        key = keys[draw.ConsumeIntInRange(0, len(keys) - 1)]
        kind = np.dtype(kinds[draw.ConsumeIntInRange(0, len(kinds) - 1)])
        shape = tuple(draw.ConsumeIntInRange(0, 5) for _ in range(draw.ConsumeIntInRange(0, 3)))
        count = int(np.prod(shape))
        if draw.ConsumeBool() and kind.kind in "iuf":
            values = np.array([draw.ConsumeIntInRange(0, 6) for _ in range(count)])
            found[key] = values.astype(kind).reshape(shape)
        else:
            raw = draw.ConsumeBytes(count * kind.itemsize).ljust(count * kind.itemsize, b"\0")
            found[key] = np.frombuffer(raw, kind).reshape(shape)
    return found
