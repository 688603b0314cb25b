"""PyTorch Geometric data to and from Graph."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array, csr_array

from spinegraph.errors import GraphFormatError
from spinegraph.graph.convert.packages import optional_package
from spinegraph.graph.edges import Reciprocal
from spinegraph.graph.graph import Graph
from spinegraph.graph.listing import read_listing
from spinegraph.graph.names import is_range


def from_pyg(data: Any, *, reciprocal: Reciprocal = "error", stacklevel: int = 1) -> Graph:
    """Convert; see :meth:`Graph.from_pyg`."""
    if hasattr(data, "node_types"):
        raise GraphFormatError("expected a PyG Data object; got HeteroData, pass data.to_homogeneous()")
    edge_index = getattr(data, "edge_index", None)
    if edge_index is None or not hasattr(edge_index, "detach"):
        raise GraphFormatError(
            f"expected a PyG Data object with edge_index; got {type(data).__name__} without one"
        )
    features = None if getattr(data, "x", None) is None else _features(data.x)
    weights, names = getattr(data, "edge_weight", None), getattr(data, "names", None)
    num_nodes = _num_nodes(data, features)
    if num_nodes is None and names is not None:
        num_nodes = len(names)  # edge_index holds positions, also where names are whole numbers
    sources, targets, names = read_listing(_array(edge_index).T, num_nodes, names)
    return Graph._from_positions(
        sources,
        targets,
        names,
        None if weights is None else _array(weights),
        features,
        getattr(data, "feature_names", None),
        directed=True,  # PyG lists both directions of an undirected edge
        reciprocal=reciprocal,
        stacklevel=stacklevel + 1,
    )


def to_pyg(graph: Graph, *, sparse: bool = False) -> Any:
    """Convert; see :meth:`Graph.to_pyg`."""
    data = optional_package("torch_geometric.data").Data()
    import torch

    rows = np.repeat(np.arange(len(graph)), graph.degrees)
    data.edge_index = torch.from_numpy(np.stack((rows, graph.indices)))  # (2, nnz) int64
    data.num_nodes = len(graph)
    if graph.weights is not None:
        data.edge_weight = torch.from_numpy(graph.weights.copy())
    if isinstance(graph.features, np.ndarray):
        data.x = torch.from_numpy(graph.features.copy())
    elif graph.features is not None and sparse:
        entries = coo_array(graph.features)
        coords = torch.from_numpy(np.stack(entries.coords).astype(np.int64))  # (2, nnz)
        values = torch.from_numpy(entries.data.copy())
        # Torch 2.11 warns where this is an argument.
        with torch.sparse.check_sparse_tensor_invariants():  # type: ignore[no-untyped-call]
            data.x = torch.sparse_coo_tensor(coords, values, entries.shape)
    elif graph.features is not None:
        data.x = torch.from_numpy(graph.features.toarray())
    if not is_range(graph.names):
        data.names = graph.names.tolist()
    if graph.feature_names is not None:
        data.feature_names = list(graph.feature_names)
    return data


def _num_nodes(data: Any, features: Any) -> int | None:
    """Return the number of nodes where the data says it; PyG would guess it with a warning."""
    if features is not None:
        return int(features.shape[0])
    stated = "num_nodes" in data
    return int(data.num_nodes) if stated else None


def _features(x: Any) -> Any:
    if str(x.layout) == "torch.strided":
        return _array(x)
    entries = x.to_sparse_coo().coalesce()
    coords = _array(entries.indices())
    return csr_array(coo_array((_array(entries.values()), (coords[0], coords[1])), shape=tuple(x.shape)))


def _array(tensor: Any) -> NDArray[Any]:
    tensor = tensor.detach().cpu()
    if tensor.is_floating_point() and tensor.element_size() < 4:  # bfloat16 has no NumPy twin
        tensor = tensor.float()
    array: NDArray[Any] = tensor.numpy()
    return array
