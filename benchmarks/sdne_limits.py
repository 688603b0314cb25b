"""What SDNE's two terms give at their optimum, by the probe of Table 1: why its row is below the paper's.

Run with ``python -m benchmarks.sdne_limits``. Adjacency rows are best made again from 200 numbers a node by
the singular value decomposition, neighbours best kept near by Laplacian eigenmaps; beside them the latter
after two more averages over neighbours, which SDNE has no term for.
"""

import numpy as np
import scipy.sparse as sp
from paper.item import DIM
from paper.protocols import load
from scipy.sparse.linalg import eigsh, svds

from spinegraph.analysis.evaluation import probe


def vectors(graph):
    """Return name -> vectors (n, 200)."""
    n = len(graph)
    adjacency = sp.csr_array((np.ones(len(graph.indices)), graph.indices, graph.indptr), (n, n))
    degrees = np.maximum(graph.degrees, 1)
    root, average = sp.diags_array(degrees**-0.5), sp.diags_array(1 / degrees) @ adjacency
    left, values, _ = svds(adjacency, DIM, rng=np.random.default_rng(0))
    _, smooth = eigsh(root @ adjacency @ root, DIM, which="LA", v0=np.ones(n))
    return {
        "reconstruction alone: SVD of the adjacency": left * values,
        "nearness alone: Laplacian eigenmaps": smooth,
        "the same, averaged twice over neighbours": average @ (average @ smooth),
    }


def main():
    """Print accuracy on validation and test nodes."""
    for name in ("citeseer", "cora", "pubmed"):
        data = load(name)
        for title, found in vectors(data.graph).items():
            result = probe(found.astype(np.float32), data.labels, data.train, data.val, data.test)
            print(
                f"{name:9} {title:44} {100 * result.val_accuracy:5.1f} / {100 * result.accuracy:.1f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
