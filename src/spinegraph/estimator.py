"""SPINE, the estimator: fit, transform, save and load, as in scikit-learn."""

import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from copy import copy
from dataclasses import fields, replace
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from spinegraph.config import MACHINE_SETTINGS, PARTS, Config
from spinegraph.embeddings import Embeddings, embeddings_per_graph
from spinegraph.engines.engine import engine_for
from spinegraph.errors import ParameterError, SpineWarning
from spinegraph.graph.convert import as_graph
from spinegraph.graph.describe import TrainingStats, fingerprint, html_table
from spinegraph.graph.encoder import FeatureEncoder
from spinegraph.graph.graph import Graph, GraphLike
from spinegraph.graph.names import as_array
from spinegraph.graph.overlay import Overlay
from spinegraph.kernels.runtime import one_blas_thread

if TYPE_CHECKING:
    from spinegraph.analysis.explain import Explanation, Similar
    from spinegraph.analysis.report import Findings
    from spinegraph.analysis.roles import NodeRoles
    from spinegraph.engines.shards import Progress
    from spinegraph.paper import PaperSPINE

_EIGHTH = 8  # the whole graph is embedded if more than this part of its nodes is asked for,
_MAX_VALUES = 1 << 28  # or more than ``_few`` nodes, unless its vectors hold more values than this


