"""Decides which columns of an edge table hold source, target and weight, and says how it decided."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from spinegraph.errors import GraphFormatError, ParameterError

WEIGHT_NAMES = ("weight", "weights", "w", "edgeweight", "strength")
_PAIRS = (
    *(("source", "target"), ("src", "dst"), ("src", "dest"), ("from", "to"), ("u", "v"), ("i", "j")),
    *(("sourceid", "targetid"), ("srcid", "dstid"), ("fromid", "toid"), ("fromnode", "tonode")),
    *(("fromnodeid", "tonodeid"), ("sourcenode", "targetnode"), ("start", "end"), ("head", "tail")),
    *(("node1", "node2"), ("nodea", "nodeb"), ("id1", "id2"), ("node", "neighbor"), ("node", "neighbour")),
)


@dataclass(frozen=True)
class EdgeOptions:
    """What the caller says about an edge file; None means: look.

    Attributes
    ----------
    columns : two or three names or positions, optional
        Source, target and, with a third, weight.
    weighted : bool, optional
        Whether the file has a weight column.
    header : bool, optional
        Whether the first line names the columns (text only).
    delimiter : str, optional
        One character; a space stands for any white space (text only).
    comments : tuple of str
        A line that begins with one of these is skipped (text only).
    names : {"integer", "text"}, optional
        What node names are.
    num_nodes : int, optional
        Nodes are 0 .. num_nodes-1.
    """

    columns: Sequence[str | int] | None = None
    weighted: bool | None = None
    header: bool | None = None
    delimiter: str | None = None
    comments: Sequence[str] = ("#", "%")
    names: str | None = None
    num_nodes: int | None = None

    def __post_init__(self) -> None:
        for field in ("columns", "comments"):  # as they may come from a caller: any sequence
            value = getattr(self, field)
            if value is not None and not isinstance(value, str):
                object.__setattr__(self, field, tuple(value))
        if self.columns is not None and (isinstance(self.columns, str) or len(self.columns) not in (2, 3)):
            raise ParameterError(
                f"columns must be (source, target) or (source, target, weight); got {self.columns!r}"
            )
        if self.columns is not None and len(self.columns) == 3 and self.weighted is False:
            raise ParameterError("columns names a weight, but weighted is False; leave one of them out")
        if self.delimiter is not None and not (
            len(self.delimiter) == 1 and self.delimiter.isascii() and self.delimiter not in '\0"\r\n'
        ):
            raise ParameterError(
                f"delimiter must be one ASCII character, ' ' for any white space; got {self.delimiter!r}"
            )
        if self.names not in (None, "integer", "text"):
            raise ParameterError(f"names must be 'integer', 'text' or None; got {self.names!r}")
        if isinstance(self.comments, str) or not all(
            isinstance(mark, str) and mark for mark in self.comments
        ):
            raise ParameterError(
                f"comments must be a tuple of line beginnings, such as ('#',); got {self.comments!r}"
            )
        if self.num_nodes is not None and (not isinstance(self.num_nodes, int) or self.num_nodes < 1):
            raise ParameterError(f"num_nodes must be a whole number of at least 1; got {self.num_nodes!r}")
        if self.num_nodes is not None and self.names == "text":
            raise ParameterError("num_nodes counts nodes 0 .. num_nodes-1; it does not go with names='text'")


@dataclass(frozen=True)
class EdgeColumns:
    """Positions of the columns that matter, and one sentence on how they were found."""

    source: int
    target: int
    weight: int | None
    note: str


def choose_columns(
    titles: Sequence[str] | None,
    width: int,
    options: EdgeOptions,
    place: str,
    third: Callable[[], str] = lambda: "number",
) -> EdgeColumns:
    """Choose the source, target and weight columns.

    Parameters
    ----------
    titles : sequence of str, optional
        Column names, where the file has them.
    width : int
        How many columns there are.
    options : EdgeOptions
        What the caller said.
    place : str
        File and line, for messages.
    third : callable
        Says what an untitled third column holds: ``"number"``, ``"nothing"`` or ``"text"``.

    Examples
    --------
    >>> choose_columns(["from", "to", "Weight"], 3, EdgeOptions(), "tiny.csv").weight
    2
    """
    if options.columns is not None:
        chosen = [_position(column, titles, width, place) for column in options.columns]
        pair, weight = chosen[:2], chosen[2] if len(chosen) == 3 else None
    else:
        pair, weight = _endpoints(titles, width, place), None
    if pair[0] == pair[1]:
        raise ParameterError(f"{place}: source and target cannot both be column {pair[0] + 1}")
    if weight is None and options.weighted is not False:
        weight, note = _weight(titles, width, pair, options, place, third)
    else:
        note = "weights are not read" if weight is None else f"weights are column {weight + 1}"
    ends = f"source is {_title(titles, pair[0])}, target is {_title(titles, pair[1])}"
    return EdgeColumns(pair[0], pair[1], weight, f"{ends}; {note}")


def is_title_pair(first: str, second: str) -> bool:
    """Return whether two texts are usual titles of a source and a target column.

    Examples
    --------
    >>> is_title_pair("FromNodeId", "ToNodeId"), is_title_pair("user_1", "user_2")
    (True, True)
    """
    first, second = _plain(first), _plain(second)
    if (first, second) in _PAIRS:
        return True
    return (
        len(first) > 2 and first[:-1] == second[:-1] and (first[-1], second[-1]) in (("1", "2"), ("a", "b"))
    )


def _plain(title: str) -> str:
    return re.sub(r"[^a-z0-9]", "", title.lower())


def _title(titles: Sequence[str] | None, position: int) -> str:
    return f"column {position + 1}" if titles is None else f"column {titles[position]!r}"


def _position(column: str | int, titles: Sequence[str] | None, width: int, place: str) -> int:
    if isinstance(column, int):
        if not 0 <= column < width:
            raise ParameterError(
                f"{place}: columns has position {column}; the file has positions 0 .. {width - 1}"
            )
        return column
    if titles is None:
        raise ParameterError(
            f"{place}: columns names {column!r}, but no header was found; "
            "pass header=True or positions such as (0, 1)"
        )
    if column not in titles:
        raise ParameterError(f"{place}: there is no column {column!r}; the columns are {', '.join(titles)}")
    return list(titles).index(column)


def _endpoints(titles: Sequence[str] | None, width: int, place: str) -> list[int]:
    if width < 2:
        raise GraphFormatError(
            f"{place}: expected 'source target', got {width} field; if another character parts the fields, "
            "pass delimiter=..."
        )
    if titles is not None:
        for first in range(width):
            for second in range(width):
                if first != second and is_title_pair(titles[first], titles[second]):
                    return [first, second]
    return [0, 1]


def _weight(
    titles: Sequence[str] | None,
    width: int,
    pair: list[int],
    options: EdgeOptions,
    place: str,
    third: Callable[[], str],
) -> tuple[int | None, str]:
    others = [position for position in range(width) if position not in pair]
    if titles is not None:
        for position in others:
            if _plain(titles[position]) in WEIGHT_NAMES:
                return position, f"weights are column {titles[position]!r}"
    if options.weighted:
        if not others:
            raise GraphFormatError(f"{place}: weighted=True needs a third column; the file has only 2")
        return others[0], f"weights are {_title(titles, others[0])}"
    if not others or options.columns is not None:
        return None, "no weights"
    if titles is not None:
        ignored = ", ".join(repr(titles[position]) for position in others[:5])
        return (
            None,
            f"no column is called weight, so {ignored} {'is' if len(others) == 1 else 'are'} not read",
        )
    if width > 3:
        raise GraphFormatError(
            f"{place}: {width} fields and no header, so it is unclear what they are; pass columns=(0, 1) for "
            "source and target, columns=(0, 1, 2) for weights too, or header=True"
        )
    what = third()
    if what == "text":
        raise GraphFormatError(
            f"{place}: the third field is not a number, so it is no weight; weighted=False leaves it out"
        )
    if what == "nothing":
        return None, "the third column holds nothing"
    return 2, "the third column holds numbers, taken as weights (weighted=False leaves them out)"
