"""Names: as a path writes them, and as somebody begins to type them."""

import re
from bisect import bisect_left
from threading import Lock
from typing import Any
from urllib.parse import unquote

from spinegraph.apps.server.changes import Name
from spinegraph.apps.server.live import Snapshot
from spinegraph.apps.server.problems import ProblemError
from spinegraph.graph.names import quoted

_LAST = chr(0x10FFFF)
_SLASH = "\ufdd0"  # no character of any text: stands for a slash that a percent sign hides
_NODES = b"/v1/nodes/"
_HIDDEN = re.compile("%2f", re.IGNORECASE)


class Directory:
    """Finds nodes by what a request calls them.

    Examples
    --------
    >>> from spinegraph import SPINE, made
    >>> from spinegraph.apps.server.live import Live
    >>> model = SPINE(dim=4, steps=5).fit(made.barbell(8, bridge=4))
    >>> now = Live(model.generator_, model.graph_).tip
    >>> Directory().find(now, "7"), Directory().beginning(now, "1", 3)
    ((7, 7), ([1, 10, 11], 11))
    """

    def __init__(self) -> None:
        self._base: Any = None
        self._sorted: list[tuple[str, Name]] = []
        self._lock = Lock()

    def find(self, snapshot: Snapshot, text: str, field: str = "path.name") -> tuple[Name, int]:
        """Return the node that a path names and its position: the text itself, or the number it writes."""
        text = text.replace(_SLASH, "/")
        for name in (text, _whole(text)):
            if name is not None:
                position = snapshot.overlay.position(name)
                if position >= 0:
                    return name, position
        raise ProblemError(404, f"no node {quoted(text)}", field=field, rule="a name in the graph")

    def beginning(self, snapshot: Snapshot, text: str, most: int) -> tuple[list[Name], int]:
        """Return names that begin with a text, whatever the case, shortest first, and how many there are."""
        wanted, overlay = text.casefold(), snapshot.overlay
        listed = self._listed(snapshot)
        start = bisect_left(listed, wanted, key=_text)
        stop = bisect_left(listed, wanted + _LAST, key=_text)
        names = [name for _, name in listed[start:stop]]
        names += [name for name in overlay.added.listed() if str(name).casefold().startswith(wanted)]
        names = list(dict.fromkeys(names))
        if overlay.num_nodes < len(overlay) and names:
            names = [name for name, at in zip(names, overlay.find(names).tolist(), strict=True) if at >= 0]
        return sorted(names, key=lambda name: (len(str(name)), str(name)))[:most], len(names)

    def _listed(self, snapshot: Snapshot) -> list[tuple[str, Name]]:
        base = snapshot.overlay.base
        with self._lock:
            if self._base is not base:
                pairs = ((str(name).casefold(), name) for name in base.names.tolist())
                self._base, self._sorted = base, sorted(pairs, key=_text)
            return self._sorted


def routed(path: str, raw: bytes) -> str:
    """Return a request's path in which a slash of a node's name parts nothing; ``find`` knows it again.

    Examples
    --------
    >>> routed("/v1/nodes/a/similar", b"/v1/nodes/a%2Fsimilar").endswith("/similar")
    False
    """
    if not raw.startswith(_NODES) or b"%2" not in raw:
        return path
    return _SLASH.join(map(unquote, _HIDDEN.split(raw.decode("ascii", "replace"))))


def alias(name: Name) -> Name | None:
    """Return the other name that a path writes alike: the text of a number, or the number of a text.

    Examples
    --------
    >>> alias(7), alias("7"), alias("07")
    ('7', 7, None)
    """
    return str(name) if isinstance(name, int) else _whole(name)


def _text(pair: tuple[str, Name]) -> str:
    return pair[0]


def _whole(text: str) -> int | None:
    digits = text.removeprefix("-")
    if not (digits.isascii() and digits.isdigit() and len(digits) <= 19):
        return None
    value = int(text)
    return value if -(2**63) <= value < 2**63 and str(value) == text else None
