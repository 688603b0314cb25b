"""Node vectors that know where a node lives and what role it plays.

>>> import spinegraph as sg
>>> sg.__version__.count(".")
2
"""

from importlib import import_module
from typing import Any

__version__ = "0.1.0"

# Public name -> the module that holds it, loaded on first use (PEP 562) so that the import is quick.
_HOMES = {
    "Config": "spinegraph.config",
    "Embeddings": "spinegraph.embeddings",
    "FeatureEncoder": "spinegraph.graph.encoder",
    "Graph": "spinegraph.graph.graph",
    "Generator": "spinegraph.generator",
    "SPINE": "spinegraph.estimator",
    "build_store": "spinegraph.graph.store_build",
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

__all__ = sorted(["__version__", *_HOMES])


def __getattr__(name: str) -> Any:
    """Load a public name from its home on first use."""
    if name not in _HOMES:
        raise AttributeError(f"module 'spinegraph' has no attribute {name!r}")
    module = import_module(_HOMES[name])
    value = module if name in _MODULES else getattr(module, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """Return the public names."""
    return __all__
