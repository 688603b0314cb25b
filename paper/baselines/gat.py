"""GAT (Velickovic et al., ICLR 2018) by PyG's GATConv: supervised, the ceiling of Table 1.

The paper's recipe: two layers, 8 heads of 8 units, dropout 0.6 on features and attention, Adam at 0.005 with
decay 5e-4 (Pubmed: 8 output heads, 0.01 and 0.001), an end after 100 epochs without a better validation
accuracy or loss, and the weights of the best accuracy.
"""

import copy
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, dropout, elu

from paper.baselines.pyg import GATConv
from paper.method import accelerator
from spinegraph.graph.datasets import Dataset
from spinegraph.graph.graph import Graph

VERSION = "1"
_DROPPED = 0.6


class Classifier(nn.Module):
    """Two GATConv layers."""

    def __init__(self, num_features: int, num_classes: int, heads: int = 8, output_heads: int = 1) -> None:
        super().__init__()
        self.first = GATConv(num_features, 8, heads=heads, dropout=_DROPPED)
        self.second = GATConv(8 * heads, num_classes, heads=output_heads, concat=False, dropout=_DROPPED)

    def forward(self, features: Tensor, edges: Tensor) -> Tensor:
        """Return class scores (n, c)."""
        hidden = elu(self.first(dropout(features, _DROPPED, self.training), edges))
        found: Tensor = self.second(dropout(hidden, _DROPPED, self.training), edges)
        return found


def gat_inputs(graph: Graph) -> tuple[Tensor, Tensor]:
    """Return features with rows scaled to sum 1, (n, f), and every edge both ways, (2, 2 m)."""
    given: Any = graph.features
    dense = np.array(given.toarray() if hasattr(given, "toarray") else given, dtype=np.float32)
    dense /= np.maximum(dense.sum(axis=1, keepdims=True), 1e-12)
    edges = np.stack([np.repeat(np.arange(len(graph)), graph.degrees), graph.indices.astype(np.int64)])
    return torch.from_numpy(dense), torch.from_numpy(edges)


def gat(data: Dataset, seed: int = 0, *, patience: int = 100, max_epochs: int = 1000) -> NDArray[np.int64]:
    """Return the class of every node, int64 (n,), learned from the training and validation labels.

    Parameters
    ----------
    data : Dataset
        With features, labels and a public split.
    """
    assert data.labels is not None
    torch.manual_seed(seed)
    is_pubmed = data.name == "pubmed"
    device = accelerator()
    features, edges = (part.to(device) for part in gat_inputs(data.graph))
    labels, train, val = (torch.from_numpy(part).to(device) for part in (data.labels, data.train, data.val))
    model = Classifier(features.shape[1], int(labels.max()) + 1, output_heads=8 if is_pubmed else 1)
    model.to(device)
    rate, decay = (0.01, 0.001) if is_pubmed else (0.005, 5e-4)
    adam = torch.optim.Adam(model.parameters(), lr=rate, weight_decay=decay)
    best, state, since = (-1.0, -np.inf), copy.deepcopy(model.state_dict()), 0
    most = (-1.0, -np.inf)
    for _ in range(max_epochs):
        model.train()
        adam.zero_grad()
        cross_entropy(model(features, edges)[train], labels[train]).backward()  # type: ignore[no-untyped-call]
        adam.step()
        model.eval()
        with torch.no_grad():
            out = model(features, edges)[val]
        now = (
            float((out.argmax(dim=1) == labels[val]).float().mean()),
            -float(cross_entropy(out, labels[val])),
        )
        if now > best:
            best, state = now, copy.deepcopy(model.state_dict())
        improves = now[0] > most[0] or now[1] > most[1]
        most = (max(now[0], most[0]), max(now[1], most[1]))
        since = 0 if improves else since + 1
        if since >= patience:
            break
    model.load_state_dict(state)
    model.eval()
    with torch.no_grad():
        classes: NDArray[np.int64] = model(features, edges).argmax(dim=1).cpu().numpy()
    return classes
