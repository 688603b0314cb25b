"""What colours a map: groups with names, or measured values."""

from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinegraph.analysis.plot_style import COLORS, OTHER, is_numeric
from spinegraph.errors import ParameterError

_UNKNOWN = "not known"


@dataclass(frozen=True, eq=False)
class Coloring:
    """One colouring of the nodes.

    Attributes
    ----------
    title : str
    values : float64 array (n,), or None for groups
        Measured; NaN where not known.
    codes : int64 array (n,), or None for values
        Each node's place in ``groups``.
    groups, colors : tuple of str
        Names of the groups and their colours; larger groups first.

    Examples
    --------
    >>> coloring("team", ["a", "b", "b", None]).groups
    ('b', 'a', 'not known')
    """

    title: str
    values: NDArray[np.float64] | None
    codes: NDArray[np.int64] | None
    groups: tuple[str, ...] = ()
    colors: tuple[str, ...] = ()


def coloring(title: str, values: Any, *, groups: tuple[str, ...] | None = None) -> Coloring:
    """Read values (n,) as measured numbers, or as groups; the smallest of many groups become one.

    Parameters
    ----------
    title : str
    values : array (n,)
        Floats are measured; text, booleans and whole numbers of at most 12 kinds are groups. With ``groups``,
        each node's place in them.
    groups : tuple of str, optional
        Names of groups in a fixed order.

    Examples
    --------
    >>> coloring("age", [3.5, 4.0]).values.tolist()
    [3.5, 4.0]
    >>> coloring("role", [1, 0, 1], groups=("hub", "leaf")).codes.tolist()
    [1, 0, 1]
    """
    given = np.asarray(values)
    if given.ndim != 1:
        raise ParameterError(f"a colouring is one value per node (n,); got shape {given.shape}")
    if groups is not None:
        colors = tuple(COLORS[place % len(COLORS)] for place in range(len(groups)))
        return Coloring(title, None, given.astype(np.int64), tuple(groups), colors)
    if is_numeric(given):
        return Coloring(title, given.astype(np.float64), None)
    texts = [_UNKNOWN if value is None or value == "" else str(value) for value in given.tolist()]
    return _grouped(title, texts)


def _grouped(title: str, texts: list[str]) -> Coloring:
    counts = Counter(texts)
    unknown = counts.pop(_UNKNOWN, 0)
    ranked = [name for name, _ in sorted(counts.items(), key=lambda item: (-item[1], item[0]))]
    shown = ranked if len(ranked) <= len(COLORS) else ranked[: len(COLORS) - 1]
    groups, colors = list(shown), list(COLORS[: len(shown)])
    rest = len(ranked) - len(shown)
    if rest:
        groups.append(f"{rest} other groups")
        colors.append(OTHER)
    place_of = {name: place for place, name in enumerate(shown)}
    if unknown:
        place_of[_UNKNOWN] = len(groups)
        groups.append(_UNKNOWN)
        colors.append(OTHER)
    codes = np.array([place_of.get(text, len(shown)) for text in texts], dtype=np.int64)
    return Coloring(title, None, codes, tuple(groups), tuple(colors))