class SPINE:
    """Node vectors with three parts, content, place and role, for seen and unseen nodes and networks.

    Content says what a node and the nodes around it are about, place where in the training network it is, and
    role what it looks like from its links alone. Settings are checked at ``fit``, as in scikit-learn. The
    defaults need no tuning; the page on parameters says when to change one.

    Parameters
    ----------
    dim : int
        Length d of a vector, all parts together.
    parts : tuple of str
        Parts of a vector: some of ``"content"``, ``"place"`` and ``"role"``. By default all that apply:
        content needs features, place a single network.
    weights : dict of part to float, optional
        Weight of each part, 1 by default; vectors can also be weighted later, without a second fit.
    seed : int
        Determines every random draw.
    threads : int, optional
        CPU threads, all cores by default; the result does not depend on it.
    device : str
        Device of ``fit`` and of ``transform`` of whole graphs: ``"cpu"``, ``"cuda"`` or ``"cuda:1"``.
    engine : {"local", "ray"}
        Execution backend: this process, or tasks on a Ray cluster; the vectors are the same.
    address : str, optional
        The Ray cluster: ``HOST:PORT``, ``"auto"`` for one running on this machine, ``"local"`` to start one.
        None uses RAY_ADDRESS, or else ``"local"``.
    near, far : float
        How far a node looks: probability that a walk continues rather than stops, for everything near a node
        (profile, place, features near it) and for features farther away.
    tolerance : float
        Largest error of smoothed values, relative to how far smoothing moves them.
    k : int
        Length of a profile, the structural description of a node.
    rpr_method : {"push", "walks"}
        Profiles by push, exact to a tolerance, or by counting the visits of walks.
    walks, walk_length : int
        Walks per node and their length, for ``"walks"``.
    feature_scaling : {"auto", "row", "row_sum", "column", "none"}
        How a raw feature matrix is scaled; see FeatureEncoder. ``"auto"`` leaves a table as it is encoded.
    learning : bool
        Whether content learns which directions of the features predict hidden links.
    training_nodes : int
        Largest number of nodes that means and directions are fitted on.

    Attributes
    ----------
    embeddings_ : Embeddings, or a list of them after fitting a list of graphs
        None after a fit with ``vectors=False``.
    generator_ : Generator
        Everything that ``transform`` needs.
    config_ : Config
        The checked settings of the fit.
    familiarity_ : TrainingStats
        Statistics of the training data, with which ``transform`` warns of data unlike it.
    fingerprint_ : str
        Digest of the training data.
    table_encoder_ : FeatureEncoder or None
        Turns tables of new nodes into features, if ``fit`` was given one.
    graph_ : Graph, or a list of them
        The training data; like ``embeddings_``, None after loading a model that was saved without it.

    Examples
    --------
    >>> from spinegraph import SPINE, Graph
    >>> ring = Graph.from_edges([(i, (i + 1) % 12) for i in range(12)])
    >>> model = SPINE(dim=8).fit(ring)
    >>> model.embeddings_
    Embeddings(12 nodes, 8 dimensions: place 6, role 2)
    >>> grown = ring.with_nodes(["new"], [("new", 0), ("new", 1)])
    >>> model.transform(grown, nodes=["new"])["new"].shape
    (8,)
    """

    _config: ClassVar[Any] = Config
    _few: ClassVar[int] = 128  # nodes that take about as long as the whole graph

    def __init__(
        self,
        *,
        dim: int = 200,
        parts: tuple[str, ...] = PARTS,
        weights: Mapping[str, float] | None = None,
        seed: int = 0,
        threads: int | None = None,
        device: str = "cpu",
        engine: str = "local",
        address: str | None = None,
        near: float = 0.5,
        far: float = 0.9,
        tolerance: float = 0.01,
        k: int = 20,
        rpr_method: str = "push",
        walks: int = 10,
        walk_length: int = 40,
        feature_scaling: str = "auto",
        learning: bool = True,
        training_nodes: int = 20_000,
    ) -> None:
        self.dim, self.parts, self.weights, self.seed = dim, parts, weights, seed
        self.threads, self.device, self.engine, self.address = threads, device, engine, address
        self.near, self.far, self.tolerance = near, far, tolerance
        self.k, self.rpr_method, self.walks, self.walk_length = k, rpr_method, walks, walk_length
        self.feature_scaling, self.learning, self.training_nodes = feature_scaling, learning, training_nodes

    @classmethod
    def paper(cls, **changes: Any) -> "PaperSPINE":
        """Return the paper's own method, with its values and its settings; see PaperSPINE.

        >>> SPINE.paper(dim=64).structural_rate
        0.5
        """
        from spinegraph.paper import PaperSPINE

        _require_known(changes, PaperSPINE._settings())
        return PaperSPINE(**changes)

    def fit(
        self,
        graph: Graph | Sequence[Graph],
        y: Any = None,
        *,
        encoder: FeatureEncoder | None = None,
        progress: "Progress | None" = None,
        vectors: bool = True,
    ) -> Self:
        """Fit on one network, or on several together, which then have no place part.

        Parameters
        ----------
        graph : Graph, or list of Graphs
            Or a NetworkX, igraph or PyG graph, a SciPy sparse matrix, a pandas, polars or Arrow table of
            edges; node attributes become features.
        y : any
            Ignored; scikit-learn pipelines pass labels of the graph's nodes here.
        encoder : FeatureEncoder, optional
            The fitted encoder that made the graph's features from a table; by default the graph's own. It is
            kept as ``table_encoder_`` and saved with the model, to encode tables of new nodes the same way.
        progress : callable (stage, done, total), optional
        vectors : bool
            Whether to embed the training nodes. False leaves ``embeddings_`` None: for a store (see
            ``open_store``) whose vectors do not fit in memory and are written to a folder instead.
        """
        if not isinstance(graph, Graph) and hasattr(y, "columns"):
            raise ParameterError("fit takes one graph; read_graph(edges, table) adds a table of its nodes")
        report_progress = progress or (lambda stage, done, total: None)
        config = Config(**self.get_params()).check()
        graph, whole = _one_graph(graph, encoder)
        encoder = encoder or whole.encoder
        _require_same_features(encoder, whole)
        if whole.encoder is None and encoder is not None:
            encoded = copy(whole)._encoded_by(encoder)  # so its columns are not scaled a second time
            graph, whole = encoded if graph is whole else graph, encoded
        engine = engine_for(config)
        background = ThreadPoolExecutor(1)  # reads all the data during the fit
        about = background.submit(lambda: (fingerprint(whole), TrainingStats.of(whole)))
        background.shutdown(wait=False)
        with one_blas_thread():
            generator = engine.fit(whole, config, report_progress, several=graph is not whole)
        if graph is not whole and len(graph) > 1 and "place" in config.parts:
            message = "several networks share no place, so the vectors have no place part"
            advice = f"pass parts={(*generator.parts,)} if that is intended"
            warnings.warn(f"{message}; {advice}", SpineWarning, stacklevel=2)
        embeddings = None
        if vectors:
            report_progress("embedding", 0, 0)
            known = generator.known(whole, same_network=True)
            embeddings = embeddings_per_graph(graph, engine.embed(generator, whole, known), generator.parts)

        found = about.result()
        # Attributes are set only from here on: an interrupted fit leaves the model as it was.
        self.fingerprint_, self.familiarity_ = found
        self.config_, self.generator_, self.table_encoder_ = config, generator, encoder
        self.graph_, self.embeddings_ = graph, embeddings
        return self

    def fit_transform(self, graph: Graph | Sequence[Graph], y: Any = None) -> Embeddings | list[Embeddings]:
        """Fit, and return the training nodes' vectors."""
        self.fit(graph)
        return self.embeddings_  # type: ignore[return-value]

    def transform(
        self, graph: GraphLike, nodes: Iterable[Any] | None = None, *, same_network: bool | None = None
    ) -> Embeddings:
        """Return vectors of the nodes of any network that has the fitted features.

        Parameters
        ----------
        graph : Graph or Overlay
            Or whatever ``fit`` takes; node attributes are encoded like those of the training data.
        nodes : iterable of names, optional
            Embed only these, which costs less than the whole graph.
        same_network : bool, optional
            Whether the graph is the training network, perhaps grown or changed, so that its nodes have a
            place; in another network the place part is zero. Decided by names and links unless given; the
            result's ``same_network`` holds the decision.

        Warns
        -----
        UnfamiliarDataWarning
            When degrees or features lie outside what the model was fitted on.
        """
        generator = self._fitted()
        graph = as_graph(graph, self.table_encoder_)
        if not isinstance(graph, Graph | Overlay):
            raise ParameterError(
                f"transform takes a Graph or an Overlay; got {type(graph).__name__}; call it once per graph, "
                "and read files with read_graph"
            )
        _require_direction(generator, graph)
        if generator.encoder is not None:
            fitted, given = self.table_encoder_, getattr(graph, "encoder", None)
            is_other = graph.num_features not in (0, generator.encoder.num_features)
            if fitted is not None and (is_other if given is None else not given.is_like(fitted)):
                raise ParameterError(
                    "the graph's table was not encoded by the model's encoder, so its columns mean "
                    "something else; read it with read_graph(..., encoder=model.table_encoder_)"
                )
            generator.require_features(graph)
        positions: NDArray[np.int64] | None = None
        if nodes is not None:
            if isinstance(nodes, str | bytes) or not isinstance(nodes, Iterable):
                raise ParameterError(f"nodes must be a list of names, such as [{nodes!r}]; got {nodes!r}")
            positions = graph.positions(nodes)
        elif isinstance(graph, Overlay) and graph.num_nodes < len(graph):
            positions = graph.remaining
        self.familiarity_.warn(graph, positions)
        known = generator.known(graph, same_network)
        found_same = None if "place" not in generator.parts else known is not None
        if positions is None and isinstance(graph, Graph):
            here = {name: getattr(self, name) for name in MACHINE_SETTINGS if hasattr(self, name)}
            engine = engine_for(replace(self.config_, **here).check())
            vectors, names = engine.embed(generator, graph, known), graph.names
        else:
            rows = np.arange(len(graph)) if positions is None else positions
            is_large = len(graph) * generator.dim > _MAX_VALUES
            if len(rows) > min(len(graph) // _EIGHTH, len(graph) if is_large else self._few):
                vectors = generator.embed(graph, known)[rows]
            else:
                vectors = generator.embed_some(graph, rows, known)
            if nodes is not None and positions is not None and isinstance(graph, Overlay):
                names = as_array(graph.names_at(positions))  # without a copy of all the overlay's names
            else:
                names = graph.names[rows]
        return Embeddings(names, vectors, generator.parts, found_same)

    def similar(
        self,
        node: Any,
        by: str = "all",
        n: int = 10,
        *,
        weights: Mapping[str, float] | None = None,
        graph: Graph | None = None,
    ) -> "Similar":
        """Return the nodes most like a node, most alike first, with reasons.

        Parameters
        ----------
        node : name
        by : {"all", "content", "place", "role"}
            What is compared: all parts of the vectors, or one of them.
        n : int
            Number of nodes to return.
        weights : dict of part to float, optional
            Weights of the parts with ``by="all"``, 1 by default.
        graph : Graph, optional
            Another network to search in; by default the training network.

        Examples
        --------
        >>> from spinegraph import SPINE, made
        >>> found = SPINE(dim=20).fit(made.barbell(4, bridge=1)).similar(3, by="role", n=1)
        >>> [match.name for match in found]
        [5]
        """
        from spinegraph.analysis.explain import similar

        return similar(*self._network(graph), node, by=by, n=n, weights=weights)

    def explain(
        self, a: Any, b: Any, *, weights: Mapping[str, float] | None = None, graph: Graph | None = None
    ) -> "Explanation":
        """Return why two nodes are alike, or not; the arguments are as in ``similar``.

        Examples
        --------
        >>> from spinegraph import SPINE, made
        >>> SPINE(dim=8).fit(made.barbell(4, bridge=1)).explain(0, 8).relation.links_apart
        4
        """
        from spinegraph.analysis.explain import explain

        graph, generator, vectors = self._network(graph)
        return explain(graph, generator, a, b, embeddings=vectors, weights=weights)

    def roles(self, count: int | None = None, *, graph: Graph | None = None) -> "NodeRoles":
        """Find the roles of the training network's nodes, in words and with probabilities.

        Parameters
        ----------
        count : int, optional
            Number of roles; by default as many as are distinct.
        graph : Graph, optional
            Another network: the roles of the training network are assigned to its nodes.

        Examples
        --------
        >>> from spinegraph import SPINE, made
        >>> SPINE(dim=8).fit(made.barbell(10, bridge=5)).roles()[12]
        'chain'
        """
        from spinegraph.analysis.roles import find_roles

        home = self._network(None)
        other = None if graph is None else self.transform(graph)
        return find_roles(*home, graph, other, count=count, seed=self.config_.seed)

    def report(
        self,
        path: str | Path,
        *,
        title: str = "SPINE report",
        labels: Sequence[Any] | NDArray[Any] | Mapping[Any, Any] | None = None,
        label_title: str = "label",
        color: str | None = None,
        progress: "Progress | None" = None,
    ) -> "Findings":
        """Write one HTML page about the model, which opens offline: map, roles, look-alikes, data quality.

        Parameters
        ----------
        path : path
            Ends in ``.html``; a missing folder is created.
        title : str
        labels : list or array (n,), dict or Series, optional
            One per training node, None where unknown; a dict or an indexed Series is matched by name.
        label_title : str
            Title of the labels.
        color : str, optional
            What colours the map first: ``"role"``, the labels' title, or the name of any column.
        progress : callable (stage, done, total), optional

        Returns
        -------
        Findings
            What the page shows.
        """
        from spinegraph.analysis.report import write_report

        self._network(None)
        how = {"title": title, "label_title": label_title, "color": color, "progress": progress}
        return write_report(self, path, labels=labels, **how)  # type: ignore[arg-type]

    def plot(self, color: Any = "role", *, by: str = "all", **options: Any) -> Any:
        """Return a Plotly figure: a map on which training nodes with similar vectors are close.

        Parameters
        ----------
        color : str or array (n,)
            ``"role"``, a column of the features, a structural column such as ``"degree"``, or one value per
            node.
        by : {"all", "content", "place", "role"}
            Which part of the vectors to draw.
        options
            ``places``, ``method`` and ``seed``, as in :func:`spinegraph.plot.map`.
        """
        from spinegraph.analysis.plots import map as draw_map

        self._network(None)
        return draw_map(self, color, by=by, **options)

    def _network(self, graph: Graph | None) -> tuple[Graph, Any, Embeddings]:
        """Return a graph, the generator and the graph's vectors; by default those of the training network."""
        from spinegraph.analysis.plots import embeddings_of, graph_of

        generator = self._fitted()
        if graph is not None:
            return graph, generator, self.transform(graph)
        return graph_of(self), generator, embeddings_of(self)

    def save(self, folder: str | Path, *, data: bool = True, place: bool = True) -> None:
        """Write the model to a folder.

        ``data=False`` leaves out the training graph and vectors. ``place=False`` leaves out the positions of
        the training nodes, so that the place part of the loaded model is zero.
        """
        from spinegraph.storage.model_folder import save

        self._fitted()
        save(self, Path(folder), data=data, place=place)

    @classmethod
    def load(cls, folder: str | Path) -> Self:
        """Read a model that ``save`` wrote; nothing in the folder is executed."""
        from spinegraph.storage.model_folder import load

        return load(cls, Path(folder))

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the settings by name."""
        return {name: getattr(self, name) for name in self._settings()}

    @classmethod
    def _settings(cls) -> tuple[str, ...]:
        return tuple(field.name for field in fields(cls._config))

    def set_params(self, **settings: Any) -> Self:
        """Change settings; they take effect at the next ``fit``."""
        _require_known(settings, self._settings())
        vars(self).update(settings)
        return self

    def __repr__(self) -> str:
        state = f" fitted on {len(self.familiarity_)} nodes" if hasattr(self, "generator_") else ""
        return f"{type(self).__name__}({self._changed()}){state}"

    def _changed(self) -> str:
        given, default = self.get_params().items(), self._config
        return ", ".join(f"{name}={value!r}" for name, value in given if value != getattr(default, name))

    def _repr_html_(self) -> str:
        rows: list[tuple[object, ...]] = [("settings", self._changed() or "all default")]
        if not hasattr(self, "generator_"):
            return html_table("SPINE, not fitted", rows)
        graphs = self.graph_ if isinstance(self.graph_, list) else [self.graph_]
        rows += [("fitted on", repr(graph)) for graph in graphs[:5] if graph is not None]
        widths = ", ".join(f"{name} {part.stop - part.start}" for name, part in self.generator_.parts.items())
        rows.append(("parts", widths))
        if self.generator_.encoder is not None:
            names = self.generator_.encoder.feature_names_
            rows.append(("features", ", ".join(names[:8]) + ", ..." * (len(names) > 8)))
        rows.append(("methods", "similar(name), explain(a, b), roles(), plot(), report(file)"))
        return html_table(f"SPINE, fitted on {len(self.familiarity_):,} nodes", rows)

    def __sklearn_tags__(self) -> Any:
        from sklearn.base import BaseEstimator

        return BaseEstimator().__sklearn_tags__()

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "generator_")

    def _fitted(self) -> Any:
        if not hasattr(self, "generator_"):
            from spinegraph.errors import NotFittedError

            raise NotFittedError("this SPINE is not fitted yet; call fit(graph) or SPINE.load(folder) first")
        return self.generator_


def _require_known(settings: dict[str, Any], known: tuple[str, ...]) -> None:
    for name in settings:
        if name not in known:
            near = get_close_matches(name, known, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"known: {', '.join(known)}"
            raise ParameterError(f"SPINE has no setting {name!r}; {hint}")


def _require_same_features(encoder: FeatureEncoder | None, graph: Graph) -> None:
    found = graph.features.shape[1] if graph.features is not None else 0
    if encoder is not None and encoder.num_features != found:
        raise ParameterError(
            f"encoder makes {encoder.num_features} features, but the graph has {found}; "
            "pass the encoder that made the graph's features, or none"
        )


def _require_direction(generator: Any, graph: GraphLike) -> None:
    fitted = getattr(generator, "directed", graph.directed)  # the paper's method reads no directions
    if fitted != graph.directed:
        was, now = "a directed graph", "undirected; build it with directed=True"
        if not fitted:
            was, now = "an undirected graph", "directed; pass graph.to_undirected()"
        raise ParameterError(f"the model was fitted on {was}, but this one is {now}")


def _one_graph(given: Any, encoder: FeatureEncoder | None = None) -> tuple[Any, Graph]:
    """Return the input as a Graph or a list of Graphs, and the one Graph to fit: the union of a list."""
    is_list = isinstance(given, list | tuple | Iterator)
    listed = [as_graph(each, encoder) for each in (given if is_list else [given])]
    if not listed or not all(isinstance(each, Graph) for each in listed):
        kinds = ", ".join(sorted({type(each).__name__ for each in listed})) or "an empty list"
        advice = "read_graph(file), Graph.from_edges(pairs) and Graph.from_scipy(matrix) make one"
        advice = "pass overlay.materialize()" if "Overlay" in kinds else advice
        raise ParameterError(f"fit takes a Graph or a list of Graphs; got {kinds}; {advice}")
    if not is_list:
        return listed[0], listed[0]
    return listed, Graph.union(listed, keys=range(len(listed)))
