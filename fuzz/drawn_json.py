"""JSON drawn from bytes: sound JSON with some of its values replaced, taken out or repeated."""

import copy
import json
from collections.abc import Iterator
from typing import Any

import atheris

_ODD = (None, True, False, 0, 1, -1, 2**31, 2**63, -(2**63), 1e308, 5e-324, float("nan"), float("inf"))
_ODD += ("", "0", "a", [], {}, [[]], [0], [0.5, 0.5], {"": 0})  # type: ignore[assignment]


def json_of(data: bytes, sound: Any) -> Any:
    """Return what bytes say as JSON, or sound JSON that they change: random bytes are hardly ever JSON.

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
        places = [*_places(value)]
        if not places:
            break
        holder, key = places[draw.ConsumeIntInRange(0, len(places) - 1)]
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
                other, place = places[draw.ConsumeIntInRange(0, len(places) - 1)]
                holder[key] = copy.deepcopy(other[place])
    return value


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Go through every list and object within, with each of their keys."""
    keys = value.keys() if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    for key in keys:
        yield value, key
        yield from _places(value[key])
