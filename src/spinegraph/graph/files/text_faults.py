"""Finds the line that made a fast reader stop: slow, exact, and only run when something is wrong."""

import math
from typing import NoReturn

import numpy as np

from spinegraph.errors import GraphFormatError
from spinegraph.graph.files.text_blocks import WHITESPACE, Block, is_skipped, shown
from spinegraph.graph.files.text_layout import NUMBER, Layout, Record, decoded, is_integer, split_line

_LARGEST_WEIGHT = float(np.finfo(np.float32).max)


class NotIntegersError(Exception):
    """Some name is no integer, though the file began as if all were."""


def explain_fault(block: Block, layout: Layout, fault: str) -> NoReturn:
    r"""Raise a GraphFormatError that names the first bad line of a block.

    Raises NotIntegersError instead where the line is sound but for a name that is text.

    Examples
    --------
    >>> from spinegraph.graph.files.columns import EdgeOptions
    >>> from spinegraph.graph.files.text_layout import find_layout
    >>> block = Block(1, b"1 2 0.5\n1 3 heavy\n")
    >>> explain_fault(block, find_layout(block, "tiny.txt", EdgeOptions()), "no number")
    Traceback (most recent call last):
    ...
    spinegraph.errors.GraphFormatError: tiny.txt:2: the weight 'heavy' is not a number: '1 3 heavy'. ...
    """
    line, skip_header = block.first_line, layout.begins_with_header(block)
    for line, raw in enumerate(block.data.split(b"\n"), block.first_line):
        text = decoded(raw, layout.path, line)
        if is_skipped(text, layout.options.comments):
            continue
        if skip_header:
            skip_header = False
            continue
        _check_record(Record(line, text, split_line(text, layout.delimiter)), layout)
    raise GraphFormatError(
        f"{layout.path}: lines {block.first_line} to {line} cannot be read: {shown(fault, 200)}"
    )


def _check_record(record: Record, layout: Layout) -> None:
    place = f"{layout.path}:{record.line}"
    if layout.delimiter != WHITESPACE and record.text.count('"') % 2:
        raise GraphFormatError(
            f"{place}: a quote is opened but not closed: {shown(record.text)}; close or remove it"
        )
    if len(record.fields) != layout.width:
        raise GraphFormatError(
            f"{place}: {_expected(layout)}, got {_count(record)}: {shown(record.text)}{_way(layout)}"
        )
    for role, position in (("source", layout.columns.source), ("target", layout.columns.target)):
        _check_name(record, record.fields[position].strip(), role, place, layout)
    if layout.columns.weight is not None:
        _check_weight(record, record.fields[layout.columns.weight].strip(), place)


def _expected(layout: Layout) -> str:
    if layout.width == 2:
        return "expected 'source target'"
    if layout.width == 3 and layout.columns.weight is not None:
        return "expected 'source target weight'"
    return f"expected {layout.width} fields as on the first line"


def _count(record: Record) -> str:
    return f"{len(record.fields)} field{'' if len(record.fields) == 1 else 's'}"


def _way(layout: Layout) -> str:
    if layout.width == 2:
        return ". For weighted edges give every line a weight and pass weighted=True"
    return ". Give every line the same fields"


def _check_name(record: Record, name: str, role: str, place: str, layout: Layout) -> None:
    n = layout.options.num_nodes
    if not name:
        raise GraphFormatError(
            f"{place}: the {role} is empty: {shown(record.text)}; every edge needs two names"
        )
    if layout.names == "integer" and not is_integer(name):
        if layout.options.names == "integer" or n is not None:
            wanted = "num_nodes is given" if n is not None else "names='integer'"
            raise GraphFormatError(
                f"{place}: the {role} {shown(name)} is not an integer, but {wanted}: {shown(record.text)}"
            )
        raise NotIntegersError
    if n is not None and layout.names == "integer" and not 0 <= int(name) < n:
        raise GraphFormatError(
            f"{place}: the {role} {name} is out of range: {shown(record.text)}; "
            f"with num_nodes={n}, ids are 0 .. {n - 1}"
        )


def _check_weight(record: Record, weight: str, place: str) -> None:
    if not NUMBER.fullmatch(weight):
        rule = f"the weight {shown(weight)} is not a number"
    elif not math.isfinite(float(weight)):
        rule = f"the weight {shown(weight)} is not finite"
    elif float(weight) < 0:
        rule = f"the weight {shown(weight)} is negative"
    elif float(weight) > _LARGEST_WEIGHT:
        rule = f"the weight {shown(weight)} is more than float32 holds"
    else:
        return
    raise GraphFormatError(
        f"{place}: {rule}: {shown(record.text)}. Weights are finite numbers, 0 or more; "
        "weighted=False leaves them out"
    )
