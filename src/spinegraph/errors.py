"""Everything spinegraph raises or warns about.

Each error is also a child of the builtin it refines, so both kinds of ``except`` work::

    SpineError
    ├── GraphFormatError       (ValueError)         a graph, edge list or table that breaks a rule
    │   └── MissingFeaturesError                    features that do not match the nodes or the model
    ├── ParameterError         (ValueError)         an argument or setting outside its range
    ├── ModelFormatError       (ValueError)         a model folder that cannot be trusted
    ├── UnknownNodeError       (KeyError)           a name that is not in the graph
    ├── MissingFileError       (FileNotFoundError)  nothing is there
    ├── OutputError            (OSError)            a place that cannot be written to
    ├── MissingPackageError    (ImportError)        an optional package is not installed
    └── ClusterError           (ConnectionError)    a cluster does not answer, or cannot do the work

    SpineWarning               (UserWarning)
    ├── DirectedInputWarning                        a directed graph was made symmetric
    ├── EdgeCleaningWarning                         edges were dropped or merged
    ├── SkippedColumnWarning                        a table column was left out
    ├── UncachedKernelsWarning                      compiled code cannot be kept for the next process
    └── UnfamiliarDataWarning                       data unlike what the model was fitted on

``NotFittedError`` is a child of SpineError and of scikit-learn's own, made on first use since scikit-learn is
slow to load.
"""

from typing import Any


class SpineError(Exception):
    """Any error that spinegraph raises on purpose."""


class GraphFormatError(SpineError, ValueError):
    """A graph, edge list or feature table that breaks a rule."""


class MissingFeaturesError(GraphFormatError):
    """Features that do not match the graph's nodes or the fitted model."""


class ParameterError(SpineError, ValueError):
    """An argument or setting outside its range."""


class ModelFormatError(SpineError, ValueError):
    """A model folder that is missing, truncated, newer or not to be trusted."""


class UnknownNodeError(SpineError, KeyError):
    """A node name that is not in the graph."""

    def __str__(self) -> str:
        """Return the message itself: KeyError would show its repr."""
        return str(self.args[0]) if self.args else ""


class MissingFileError(SpineError, FileNotFoundError):
    """A path where nothing is."""


class OutputError(SpineError, OSError):
    """A place that cannot be written to: read-only, full or not there; what it held is untouched."""


class MissingPackageError(SpineError, ImportError):
    """An optional package that the call needs is not installed."""


class ClusterError(SpineError, ConnectionError):
    """A cluster that does not answer, or whose machines cannot do the work; what is finished stays."""


class SpineWarning(UserWarning):
    """Any warning that spinegraph gives."""


class DirectedInputWarning(SpineWarning):
    """A directed graph was made symmetric."""


class EdgeCleaningWarning(SpineWarning):
    """Edges were dropped or merged while a graph was built."""


class SkippedColumnWarning(SpineWarning):
    """A column of a feature table was left out."""


class UncachedKernelsWarning(SpineWarning):
    """Compiled code cannot be kept on disk; every process compiles it again."""


class UnfamiliarDataWarning(SpineWarning):
    """Data given to a fitted model lies outside what it was fitted on."""


def __getattr__(name: str) -> Any:
    """Make ``NotFittedError`` when it is first asked for."""
    if name != "NotFittedError":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from sklearn.exceptions import NotFittedError as Original

    made = type("NotFittedError", (SpineError, Original), {"__doc__": "A model that was not fitted yet."})
    made.__module__ = __name__
    globals()[name] = made
    return made
