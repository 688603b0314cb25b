"""JSON read from a model folder: trusted in nothing, every value checked as it is taken."""

import sys
from typing import Any

from spinegraph.errors import ModelFormatError


class JsonObject:
    """A JSON object of a model folder whose values are checked as they are taken.

    Parameters
    ----------
    meta : dict
        What the JSON parser returned; anything else is refused.
    place : str
        What messages begin with.

    Examples
    --------
    >>> JsonObject({"width": 3}, "encoder").whole("width", 0, 2)
    Traceback (most recent call last):
        ...
    spinegraph.errors.ModelFormatError: encoder: width must be from 0 to 2; got 3
    """

    def __init__(self, meta: Any, place: str) -> None:
        if not isinstance(meta, dict):
            raise ModelFormatError(f"{place}: expected a JSON object, got {type(meta).__name__}")
        self.meta, self.place = meta, place

    def get(self, key: str, kind: type) -> Any:
        """Take a value of one type."""
        value = self.meta.get(key)
        if type(value) is not kind:
            raise ModelFormatError(f"{self.place}: {key} must be a {kind.__name__}; got {value!r:.60}")
        return value

    def one_of(self, key: str, *allowed: Any) -> Any:
        """Take one of a few values."""
        value = self.meta.get(key)
        if not any(type(value) is type(each) and value == each for each in allowed):
            raise ModelFormatError(
                f"{self.place}: {key} must be {' or '.join(map(repr, allowed))}; got {value!r:.60}"
            )
        return value

    def list_of(self, key: str, kind: type) -> list[Any]:
        """Take a list of one type."""
        values: list[Any] = self.get(key, list)
        if any(type(value) is not kind for value in values):
            raise ModelFormatError(f"{self.place}: {key} must be a list of {kind.__name__}")
        return values

    def whole(self, key: str, least: int, largest: int) -> int:
        """Take an integer in a range."""
        value: int = self.get(key, int)
        if not least <= value <= largest:
            raise ModelFormatError(f"{self.place}: {key} must be from {least} to {largest}; got {value}")
        return value

    def number(self, key: str) -> float:
        """Take a finite number."""
        value: Any = self.meta.get(key)
        if type(value) not in (int, float) or not abs(value) <= sys.float_info.max:
            raise ModelFormatError(f"{self.place}: {key} must be a finite number; got {value!r:.60}")
        return float(value)
