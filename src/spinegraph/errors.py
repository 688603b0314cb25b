"""The errors and warnings of spinegraph.

Each error is also a subclass of the builtin it refines, so both kinds of ``except`` work::

    SpineError
    ├── GraphFormatError       (ValueError)         a graph, edge list or table that breaks a rule
    │   └── MissingFeaturesError                    features that do not fit the nodes or the model
    ├── ParameterError         (ValueError)         an argument or setting outside its range
    ├── ModelFormatError       (ValueError)         a model folder that cannot be trusted
    ├── UnknownNodeError       (KeyError)           a name that is not in the graph
    ├── MissingFileError       (FileNotFoundError)  a file or folder that does not exist
    ├── OutputError            (OSError)            a path that cannot be written to
    ├── MissingPackageError    (ImportError)        an optional package is not installed
    └── ClusterError           (ConnectionError)    a cluster does not answer, or cannot do the work

    SpineWarning               (UserWarning)
    ├── DirectedInputWarning                        a directed graph was made symmetric
    ├── EdgeCleaningWarning                         edges were dropped or merged
    ├── SkippedColumnWarning                        a table column was left out
    ├── UncachedKernelsWarning                      compiled code cannot be cached on disk
    └── UnfamiliarDataWarning                       data unlike what the model was fitted on

``NotFittedError`` is a subclass of SpineError and of scikit-learn's error of that name, created on first use
because importing scikit-learn is slow.
"""

from typing import Any


class SpineError(Exception):
    """Base class of every error that spinegraph raises on purpose."""


class GraphFormatError(SpineError, ValueError):
    """A graph, edge list or feature table that breaks a rule."""


class MissingFeaturesError(GraphFormatError):
    """Features that do not fit the graph's nodes or the fitted model."""


class ParameterError(SpineError, ValueError):
    """An argument or setting outside its range."""


class ModelFormatError(SpineError, ValueError):
    """A model folder that is missing, truncated, damaged or of a newer version."""


class UnknownNodeError(SpineError, KeyError):
    """A node name that is not in the graph."""

    def __str__(self) -> str:
        """Return the message itself: KeyError would show its repr."""
        return str(self.args[0]) if self.args else ""


class MissingFileError(SpineError, FileNotFoundError):
    """A file or folder that does not exist."""


class OutputError(SpineError, OSError):
    """A path that cannot be written to: read-only, full or missing; what was there is untouched."""


class MissingPackageError(SpineError, ImportError):
    """An optional package that the call needs is not installed."""


class ClusterError(SpineError, ConnectionError):
    """A cluster that does not answer, or whose machines cannot do the work; finished results are kept."""


class SpineWarning(UserWarning):
    """Base class of every warning that spinegraph gives."""


class DirectedInputWarning(SpineWarning):
    """A directed graph was made symmetric."""


class EdgeCleaningWarning(SpineWarning):
    """Edges were dropped or merged while a graph was built."""


class SkippedColumnWarning(SpineWarning):
    """A column of a feature table was left out."""


class UncachedKernelsWarning(SpineWarning):
    """Compiled code cannot be cached on disk, so every process compiles it again."""


class UnfamiliarDataWarning(SpineWarning):
    """Data given to a fitted model lies outside what it was fitted on."""


def __getattr__(name: str) -> Any:
    """Create ``NotFittedError`` on first use."""
    if name != "NotFittedError":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from sklearn.exceptions import NotFittedError as Original

    made = type("NotFittedError", (SpineError, Original), {"__doc__": "A model that is not fitted yet."})
    made.__module__ = __name__
    globals()[name] = made
    return made
