"""The arrays of a graph, as a model folder, a service's store or a graph store holds them."""

from pathlib import Path

from fuzz.inputs import arrays
from fuzz.outcome import Target

from spinegraph.storage.model_folder import graph_arrays, graph_of

_KEYS = (
    *("indptr", "indices", "weights", "names", "names.text", "names.ends", "names.whole", "report"),
    *("features", "features.data", "features.indices", "features.indptr", "features.shape"),
    *("feature_names.text", "feature_names.ends"),
)
_KINDS = ("<i8", "<i4", "<f4", "<f8", "<f2", "<u8", "|u1", "|i1", "|b1")  # all that safetensors can hold
SEEDS = [bytes(range(i, i + 80)) for i in range(0, 160, 10)]


def begin(folder: Path) -> Target:
    """Return a function that builds a graph of drawn arrays; what it builds comes back the same."""

    def target(data: bytes) -> None:
        graph = graph_of(arrays(data, _KEYS, _KINDS))
        again = graph_of(graph_arrays(graph))
        assert again.names.tolist() == graph.names.tolist()
        assert again.indices.tolist() == graph.indices.tolist()

    return target
