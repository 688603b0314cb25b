"""Generator: all parts of a model and the vectors they make, with NumPy, SciPy and kernels only."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spinegraph.config import PARTS, Config
from spinegraph.errors import MissingFeaturesError, ParameterError
from spinegraph.graph.encoder import FeatureEncoder
from spinegraph.graph.graph import Graph, GraphLike
from spinegraph.graph.overlay import Overlay
from spinegraph.kernels.walks import plain_walks
from spinegraph.parts.content import Content, Learned, learn, scaling_of, smoothers
from spinegraph.parts.place import Place, Positions, positions, strength
from spinegraph.parts.role import (
    Role,
    Surroundings,
    columns_of,
    log_degrees,
    moments,
    profile_of,
    role_columns,
    smoothed_degrees,
)
from spinegraph.structure.pagerank import RootedPageRank

# Lengths of place and role next to content, and of role relative to place without content.
_PLACE, _ROLE, _ROLE_TO_PLACE = 0.2, 0.15, 0.25
_MIN_PLACE = 0.05  # share of its length that place keeps if it says nothing about links
_FEW_NEIGHBORS = 3.0  # mean degree below which a node's links say too little about its role
_CHANCE = 0.2  # strength of place that small networks may show by chance
_SAMPLE, _WALK_LENGTH = 61, 40  # stage of the random draws and length of walks that sample training nodes
_MIN_EDGES = 10  # to learn from
_COLUMNS, _VALUES = 64, 1 << 26  # smoothed at a time, at most, to bound memory
_ENTRIES = 1 << 26  # of rows of T at a time, at most, as far as eight rows have fewer
ROWS = 65_536  # nodes finished at a time
Vectors = NDArray[np.float32]
Known = NDArray[np.int64] | None  # positions of nodes in the training network
Columns = Callable[[Graph, Config, NDArray[np.int64]], Vectors]  # returns columns of some nodes


class Chunk(NamedTuple):
    """Some columns of a part, for all nodes."""

    part: str
    columns: slice  # within the part


@dataclass(frozen=True, eq=False)
class Generator:
    """Turns features and structure into vectors of up to three parts.

    Attributes
    ----------
    config : Config
    content : Content or None
    place : Place or None
    role : Role or None
    weights : dict of part to float
        Weight of each part.
    learned : Learned or None
        How much learning gained on hidden links.
    directed : bool
        Whether vectors depend on the direction of edges.
    """

    config: Config
    content: Content | None
    place: Place | None
    role: Role | None
    weights: Mapping[str, float]
    learned: Learned | None = None
    directed: bool = False

    @property
    def parts(self) -> dict[str, slice]:
        """The columns of every part."""
        found, start = dict[str, slice](), 0
        for name in PARTS:
            if (part := getattr(self, name)) is not None:
                found[name] = slice(start, start + part.dim)
                start += part.dim
        return found

    @property
    def dim(self) -> int:
        """Length of a vector."""
        return max((part.stop for part in self.parts.values()), default=0)

    @property
    def encoder(self) -> FeatureEncoder | None:
        """The encoder that scales the features; None without content."""
        return None if self.content is None else self.content.encoder

    def with_config(self, **changes: Any) -> "Generator":
        """Return the generator with other settings, such as ``threads``."""
        return replace(self, config=replace(self.config, **changes).check())

    @classmethod
    def fit(
        cls,
        graph: Graph,
        config: Config,
        progress: Callable[[str, int, int], None],
        *,
        several: bool = False,
        builders: tuple[Positions, Columns] = (positions, columns_of),
    ) -> "Generator":
        """Fit all parts on a graph; ``several`` if it is the union of several networks.

        ``builders`` are functions that return positions for the place part, and columns for the role part.
        """
        widths = divide(config.dim, parts_of(config, graph, several), graph)
        nodes, core = _core(graph, config)
        content = place = role = learned = None
        if "content" in widths:
            progress("content", 0, 0)
            scaling = scaling_of(graph, config)
            encoder = FeatureEncoder.for_matrix(graph.features, scaling, graph.feature_names)
            content = Content.fit(core, widths["content"], config, encoder)
            if config.learning and content.can_learn and core.num_edges >= _MIN_EDGES:
                progress("learning from hidden links", 0, 0)
                content, learned = learn(content, core, config)
        if "place" in widths:
            progress("place", 0, 0)
            place = Place.fit(graph, widths["place"], config, builders[0])
        if "role" in widths:
            progress("role", 0, 0)
            role = Role.fit(builders[1](graph, config, nodes), widths["role"], config.seed)
        neighbors = float(graph.degrees.mean()) if len(graph) else 0.0
        place_strength = 0.0 if place is None else strength(graph, config)
        basic = dict.fromkeys(widths, 1.0)
        if len(widths) > 1:
            basic = _balance(content is not None, place_strength, neighbors)
        given = config.weights or {}
        weights = {name: basic[name] * given.get(name, 1.0) for name in widths}
        if not any(weights.values()):
            raise ParameterError(f"weights are 0 for all parts, {' and '.join(widths)}; leave one above 0")
        return cls(config, content, place, role, weights, learned, graph.directed)

    def state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Return all that vectors depend on, except names of training nodes, as JSON values and arrays."""
        about: dict[str, Any] = {
            "settings": self.config.deciding(),
            "weights": dict(self.weights),
            "learned": None if self.learned is None else [self.learned.before, self.learned.after],
            "encoder": None,
            "content_scale": None,
            "place_dim": None,
            "role_constant": None if self.role is None else self.role.constant,
            "directed": self.directed,
        }
        arrays = dict[str, NDArray[Any]]()
        if self.content is not None:
            about["encoder"], found = self.content.encoder.state()
            about["content_scale"] = self.content.scale
            arrays |= {f"encoder.{key}": array for key, array in found.items()}
            keys = "directions", "mean", "mixing", "offset"
            arrays |= {f"content.{key}": getattr(self.content, key) for key in keys}
        if self.role is not None:
            arrays |= {f"role.{key}": getattr(self.role, key) for key in ("mean", "scale", "rotation")}
        for name, part in (("content", self.content), ("role", self.role)):
            if part is not None and part.random_features is not None:
                arrays[f"{name}.ramps.matrix"] = part.random_features.matrix
                arrays[f"{name}.ramps.offset"] = part.random_features.offset
        if self.place is not None:
            about["place_dim"] = self.place.dim
            arrays |= {"place.positions": self.place.positions, "place.links": self.place.links}
        return about, arrays

    def require_features(self, graph: GraphLike) -> None:
        """Raise if the features of a graph are not those the model was fitted with."""
        if self.content is not None:
            self.content.require_features(graph)

    def profile(self, graph: GraphLike, positions: NDArray[np.int64] | None = None) -> RootedPageRank:
        """Return the profiles of all nodes, or of some."""
        return profile_of(graph, self.config, positions)

    def known(self, graph: GraphLike, same_network: bool | None = None) -> Known:
        """Return each node's position in the training network, or -1, (n,); None in another network."""
        if self.place is None or same_network is False:
            return None
        return self.place.known(graph, sure=bool(same_network))

    def embed(self, graph: GraphLike, known: Known = None) -> Vectors:
        """Return the vectors (n, d) of all nodes, given their training positions; see ``known``."""
        vectors = np.zeros((len(graph), self.dim), np.float32)
        for chunk in self.chunks(graph, known):
            vectors[:, self.at(chunk)] = self.smoothed(graph, chunk, known)
        around = self.surroundings(graph)
        for start in range(0, len(graph), ROWS):
            some = np.arange(start, min(start + ROWS, len(graph)))
            self.finish(vectors[some[0] : some[-1] + 1], self.role_rows(graph, some, around))
        return vectors

    def chunks(self, graph: GraphLike, known: Known, values: int | None = None) -> list[Chunk]:
        """Return the chunks in which to smooth vectors of all nodes, of about so many ``values`` each."""
        columns = int(np.clip((values or _VALUES) // max(len(graph), 1) // 8 * 8, 8, _COLUMNS))
        widths = {"content": 0 if self.content is None else len(self.content.offset)}
        if self.place is not None and known is not None:
            widths["place"] = self.place.positions.shape[1]
        return [
            Chunk(name, slice(start, min(start + columns, width)))
            for name, width in widths.items()
            for start in range(0, width, columns)
        ]

    def at(self, chunk: Chunk) -> slice:
        """Return the columns of a chunk within vectors."""
        first = self.parts[chunk.part].start
        return slice(first + chunk.columns.start, first + chunk.columns.stop)

    def smoothed(self, graph: GraphLike, chunk: Chunk, known: Known) -> Vectors:
        """Return the smoothed values (n, c) of a chunk."""
        around = smoothers(graph, self.config)
        if chunk.part == "content":
            assert self.content is not None
            return self.content.smoothed(graph, around, chunk.columns)
        assert self.place is not None
        assert known is not None
        return self.place.smoothed(around[0], known, chunk.columns)

    def surroundings(self, graph: GraphLike) -> Surroundings | None:
        """Return what the role part reads from the surroundings of all nodes; None without it."""
        return None if self.role is None else Surroundings.of(graph, smoothers(graph, self.config))

    def role_rows(
        self, graph: GraphLike, positions: NDArray[np.int64], around: Surroundings | None
    ) -> Vectors | None:
        """Return the role part (r, c) of some nodes."""
        if self.role is None or around is None:
            return None
        mine = replace(around, near=around.near[positions])
        return self.role.embed(role_columns(graph, self.config, positions, mine))

    def finish(self, vectors: Vectors, role: Vectors | None) -> None:
        """Turn the smoothed values of some nodes, and their role part, into vectors (r, d), in place."""
        if self.content is not None:
            columns = self.parts["content"]
            vectors[:, columns] = self.content.finished(vectors[:, columns][:, : len(self.content.offset)])
        if role is not None:
            vectors[:, self.parts["role"]] = role
        self._weigh(vectors)

    def _weigh(self, vectors: Vectors) -> None:
        for name, columns in self.parts.items():
            vectors[:, columns] *= np.float32(self.weights[name])

    def around_all(self, base: Graph, known: Known) -> "AroundAll | None":
        """Return the smoothed values of all nodes of a graph, with which vectors of overlays cost less.

        None for small graphs, which do not need it, and for directed graphs.
        """
        near, far, *directed = smoothers(base, self.config)
        if directed or far.is_quick:
            return None
        everyone = np.arange(len(base))
        far_values = None
        if self.content is not None:
            far_values = far.smooth(self.content.reader(base).at(everyone)) / far.root_degrees
        return AroundAll(near.smooth(self._read(base, known)(everyone)), far_values)

    def _read(self, graph: GraphLike, known: Known) -> Callable[[NDArray[np.int64]], Vectors]:
        """Return a function from positions to the values (m, c) that the parts smooth by T_near."""
        features = None if self.content is None else self.content.reader(graph)
        degrees = log_degrees(graph)

        def read(positions: NDArray[np.int64]) -> Vectors:
            blocks = [] if features is None else [features.at(positions)]
            if self.place is not None and known is not None:
                blocks.append(self.place.at(known[positions]))
            return np.hstack([*blocks, moments(degrees[positions])])

        return read

    def embed_some(
        self,
        graph: GraphLike,
        positions: NDArray[np.int64],
        known: Known = None,
        around_all: "AroundAll | None" = None,
    ) -> Vectors:
        """Return the vectors (r, d) of some nodes, at a cost in proportion to their number.

        A vector does not depend, to the last bit, on which others are requested. ``around_all`` holds the
        smoothed values of an overlay's base, if computed before; see ``Smoother.corrected``.
        """
        vectors = np.zeros((len(positions), self.dim), np.float32)
        block = max(8, _ENTRIES // max(len(graph), 1))
        for some in (slice(start, start + block) for start in range(0, len(positions), block)):
            vectors[some] = self._embed_block(graph, positions[some], known, around_all)
        return vectors

    def _embed_block(
        self, graph: GraphLike, positions: NDArray[np.int64], known: Known, around_all: "AroundAll | None"
    ) -> Vectors:
        near, far, *directed = smoothers(graph, self.config)
        vectors = np.zeros((len(positions), self.dim), np.float32)
        features = None if self.content is None else self.content.reader(graph)
        content, place = list[Vectors](), np.zeros((1, 1), np.float32)
        if around_all is not None and isinstance(graph, Overlay):
            values = near.corrected(graph, positions, around_all.near, self._read(graph, known))
            first = 0 if self.content is None else self.content.directions.shape[1]
            if features is not None and around_all.far is not None:
                content = [values[:, :first], far.corrected(graph, positions, around_all.far, features.at)]
            if self.place is not None and known is not None:
                place = self.place.embed_values(values[:, first:-2])
            role = values[:, -2:]
        else:
            rows, directed_rows = near.rows(positions), [each.rows(positions) for each in directed]
            if features is not None:
                content = [features.product(each) for each in (rows, far.rows(positions), *directed_rows)]
            if self.place is not None and known is not None:
                place = self.place.embed_some(rows, known)
            role = smoothed_degrees(graph, rows, directed_rows)
        if self.content is not None and features is not None:
            vectors[:, self.parts["content"]] = self.content.embed_some([features.at(positions), *content])
        if self.place is not None:
            vectors[:, self.parts["place"]] = place
        if self.role is not None:
            around = Surroundings.of_some(graph, positions, role)
            columns = role_columns(graph, self.config, positions, around)
            vectors[:, self.parts["role"]] = self.role.embed(columns)
        self._weigh(vectors)
        return vectors


class AroundAll(NamedTuple):
    """Smoothed values of all nodes of a graph: by T_near of all that parts read, by T_far of features."""

    near: Vectors  # (n, c)
    far: Vectors | None  # (n, r) divided by the roots of degrees


def _balance(has_content: bool, strength: float, neighbors: float) -> dict[str, float]:
    """Return the length of every part, given how well place predicts links, and the mean degree."""
    strength = max(0.0, strength - _CHANCE) / (1 - _CHANCE)
    role = float(np.clip(neighbors / _FEW_NEIGHBORS, 0.1, 1)) ** 2
    if has_content:
        return {
            "content": 1.0,
            "place": _PLACE * min(max(2 * strength, _MIN_PLACE), 1.0),
            "role": _ROLE * role,
        }
    odds = _ROLE_TO_PLACE * role * (1 - strength) / max(strength, 1e-2)
    return {"place": float(1 / np.sqrt(1 + odds**2)), "role": float(odds / np.sqrt(1 + odds**2))}


def _core(graph: Graph, config: Config) -> tuple[NDArray[np.int64], Graph]:
    """Return the positions that means and directions are fitted on, and the graph among them.

    These are all nodes or, in large networks, those that some random walks visit.
    """
    n, rng = len(graph), np.random.default_rng([config.seed, _SAMPLE])
    if n <= config.training_nodes:
        return np.arange(n), graph
    count, met = max(config.training_nodes // _WALK_LENGTH, 1), np.empty(0, np.int64)
    for _ in range(2):  # in small components, walks meet few nodes: more of them are needed
        roots = np.sort(rng.choice(n, min(count, n), replace=False))
        walks = plain_walks(graph.adjacency(), roots, 1, _WALK_LENGTH, config.seed, threads=config.threads)
        met = np.unique(walks[walks >= 0])[: config.training_nodes].astype(np.int64)
        if len(met) >= config.training_nodes // 4:
            break
        count = count * config.training_nodes // len(met)
    return met, graph.subgraph(graph.names[met]) if graph.has_features else graph


def parts_of(config: Config, graph: Graph, several: bool) -> tuple[str, ...]:
    """Return the parts of a model for a graph, in order; raises if a requested part is impossible."""
    possible = {"content": graph.num_features > 0, "place": not several, "role": True}
    asked = tuple(config.parts)
    if set(asked) != set(PARTS):
        if "content" in asked and not possible["content"]:
            raise MissingFeaturesError(
                "parts includes content, but the graph has no features; pass features, or leave it out"
            )
        if "place" in asked and several:
            raise ParameterError(
                "parts includes place, but several networks share no place; fit one, or leave it out"
            )
    return tuple(name for name in PARTS if name in asked and possible[name])


def divide(dim: int, names: tuple[str, ...], graph: Graph) -> dict[str, int]:
    """Return the width of every part of a vector of ``dim`` numbers.

    Role takes a tenth, at most 18 (twice that without content), and at least 4 if that is at most a quarter.
    Content takes three fifths, or twice the number of encoded features if that leaves 32 for place; with
    place at most three numbers per feature. Place takes the rest. If ``dim`` is smaller than the number of
    parts, the first parts get one each.
    """
    names = names[:dim]
    widths, left = dict.fromkeys(names, 0), dim
    if "role" in names:
        tenths = 1 if "content" in names else 2
        widths["role"] = (
            dim if len(names) == 1 else min(18 * tenths, max(1, min(4, dim // 4), dim * tenths // 10))
        )
        left -= widths["role"]
    if "content" in names:
        f, place = graph.num_features, "place" in names
        wanted = min(max(dim * 3 // 5, min(2 * f, left - 32)), 3 * f, left - 1) if place else left
        widths["content"] = max(1, wanted)
        left -= widths["content"]
    if "place" in names:
        widths["place"] = left
    return widths
