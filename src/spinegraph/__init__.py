"""Node vectors that know where a node lives and what role it plays.

>>> import spinegraph as sg
>>> sg.__version__.count(".")
2
"""

# ruff: noqa: F401  (imports for editors, which do not follow lazy loading)

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # for editors; at run time names are loaded on first use
    from spinegraph import errors
    from spinegraph.analysis import plots as plot
    from spinegraph.config import Config
    from spinegraph.embeddings import Embeddings
    from spinegraph.estimator import SPINE
    from spinegraph.graph import datasets
    from spinegraph.graph import synthetic as made
    from spinegraph.graph.encoder import FeatureEncoder
    from spinegraph.graph.graph import Graph
    from spinegraph.graph.read import build_store, read_graph
    from spinegraph.graph.store import open_store, write_store
    from spinegraph.parts.generator import Generator
    from spinegraph.structure.pagerank import rooted_pagerank

__version__ = "0.2.0"

# Public name -> its module, loaded on first use (PEP 562) so that importing the package is quick.
_MODULE_OF = {
    "Config": "spinegraph.config",
    "Embeddings": "spinegraph.embeddings",
    "FeatureEncoder": "spinegraph.graph.encoder",
    "Graph": "spinegraph.graph.graph",
    "Generator": "spinegraph.parts.generator",
    "SPINE": "spinegraph.estimator",
    "build_store": "spinegraph.graph.read",
    "datasets": "spinegraph.graph.datasets",
    "errors": "spinegraph.errors",
    "made": "spinegraph.graph.synthetic",
    "open_store": "spinegraph.graph.store",
    "plot": "spinegraph.analysis.plots",
    "read_graph": "spinegraph.graph.read",
    "rooted_pagerank": "spinegraph.structure.pagerank",
    "write_store": "spinegraph.graph.store",
}

_MODULES = {"datasets", "errors", "made", "plot"}

__all__ = sorted(["__version__", *_MODULE_OF])


def __getattr__(name: str) -> Any:
    """Load a public name from its module on first use."""
    if name not in _MODULE_OF:
        raise AttributeError(f"module 'spinegraph' has no attribute {name!r}")
    module = import_module(_MODULE_OF[name])
    value = module if name in _MODULES else getattr(module, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """Return the public names."""
    return __all__
