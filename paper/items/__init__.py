"""The items of the paper by name, loaded on first use."""

from importlib import import_module

from paper.item import Item
from paper.names import HOMES, NAMES
from spinegraph.errors import ParameterError


def item(name: str) -> Item:
    """Return an item.

    Examples
    --------
    >>> item("table1").cases
    ('citeseer', 'cora', 'pubmed')
    """
    if name not in HOMES:
        raise ParameterError(f"WHAT must be all or one of {', '.join(NAMES)}; got {name!r}")
    found: Item = import_module(f"paper.items.{HOMES[name]}").ITEMS[name]
    return found
