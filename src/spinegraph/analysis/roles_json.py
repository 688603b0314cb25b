"""Roles read from JSON, trusting none of it."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinegraph.analysis.roles_communities import Communities
from spinegraph.analysis.roles_mixture import Mixture
from spinegraph.analysis.roles_signature import COLUMNS
from spinegraph.analysis.roles_titles import MOST_TITLES
from spinegraph.analysis.roles_words import Typical
from spinegraph.errors import ModelFormatError
from spinegraph.json_object import JsonObject

_LARGEST = 1e30  # nothing that was measured comes near it; beyond, squares and quotients overflow


def read_parts(meta: Any) -> dict[str, Any]:
    """Return the fields of Roles from what ``Roles.to_json`` returned, each value checked.

    Examples
    --------
    >>> read_parts([])
    Traceback (most recent call last):
    spinegraph.errors.ModelFormatError: roles: expected a JSON object, got list
    """
    given = JsonObject(meta, "roles")
    columns = given.list_of("columns", str)
    if len(columns) < len(COLUMNS) - 1 or tuple(columns) != COLUMNS[: len(columns)]:
        raise ModelFormatError(
            f"roles: columns must be the first 3 or 4 of {', '.join(COLUMNS)}; got {columns}"
        )
    width, has_communities = len(columns), len(columns) == len(COLUMNS)
    listed = [JsonObject(role, "roles: role") for role in given.list_of("roles", dict)]
    if not 1 <= len(listed) <= MOST_TITLES:
        raise ModelFormatError(f"roles: expected 1 to {MOST_TITLES} roles; got {len(listed)}")
    return {
        "titles": [role.get("title", str) for role in listed],
        "descriptions": [role.get("description", str) for role in listed],
        "typical": [_typical(role.get("typical", dict)) for role in listed],
        "whole": _typical(given.get("whole", dict)),
        "scores": _scores(JsonObject(given.get("scores", dict), "roles: scores")),
        "mixture": Mixture(
            _above_zero(given, "shares", (len(listed),)),
            _matrix(given, "means", (len(listed), width)),
            _above_zero(given, "variances", (len(listed), width)),
        ),
        "usual": _share(given, "usual"),
        "mean": _matrix(given, "mean", (width,)),
        "scale": _above_zero(given, "scale", (width,)),
        "communities": _communities(given) if has_communities else None,
        "least_typical": given.number("least_typical"),
    }


def _communities(given: JsonObject) -> Communities:
    parts = JsonObject(given.get("communities", dict), "roles: communities")
    centers = _matrix(parts, "centers", (None, None))
    member_of = np.array(parts.list_of("member_of", int), dtype=np.int64)
    if (
        len(member_of) != len(centers)
        or not len(centers)
        or not 0 <= member_of.min() <= member_of.max() < len(centers)
    ):
        raise ModelFormatError(f"roles: member_of must name the community of each of {len(centers)} centres")
    return Communities(centers, member_of)


def _scores(given: JsonObject) -> dict[int, float]:
    wrong = [key for key in given.meta if not key.isdecimal()]
    if wrong:
        raise ModelFormatError(f"roles: scores belong to numbers of roles; got {wrong[0]!r:.60}")
    return {int(key): given.number(key) for key in given.meta}


def _share(given: JsonObject, key: str) -> float:
    value = given.number(key)
    if not 0 <= value <= 1:
        raise ModelFormatError(f"roles: {key} must be between 0 and 1; got {value}")
    return value


def _above_zero(given: JsonObject, key: str, shape: tuple[int, ...]) -> NDArray[np.float64]:
    values = _matrix(given, key, shape)
    if (values < 1 / _LARGEST).any():
        raise ModelFormatError(f"roles: {key} must be above 0; got {values.min()}")
    return values


def _matrix(given: JsonObject, key: str, shape: tuple[int | None, ...]) -> NDArray[np.float64]:
    try:
        values = np.array(given.get(key, list), dtype=np.float64)
    except (TypeError, ValueError):
        raise ModelFormatError(f"roles: {key} must hold numbers only") from None
    fits = values.ndim == len(shape) and all(
        wanted in (None, found) for wanted, found in zip(shape, values.shape, strict=True)
    )
    if not fits or not (np.abs(values) <= _LARGEST).all():
        raise ModelFormatError(
            f"roles: {key} must be finite, up to {_LARGEST:g}, of shape {shape}; got shape {values.shape}"
        )
    return values


def _typical(meta: dict[str, Any]) -> Typical:
    given = JsonObject(meta, "roles: typical")
    optional = {
        name: None if given.meta.get(name) is None else given.number(name)
        for name in ("acquainted", "communities")
    }
    low, middle, high = (given.whole(f"neighbors{part}", 0, 2**62) for part in ("_low", "", "_high"))
    return Typical(
        given.number("share"),
        middle,
        low,
        high,
        optional["acquainted"],
        given.number("connected"),
        optional["communities"],
    )
