"""Short titles of roles: hub, bridge, periphery and others, each with what it takes to be called so."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from spinegraph.analysis.roles_signature import ACQUAINTED, COMMUNITIES, NEIGHBORS
from spinegraph.analysis.roles_words import Typical

Floats = NDArray[np.float64]


class _Title(NamedTuple):
    """A title, its pattern in deviations from the rest of the network, and what has to hold."""

    name: str
    pattern: tuple[float, float, float, float]  # neighbors, acquainted, prominence, communities
    holds: Callable[[Typical, Floats], bool]


def _acquainted(role: Typical) -> float:
    return role.acquainted or 0.0


_TITLES = (
    _Title(
        "hub",
        (2.0, -0.6, 2.0, 0.3),
        lambda role, apart: apart[NEIGHBORS] > 0.5 and _stands_out(role) and role.share < 0.4,
    ),
    _Title(
        "bridge",
        (0.3, -0.8, 0.2, 2.2),
        lambda role, apart: len(apart) > COMMUNITIES and apart[COMMUNITIES] > 0.5 and _spans(role),
    ),
    _Title(
        "broker",
        (0.6, -1.2, 0.6, 0.8),
        lambda role, apart: apart[ACQUAINTED] < -0.3 and _acquainted(role) < 0.25 and role.neighbors >= 3,
    ),
    _Title(
        "clique member",
        (0.3, 1.6, 0.0, -0.4),
        lambda role, apart: apart[ACQUAINTED] > 0.3 and _acquainted(role) > 0.4 and role.neighbors >= 3,
    ),
    _Title(
        "small circle",
        (-0.6, 1.5, -0.6, -0.5),
        lambda role, apart: apart[ACQUAINTED] > 0.3 and _acquainted(role) > 0.5 and apart[NEIGHBORS] < 0,
    ),
    _Title(
        "core member",
        (0.9, 0.5, 0.5, 0.0),
        lambda role, apart: apart[NEIGHBORS] > 0.25 and _acquainted(role) > 0.2 and role.share < 0.4,
    ),
    _Title("member", (0.4, 0.2, 0.1, -0.4), lambda role, apart: apart[NEIGHBORS] > -0.5),
    _Title(
        "satellite",
        (-1.0, -0.3, -2.0, -0.4),
        lambda role, apart: apart[NEIGHBORS] < -0.25 and role.connected > 4 * role.neighbors,
    ),
    _Title("periphery", (-1.6, -0.3, -1.4, -0.5), lambda role, apart: apart[NEIGHBORS] < -0.25),
    _Title(
        "chain",
        (-1.2, -1.6, -0.4, -0.2),
        lambda role, apart: role.neighbors <= 3 and role.connected < 4.5 and _acquainted(role) < 0.1,
    ),
    _Title(
        "go-between",
        (-0.4, -0.8, -0.4, 0.5),
        lambda role, apart: 2 <= role.neighbors <= 4 and _acquainted(role) < 0.2,
    ),
    _Title("outer member", (-0.4, 0.0, -0.5, 0.0), lambda role, apart: apart[NEIGHBORS] < 0),
)
MOST_TITLES = len(_TITLES)


def titles(apart: Floats, typical: list[Typical]) -> list[str]:
    """Give every role a different short title, of those that hold the one whose pattern is nearest.

    Parameters
    ----------
    apart : float64 array (g, c)
        By how many deviations a role's coordinates lie above the rest's.
    typical : list of Typical (g,)

    Examples
    --------
    >>> many, few = Typical(0.2, 14, 9, 26, 0.1, 5.0, 1.5), Typical(0.8, 2, 1, 3, 0.3, 5.0, 1.0)
    >>> titles(np.array([[2.0, -0.5, 1.0, 0.3], [-2.0, 0.5, -1.0, -0.3]]), [many, few])
    ['hub', 'periphery']
    """
    from scipy.optimize import linear_sum_assignment

    if len(apart) == 1:
        return ["isolated" if typical[0].neighbors_high == 0 else "member"]
    patterns = np.array([title.pattern[: apart.shape[1]] for title in _TITLES])
    costs = np.square(np.clip(apart, -3, 3)[:, None] - patterns).sum(axis=2)  # (g, titles)
    holds = np.array(
        [[title.holds(role, row) for title in _TITLES] for role, row in zip(typical, apart, strict=True)]
    )
    _, chosen = linear_sum_assignment(np.where(holds, costs, costs + 1e3))
    return [
        "isolated" if role.neighbors_high == 0 else _TITLES[title].name if fits[title] else f"role {place}"
        for place, (role, title, fits) in enumerate(zip(typical, chosen, holds, strict=True), start=1)
    ]


def _stands_out(role: Typical) -> bool:
    return role.neighbors > role.connected


def _spans(role: Typical) -> bool:
    return (role.communities or 0.0) > 1.3
