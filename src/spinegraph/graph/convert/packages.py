"""Optional packages, loaded where they are needed."""

import warnings
from importlib import import_module
from types import ModuleType

from spinegraph.errors import MissingPackageError


def optional_package(name: str) -> ModuleType:
    """Return an optional package of the ``graphs`` extra, or say how to install it.

    Examples
    --------
    >>> optional_package("networkx").__name__
    'networkx'
    """
    try:
        with warnings.catch_warnings():
            # What a package has to say about its own imports is not for our caller.
            warnings.simplefilter("ignore")
            return import_module(name)
    except ImportError as error:
        raise MissingPackageError(
            f"{name.partition('.')[0].replace('_', '-')} is needed here and could not be loaded ({error}); "
            "pip install 'spinegraph[graphs]'"
        ) from error
