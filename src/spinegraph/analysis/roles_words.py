"""Roles in words: what sets one apart from the rest of the network, with typical numbers."""

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinegraph.analysis.roles_signature import (
    ACQUAINTED,
    AROUND,
    CLUSTERING,
    COMMUNITIES,
    DEGREE,
    NEIGHBORS,
    PROMINENCE,
    SPAN,
)

_APART = 0.5  # deviations from the rest that are worth a word


@dataclass(frozen=True)
class Typical:
    """Typical numbers of a role, or of a whole network.

    Attributes
    ----------
    share : float
        Of the nodes.
    neighbors, neighbors_low, neighbors_high : int
        Median, and the middle 80 %.
    acquainted : float or None
        Mean share of pairs of neighbours that know each other; None where nobody has two neighbours.
    connected : float
        Neighbours of a neighbour (geometric mean).
    communities : float or None
        Mean number that neighbours belong to; None where communities are unknown.

    Examples
    --------
    >>> Typical.of(np.array([[np.log(3), 1.0, np.log(3)]] * 3), np.ones(3)).neighbors
    2
    """

    share: float
    neighbors: int
    neighbors_low: int
    neighbors_high: int
    acquainted: float | None
    connected: float
    communities: float | None

    @classmethod
    def of(cls, rows: NDArray[np.float64], weights: NDArray[np.float64]) -> "Typical":
        """Sum up numbers (n, 3 or 5), each node counted as much as it belongs to the role, (n,)."""
        degrees = np.rint(np.expm1(rows[:, DEGREE])).astype(np.int64)
        low, middle, high = _quantiles(degrees, weights, (0.1, 0.5, 0.9))
        pairs = weights * (degrees >= 2)
        some = weights * (degrees >= 1)
        acquainted = float(pairs @ rows[:, CLUSTERING] / pairs.sum()) if pairs.sum() > 1e-9 else None
        connected = some @ rows[:, AROUND] / some.sum() if some.sum() > 1e-9 else 0.0
        communities = None
        if rows.shape[1] > SPAN:
            communities = float(some @ rows[:, SPAN] / max(some.sum(), 1e-9))
        share = float(weights.sum() / len(rows))
        return cls(share, middle, low, high, acquainted, float(np.expm1(connected)), communities)

    def to_json(self) -> dict[str, Any]:
        """Return the numbers by name."""
        return asdict(self)


def describe(role: Typical, rest: Typical, apart: NDArray[np.float64]) -> str:
    """Say in one sentence what sets a role apart.

    Parameters
    ----------
    role, rest : Typical
        Of the role, and of the rest of the network.
    apart : float64 array (c,)
        By how many deviations the role's columns lie above the rest's.

    Examples
    --------
    >>> bridge, rest = Typical(0.1, 4, 3, 6, 0.03, 5.0, 3.1), Typical(0.9, 7, 2, 12, 0.4, 8.0, 1.2)
    >>> describe(bridge, rest, np.array([-0.7, -1.0, -0.2, 2.0]))
    'few neighbours (typically 4; elsewhere 7) that hardly know each other (3 %; elsewhere 40 %), spans 3.1
    communities (elsewhere 1.2)'
    """
    if role.neighbors_high == 0:
        return "no neighbours at all"
    text = _neighbors(role, rest, apart[NEIGHBORS]) + _acquainted(role, rest, apart[ACQUAINTED])
    if role.communities is not None and role.neighbors >= 2:
        beside = _beside(f"{rest.communities:.1f}", apart[COMMUNITIES])
        spans = role.communities >= 1.15
        text += f", spans {role.communities:.1f} communities" if spans else ", all in one community"
        text += f" ({beside})" if beside else ""
    if role.neighbors >= 1:
        text += _prominence(role, apart[PROMINENCE])
    return text


def _neighbors(role: Typical, rest: Typical, apart: float) -> str:
    beside = _beside(str(rest.neighbors), apart)
    if role.neighbors == role.neighbors_high == 1:
        return f"a single neighbour ({beside})" if beside else "a single neighbour"
    if role.neighbors == 0:
        return f"hardly any neighbours ({beside})" if beside else "hardly any neighbours"
    some = "many" if apart >= _APART else "few" if apart <= -_APART else "a usual number of"
    return f"{some} neighbours (typically {role.neighbors}{f'; {beside}' if beside else ''})"


def _acquainted(role: Typical, rest: Typical, apart: float) -> str:
    if role.acquainted is None or role.neighbors < 2:
        return ""
    words = ("that hardly know each other", "of which few know each other", "of which some know each other")
    word = (*words, "that mostly know each other")[int(np.searchsorted((0.1, 0.25, 0.55), role.acquainted))]
    beside = _beside("-" if rest.acquainted is None else f"{100 * rest.acquainted:.0f} %", apart)
    return f" {word} ({100 * role.acquainted:.0f} %{f'; {beside}' if beside else ''})"


def _prominence(role: Typical, apart: float) -> str:
    if apart >= _APART and role.neighbors > role.connected:
        return f"; the neighbours have fewer themselves (about {role.connected:.0f})"
    if apart <= -_APART and role.neighbors < role.connected:
        who = "that neighbour has" if role.neighbors == role.neighbors_high == 1 else "the neighbours have"
        return f"; {who} more (about {role.connected:.0f})"
    return ""


def _beside(value: str, apart: float) -> str:
    return f"elsewhere {value}" if abs(apart) >= _APART else ""


def _quantiles(
    values: NDArray[np.int64], weights: NDArray[np.float64], shares: tuple[float, ...]
) -> list[int]:
    order = np.argsort(values, kind="stable")
    reached = np.cumsum(weights[order])
    places = np.searchsorted(reached, np.array(shares) * reached[-1])
    return [int(values[order[min(place, len(order) - 1)]]) for place in places.tolist()]
