"""Where the cosine of two vectors comes from: parts and input columns whose shares add up to it.

The generator is e = activation(x W); structural columns that go past T are added as they are. With the slope
g = activation(x W) / (x W), dimension by dimension, e is the sum over the inputs p of c_p = x_p W_p g, where
g = 1 for columns past T: every input has a vector, and they add up to e exactly. Scaled to length 1, u is the
sum of such vectors for one node and v for the other, and inputs G with sums u_G and v_G have::

    alike   (u_G v + u v_G) / 2       over all inputs this adds up to u v, the cosine
    weight  (u_G u + v_G v) / 2       over all inputs this adds up to 1
    apart   weight - alike            over all inputs this adds up to 1 - cosine

The parts are *place* (what both see at the same nodes: of the two weights that T gives a node the smaller),
*content* (features seen at other nodes) and *structure* (structural columns). Single columns have shares too.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse

from spinegraph.generator import Generator
from spinegraph.structure.profile import RootedPageRank

CONTENT, PLACE, STRUCTURE, NOTHING = "content", "place", "structure", "nothing"


@dataclass(frozen=True)
class Part:
    """What one part of the inputs does to the similarity of two nodes.

    Attributes
    ----------
    name : str
        ``"content"``, ``"place"`` or ``"structure"``; ``"nothing"`` stands for two zero vectors.
    alike : float
        Its share of the cosine; all parts add up to it.
    weight : float
        Its share of the two vectors; all parts add up to 1.

    Examples
    --------
    >>> round(Part("content", alike=0.5, weight=0.75).apart, 3)
    0.25
    """

    name: str
    alike: float
    weight: float

    @property
    def apart(self) -> float:
        """Its share of what is missing to a cosine of 1."""
        return self.weight - self.alike


@dataclass(frozen=True)
class Column(Part):
    """What one input column does to the similarity of two nodes.

    Attributes
    ----------
    values : pair of float
        What the generator reads for the first and for the second node.
    is_structural : bool
        Whether the column is made from structure alone.

    Examples
    --------
    >>> Column("word", 0.1, 0.1, (0.2, 0.0), False).values
    (0.2, 0.0)
    """

    values: tuple[float, float]
    is_structural: bool


@dataclass(frozen=True, eq=False)
class Columns:
    """What all the input columns do that are not 0 for both nodes, as arrays.

    Attributes
    ----------
    names : array of str (p,)
    values : float64 array (2, p)
    alike, weight : float64 arrays (p,)
    is_structural : bool array (p,)

    Examples
    --------
    >>> names, values, ones = np.array(["red", "blue"]), np.array([[1.0, 2.0], [1.0, 0.0]]), np.ones(2)
    >>> found = Columns(names, values, 0.3 * ones, 0.5 * ones, np.zeros(2, bool))
    >>> [column.name for column in found.shared(5)], len(found)
    (['red'], 2)
    """

    names: NDArray[Any]
    values: NDArray[np.float64]
    alike: NDArray[np.float64]
    weight: NDArray[np.float64]
    is_structural: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.names)

    def shared(self, most: int, *, structural: bool | None = None) -> list[Column]:
        """Return the columns that both nodes have and that add most; all, or (no) structural ones."""
        both = self.values[0] * self.values[1] > 0
        return self._leading(self.alike, both & self._of_kind(structural), most)

    def apart(self, most: int, *, structural: bool | None = None) -> list[Column]:
        """Return the columns that set the two nodes apart most; all, or (no) structural ones."""
        return self._leading(self.weight - self.alike, self._of_kind(structural), most)

    def structural(self) -> list[Column]:
        """Return the structural columns, in order."""
        return [self._column(place) for place in np.flatnonzero(self.is_structural)]

    def _of_kind(self, structural: bool | None) -> NDArray[np.bool_]:
        return np.ones(len(self), bool) if structural is None else self.is_structural == structural

    def _leading(self, score: NDArray[Any], chosen: NDArray[np.bool_], most: int) -> list[Column]:
        places = np.flatnonzero(chosen & (score > 0))
        order = np.argsort(-score[places], kind="stable")[:most]
        return [self._column(place) for place in places[order]]

    def _column(self, place: Any) -> Column:
        one, other = self.values[:, place].tolist()
        return Column(
            str(self.names[place]),
            float(self.alike[place]),
            float(self.weight[place]),
            (one, other),
            bool(self.is_structural[place]),
        )


@dataclass(frozen=True, eq=False)
class Comparison:
    """Two vectors taken apart.

    Attributes
    ----------
    cosine : float
        A zero vector points in a direction of its own: 1 to another one, 0 to all others.
    parts : tuple of Part
        Content, place and structure, those that the model has.
    columns : Columns
        Every input that is not 0 for both, in the generator's order.
    overlap : float
        Share of what both see that lies at the same nodes, from 0 to 1.
    """

    cosine: float
    parts: tuple[Part, ...]
    columns: Columns
    overlap: float


def compare(
    graph: Any, generator: Generator, positions: NDArray[np.int64], profile: RootedPageRank
) -> Comparison:
    """Take the vectors of two nodes apart.

    Parameters
    ----------
    graph : Graph or Overlay
    generator : Generator
    positions : int64 array (2,)
    profile : RootedPageRank
        Of the two.

    Examples
    --------
    >>> from spinegraph import SPINE, made
    >>> club = made.karate()
    >>> generator, pair = SPINE(dim=8, steps=5).fit(club).generator_, np.array([0, 33])
    >>> found = compare(club, generator, pair, generator.inputs.profile(club, pair))
    >>> [part.name for part in found.parts]
    ['place', 'structure']
    >>> bool(np.isclose(sum(part.alike for part in found.parts), found.cosine))
    True
    """
    inputs = generator.inputs
    values, shared, overlap = _inputs(graph, generator, positions, profile)
    used = np.flatnonzero(values.any(axis=0) | (shared != 0))
    values, shared, rows = values[:, used], shared[used], generator.weights[used].astype(np.float64)  # (p, d)
    names, is_structural = np.array(inputs.names, dtype=object)[used], used >= _num_features(generator)
    is_past = used >= inputs.num_through
    beside = values[:, is_past] @ rows[is_past]  # (2, d)
    before = values[:, ~is_past] @ rows[~is_past]  # (2, d)
    content = generator.activated(before.astype(np.float32)).astype(np.float64)
    lengths = np.sqrt(np.square(content + beside).sum(axis=1, keepdims=True))
    if not lengths.all():
        return _of_nothing(lengths, names, values, is_structural, overlap)
    slopes = np.divide(content, before, out=np.ones_like(before), where=before != 0) / lengths
    unit = (content + beside) / lengths

    def along(vectors: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return what a unit of each input adds along two unit vectors (2, d): (2, p)."""
        found: NDArray[np.float64] = (slopes * vectors) @ rows.T
        found[:, is_past] = (vectors / lengths) @ rows[is_past].T
        return found

    to_other, to_own = along(unit[::-1]), along(unit)
    elsewhere = values - shared
    groups = {PLACE: np.broadcast_to(shared, values.shape)}
    if inputs.encoder is not None:
        groups = {CONTENT: elsewhere * ~is_structural, **groups}
    if inputs.columns:
        groups[STRUCTURE] = elsewhere * is_structural
    parts = tuple(
        Part(name, float((group * to_other).sum() / 2), float((group * to_own).sum() / 2))
        for name, group in groups.items()
    )
    alike, weight = (values * to_other).sum(axis=0) / 2, (values * to_own).sum(axis=0) / 2
    columns = Columns(names, values, alike, weight, is_structural)
    return Comparison(float(np.clip(unit[0] @ unit[1], -1, 1)), parts, columns, overlap)


