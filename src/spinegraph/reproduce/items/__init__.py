"""The items of the paper by name, loaded on first use."""

from importlib import import_module

from spinegraph.errors import ParameterError
from spinegraph.reproduce.item import Item
from spinegraph.reproduce.names import HOMES, NAMES


def item(name: str) -> Item:
    """Return an item.

    Examples
    --------
    >>> item("table1").cases
    ('citeseer', 'cora', 'pubmed')
    """
    if name not in HOMES:
        raise ParameterError(f"WHAT must be all or one of {', '.join(NAMES)}; got {name!r}")
    found: Item = import_module(f"spinegraph.reproduce.items.{HOMES[name]}").ITEMS[name]
    return found
