"""The items of the paper by name, loaded on first use."""

from importlib import import_module

from spinegraph.errors import ParameterError
from spinegraph.reproduce.item import Item

_HOMES = {  # item: module, in the order of ``all``
    "table1": "transductive",
    "table2": "inductive",
    "ppi": "tissues",
    "runtime": "runtime",
    "mirror": "mirrors",
    "perturbation": "mirrors",
    "mirror-inductive": "mirrors",
    "correlation": "correlations",
    "alpha": "parameters",
    "lambda": "parameters",
    "case-study": "case_study",
}
NAMES = tuple(_HOMES)


def item(name: str) -> Item:
    """Return an item.

    Examples
    --------
    >>> item("table1").cases
    ('citeseer', 'cora', 'pubmed')
    """
    if name not in _HOMES:
        raise ParameterError(f"WHAT must be all or one of {', '.join(NAMES)}; got {name!r}")
    found: Item = import_module(f"spinegraph.reproduce.items.{_HOMES[name]}").ITEMS[name]
    return found
