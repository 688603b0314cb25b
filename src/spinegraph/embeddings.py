"""Embeddings: node names and their vectors."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinegraph.atomic import require_writable
from spinegraph.errors import GraphFormatError, MissingFileError, ParameterError, UnknownNodeError

_ENDINGS = (".npz", ".parquet", ".csv", ".txt")
PROJECTOR = ".projector"


def require_savable(path: str | Path) -> None:
    """Refuse a path that embeddings cannot be saved to, before the work of making them.

    Examples
    --------
    >>> require_savable("vectors.parquet")
    """
    path = Path(path)
    if path.suffix not in (*_ENDINGS, PROJECTOR):
        raise ParameterError(
            f"{path}: embeddings are saved as {', '.join(_ENDINGS)} or {PROJECTOR}; got {path.suffix!r}"
        )
    if not path.parent.is_dir():
        raise MissingFileError(f"{path}: there is no folder {path.parent}; make it first")
    require_writable(path)


@dataclass(frozen=True, eq=False)
class Embeddings:
    """Vectors of nodes, in the order of the graph they come from.

    Attributes
    ----------
    names : array (n,)
    vectors : float32 array (n, d)
        Finite.

    Examples
    --------
    >>> emb = Embeddings(np.array(["ann", "bob"], dtype=object), np.eye(2, dtype=np.float32))
    >>> emb["bob"]
    array([0., 1.], dtype=float32)
    >>> len(emb), emb.dim, "cy" in emb
    (2, 2, False)
    """

    names: NDArray[Any]
    vectors: NDArray[np.float32]

    def __post_init__(self) -> None:
        """Check shapes and values once."""
        vectors = np.ascontiguousarray(self.vectors, dtype=np.float32)
        if vectors.ndim != 2 or len(self.names) != len(vectors):
            raise GraphFormatError(
                f"vectors must be one row per name; got {len(self.names)} names and shape {vectors.shape}"
            )
        if not np.isfinite(vectors).all():
            raise GraphFormatError("vectors must be finite; got NaN or infinity")
        object.__setattr__(self, "names", np.asarray(self.names))
        object.__setattr__(self, "vectors", vectors)

    def __len__(self) -> int:
        return len(self.names)

    def __iter__(self) -> Iterator[Any]:
        """Iterate over the names."""
        return iter(self.names.tolist())

    def __contains__(self, name: object) -> bool:
        try:
            return name in self._places
        except TypeError:  # a list, which can be no name
            return False

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        """Return the vectors where NumPy or scikit-learn ask for an array; it would list the names else."""
        return np.array(self.vectors, dtype=dtype, copy=copy)

    def __getitem__(self, name: Any) -> NDArray[np.float32]:
        """Return one node's vector (d,)."""
        vector: NDArray[np.float32] = self.vectors[self.position(name)]
        return vector

    def __repr__(self) -> str:
        return f"Embeddings({len(self):,} nodes, {self.dim} dimensions)"

    def _repr_html_(self) -> str:
        from spinegraph.model_html import embeddings_html

        return embeddings_html(self)

    @property
    def dim(self) -> int:
        """Length of a vector."""
        return int(self.vectors.shape[1])

    @cached_property
    def _places(self) -> dict[Any, int]:
        return {name: place for place, name in enumerate(self.names.tolist())}

    def position(self, name: Any) -> int:
        """Return the place of one node among the vectors."""
        try:
            return self._places[name]
        except (KeyError, TypeError):  # not there, or nothing that could be: a list
            raise UnknownNodeError(f"no vector for {name!r}; the {len(self)} names are in .names") from None

    def of(self, names: Iterable[Any]) -> NDArray[np.float32]:
        """Return the vectors of some nodes, in the order asked for."""
        return self.vectors[[self.position(name) for name in names]]

    def save(self, path: str | Path) -> None:
        """Write to ``.npz``, ``.parquet``, ``.csv`` or word2vec ``.txt``, whole or not at all.

        ``.projector`` is a folder for TensorBoard: ``tensorboard --logdir people.projector``.
        """
        from spinegraph.embedding_files import write
        from spinegraph.projector_folder import write_projector

        path = Path(path)
        require_savable(path)
        (write_projector if path.suffix == PROJECTOR else write)(path, self.names, self.vectors)

    @classmethod
    def load(cls, path: str | Path) -> "Embeddings":
        """Read what ``save`` wrote."""
        from spinegraph.embedding_files import read

        path = Path(path)
        if not path.exists():
            raise MissingFileError(f"{path}: no such file")
        if path.suffix not in _ENDINGS:
            raise ParameterError(
                f"{path}: embeddings are read from {', '.join(_ENDINGS)}; got {path.suffix!r}"
            )
        return cls(*read(path))
