"""Hypothesis strategies: small graphs of every awkward kind, and permutations of their nodes."""

from typing import Any

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy.sparse import csr_array

from spinegraph import Graph

weights_above_zero = st.floats(0.125, 8, width=32)
feature_values = st.floats(-4, 4, width=32)
words = st.text(alphabet="abcdefgh ,;\"'éß日", min_size=1, max_size=6)


@st.composite
def edge_arrays(draw: Any, num_nodes: int, max_edges: int = 30) -> np.ndarray:
    """Distinct undirected edges without self-loops, (m, 2), each in a random direction."""
    if num_nodes < 2:
        return np.zeros((0, 2), dtype=np.int64)
    pair = st.tuples(st.integers(0, num_nodes - 1), st.integers(0, num_nodes - 1)).filter(
        lambda e: e[0] != e[1]
    )
    edges = draw(st.lists(pair, max_size=max_edges, unique_by=frozenset))
    return np.array(edges, dtype=np.int64).reshape(-1, 2)


@st.composite
def node_names(draw: Any, num_nodes: int, kinds: str = "ris") -> np.ndarray | None:
    """Unique names: None for a range (kind r), integers (i) or strings (s)."""
    kind = draw(st.sampled_from(kinds))
    if kind == "r":
        return None
    one = st.integers(-(2**40), 2**40) if kind == "i" else words
    names = draw(st.lists(one, min_size=num_nodes, max_size=num_nodes, unique=True))
    return np.array(names, dtype=np.int64 if kind == "i" else object)


@st.composite
def feature_matrices(draw: Any, num_nodes: int, kinds: str = "ds", max_columns: int = 4) -> Any:
    """Finite float32 features (n, f): dense (kind d) or sparse (s); zero rows are likely when sparse."""
    shape = (num_nodes, draw(st.integers(1, max_columns)))
    dense = draw(hnp.arrays(np.float32, shape, elements=feature_values, fill=st.just(0)))
    return dense if draw(st.sampled_from(kinds)) == "d" else csr_array(dense)


@st.composite
def graphs(
    draw: Any,
    min_nodes: int = 1,
    max_nodes: int = 10,
    weighted: bool | None = None,
    features: bool | None = None,
    names: str = "ris",
    feature_kinds: str = "ds",
) -> Graph:
    """Small graphs: connected or not, isolated nodes, one node, no edges; weights and features or none.

    ``weighted`` and ``features`` are drawn where None; ``names`` and ``feature_kinds`` list what may come.
    """
    n = draw(st.integers(min_nodes, max_nodes))
    edges = draw(edge_arrays(n))
    weighted = draw(st.booleans()) if weighted is None else weighted
    features = draw(st.booleans()) if features is None else features
    weights = [draw(weights_above_zero) for _ in edges] if weighted else None
    table = draw(feature_matrices(n, feature_kinds)) if features else None
    columns = (
        [f"column {place}" for place in range(table.shape[1])] if features and draw(st.booleans()) else None
    )
    given_names = draw(node_names(n, names))
    return Graph.from_edges(
        edges, num_nodes=n, weights=weights, features=table, names=given_names, feature_names=columns
    )


@st.composite
def connected_graphs(
    draw: Any, min_nodes: int = 2, max_nodes: int = 10, weighted: bool | None = None
) -> Graph:
    """Small connected graphs without features: a random tree and some more edges."""
    n = draw(st.integers(min_nodes, max_nodes))
    tree = {(draw(st.integers(0, node - 1)), node) for node in range(1, n)}
    more = {(min(edge), max(edge)) for edge in draw(edge_arrays(n)).tolist()}
    edges = sorted(tree | more)
    weighted = draw(st.booleans()) if weighted is None else weighted
    weights = [draw(weights_above_zero) for _ in edges] if weighted else None
    return Graph.from_edges(np.array(edges).reshape(-1, 2), num_nodes=n, weights=weights)


@st.composite
def orders(draw: Any, num_nodes: int) -> np.ndarray:
    """Return a permutation of 0 .. num_nodes-1."""
    return np.array(draw(st.permutations(range(num_nodes))), dtype=np.int64)


@st.composite
def graphs_and_orders(draw: Any, **kinds: Any) -> tuple[Graph, np.ndarray]:
    """Return a graph and a permutation of its nodes; ``permuted`` applies it."""
    graph = draw(graphs(**kinds))
    return graph, draw(orders(len(graph)))


def permuted(graph: Graph, order: np.ndarray) -> Graph:
    """Return the same graph with node ``order[p]`` at position ``p``; all that nodes have goes along."""
    return graph.subgraph(graph.names[order])


def dense_adjacency(graph: Graph) -> np.ndarray:
    """Weights as a plain float64 matrix (n, n), built entry by entry."""
    matrix = np.zeros((len(graph), len(graph)))
    for node in range(len(graph)):
        for place in range(graph.indptr[node], graph.indptr[node + 1]):
            matrix[node, graph.indices[place]] += 1 if graph.weights is None else graph.weights[place]
    return matrix


def dense_features(features: Any) -> np.ndarray | None:
    """Features as a plain matrix, or None."""
    return features.toarray() if hasattr(features, "toarray") else features


def assert_same_graph(found: Graph, expected: Graph, *, feature_names: bool = True) -> None:
    """Assert equal nodes, edges, weights, names and features, in the same order and of the same kinds."""
    assert found.names.tolist() == expected.names.tolist()
    assert found.names.dtype == expected.names.dtype
    np.testing.assert_array_equal(found.indptr, expected.indptr)
    np.testing.assert_array_equal(found.indices, expected.indices)
    assert (found.weights is None) == (expected.weights is None)
    if expected.weights is not None:
        np.testing.assert_array_equal(found.weights, expected.weights)
    assert found.has_features == expected.has_features
    if expected.has_features:
        assert isinstance(found.features, np.ndarray) == isinstance(expected.features, np.ndarray)
        np.testing.assert_array_equal(dense_features(found.features), dense_features(expected.features))
        if feature_names:
            assert found.feature_names == expected.feature_names


def clouds(n, d, classes, seed=0, spread=1.0):
    """Return n points around as many centres as there are classes, and their classes."""
    rng = np.random.default_rng(seed)
    labels = np.arange(n) % classes
    return rng.normal(size=(classes, d))[labels] + spread * rng.normal(size=(n, d)), labels
