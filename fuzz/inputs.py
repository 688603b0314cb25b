"""Inputs drawn from bytes: arrays, JSON, and files that are read as a network or as features."""

import copy
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import atheris
import numpy as np
from fuzz.outcome import Target
from numpy.typing import NDArray

from spinegraph.graph.read import read_graph

_KINDS = ("<i8", "<i4", "<f4", "<f8", "<u8", "|u1", "|b1", "<U3", "|S3", "<c16", "<M8[s]", "|V4", ">i8")
_ODD = (None, True, False, 0, 1, -1, 2**31, 2**63, -(2**63), 1e308, 5e-324, float("nan"), float("inf"))
_ODD += ("", "0", "a", [], {}, [[]], [0], [0.5, 0.5], {"": 0})  # type: ignore[assignment]


def arrays(data: bytes, keys: Sequence[str], kinds: Sequence[str] = _KINDS) -> dict[str, NDArray[Any]]:
    """Return some arrays by name; small integers are likely, since they pass for indices."""
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


def json_of(data: bytes, sound: Any) -> Any:
    """Return the bytes as JSON, or valid JSON that they change: random bytes are hardly ever JSON.

    Examples
    --------
    >>> json_of(b'{"a": 1}', {"b": 2})
    {'a': 1}
    """
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        return changed(data, sound)


def changed(data: bytes, sound: Any) -> Any:
    """Return a copy of a JSON object or list with one to six changes that the bytes choose.

    Examples
    --------
    >>> changed(b"", {"b": 2})
    {'b': None}
    """
    draw, value = atheris.FuzzedDataProvider(data), copy.deepcopy(sound)
    for _ in range(draw.ConsumeIntInRange(1, 6)):
        entries = [*_entries(value)]
        if not entries:
            break
        holder, key = entries[draw.ConsumeIntInRange(0, len(entries) - 1)]
        match draw.ConsumeIntInRange(0, 7):
            case 0 | 1 | 2:
                holder[key] = copy.deepcopy(_ODD[draw.ConsumeIntInRange(0, len(_ODD) - 1)])
            case 3:
                holder[key] = draw.ConsumeInt(4)
            case 4:
                holder[key] = draw.ConsumeFloat()
            case 5:
                holder[key] = draw.ConsumeUnicodeNoSurrogates(8)
            case 6:
                del holder[key]
            case _:
                other, other_key = entries[draw.ConsumeIntInRange(0, len(entries) - 1)]
                holder[key] = copy.deepcopy(other[other_key])
    return value


def _entries(value: Any) -> Iterator[tuple[Any, Any]]:
    """Go through every list and object within, with each of their keys."""
    keys = value.keys() if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    for key in keys:
        yield value, key
        yield from _entries(value[key])


def network_or_features(folder: Path, name: str) -> Target:
    """Return a function that reads bytes from a file of that name; the first byte says as what."""
    path, edges = folder / name, folder / "edges.csv"
    edges.write_text("0,1\n1,2\n")

    def target(data: bytes) -> None:
        path.write_bytes(data[1:])
        if data and data[0] % 2:
            read_graph(edges, path)
        else:
            read_graph(path)

    return target