def _inputs(
    graph: Any, generator: Generator, positions: NDArray[np.int64], profile: RootedPageRank
) -> tuple[NDArray[np.float64], NDArray[np.float64], float]:
    """Return what the generator reads for two nodes (2, f), of that what it reads at the same nodes (f,)."""
    inputs = generator.inputs
    operator = profile.operator()  # (2, n)
    seen, places = np.unique(operator.indices, return_inverse=True)  # (t,)
    around = inputs.around(graph, seen.astype(np.int64))  # (t, through)
    seeing = np.zeros((2, len(seen)), dtype=np.float32)
    seeing[np.repeat([0, 1], np.diff(operator.indptr)), places] = operator.data
    both = seeing.min(axis=0)  # (t,)
    past = inputs.structural(graph, positions, profile) if inputs.past else np.zeros((2, 0), np.float32)
    values = np.hstack([_dense(seeing @ around), past]).astype(np.float64)
    shared = np.hstack([_dense(both[None] @ around)[0], np.zeros(past.shape[1])])
    return values, shared, float(both.sum())


def _of_nothing(
    lengths: NDArray[np.float64],
    names: NDArray[Any],
    values: NDArray[np.float64],
    is_structural: NDArray[np.bool_],
    overlap: float,
) -> Comparison:
    """Compare vectors of which one at least is zero: no input has a share in it."""
    cosine = 0.0 if lengths.any() else 1.0
    none = np.zeros(len(names))
    columns = Columns(names, values, none, none, is_structural)
    return Comparison(cosine, (Part(NOTHING, cosine, 1.0),), columns, overlap)


def _num_features(generator: Generator) -> int:
    encoder = generator.inputs.encoder
    return 0 if encoder is None else encoder.num_features


def _dense(matrix: Any) -> NDArray[Any]:
    found: NDArray[Any] = csr_array(matrix).toarray() if issparse(matrix) else np.asarray(matrix)
    return found
