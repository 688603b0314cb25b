"""Self-supervised neural methods of the league, in plain PyTorch: GraphSAGE, DGI, CCA-SSG and GraphMAE.

Each is trained on the whole graph at once, by sparse products, with one setting for all networks: the one
that its authors use most often. Labels play no part, and training ends after a fixed number of epochs. An
encoder that was fitted on one graph is applied to any other with the same columns.

- **GraphSAGE** (Hamilton, Ying, Leskovec 2017), unsupervised: two layers, mean of the neighbours, vectors of
  unit length; a node's positive is a random neighbour, its negative is drawn by degree^0.75; 100 epochs.
- **DGI** (Velickovic et al. 2019): one GCN layer with PReLU, told from itself with shuffled rows of features;
  300 epochs without early stopping.
- **CCA-SSG** (Zhang et al. 2021): two GCN layers, two views without 20 % of the columns and 40 % of the
  edges; lambda 1e-3, 50 epochs.
- **GraphMAE** (Hou et al. 2022), with GCN layers in place of attention (its repository offers both): two
  layers, half of the nodes masked (5 % of them get another node's features), one decoder layer that does not
  see their codes, scaled cosine error with exponent 3, features dropped with 0.2; 300 epochs, decay 2e-4.

Adam at 1e-3 for all. Edge weights are not read. Columns are scaled by the encoder that scales those of the
plain columns. A graph without features gets 64 random columns and its log degree; a node keeps its random
columns when the graph grows.
"""

import warnings

import numpy as np
import torch
from scipy.sparse import csr_array, issparse
from torch import nn
from torch.nn.functional import binary_cross_entropy_with_logits, dropout, logsigmoid, normalize, prelu

from spinegraph.graph.encoder import FeatureEncoder

RATE, RANDOM_COLUMNS = 1e-3, 64
_SPARSE_BELOW = 0.2  # share of entries other than 0, below which columns are multiplied as a sparse matrix


class _Product(torch.autograd.Function):
    """A constant sparse matrix times a dense one; ``turned`` is its transpose."""

    @staticmethod
    def forward(ctx, matrix, turned, right):
        ctx.turned = turned
        return matrix @ right

    @staticmethod
    def backward(ctx, gradient):
        return None, None, ctx.turned @ gradient.contiguous()


def tensor_of(matrix, device):
    """Return a SciPy CSR matrix as a sparse tensor."""
    indptr, indices = (torch.from_numpy(part.astype(np.int64)) for part in (matrix.indptr, matrix.indices))
    return csr_tensor(
        indptr.to(device), indices.to(device), torch.from_numpy(matrix.data).to(device), matrix.shape
    )


def csr_tensor(indptr, indices, values, shape):
    """Return a sparse tensor of its parts."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Sparse CSR tensor support is in beta")
        return torch.sparse_csr_tensor(indptr, indices, values, shape, check_invariants=False)


class Inputs:
    """A graph on a device: its columns, and products with them and with its adjacency matrix."""

    def __init__(self, graph, columns, device):
        self.device, self.n = device, len(graph)
        is_sparse = issparse(columns) and columns.nnz < _SPARSE_BELOW * np.prod(columns.shape)
        self.columns = None  # as a dense tensor, where somebody asks
        self.given = csr_array(columns, dtype=np.float32) if is_sparse else dense(columns)
        self.width, self.sparse = columns.shape[1], None
        if is_sparse:
            numbered = csr_array(
                (np.arange(self.given.nnz), self.given.indices, self.given.indptr), shape=columns.shape
            )
            turned = csr_array(numbered.T)
            self.turned = torch.from_numpy(turned.data).to(device)  # where the transpose's entries lie
            self.sparse = tensor_of(self.given, device), tensor_of(csr_array(self.given.T), device)
        else:
            self.columns = torch.from_numpy(self.given).to(device)
        n, ones = self.n, np.ones(len(graph.indices), np.float32)
        links = csr_array((ones, graph.indices, graph.indptr), shape=(n, n))
        self.mean = links.multiply(1 / np.maximum(graph.degrees, 1)[:, None].astype(np.float32)).tocsr()
        self.mean = csr_array(self.mean, dtype=np.float32)
        self.mean = tuple(tensor_of(part, device) for part in (self.mean, csr_array(self.mean.T)))
        looped = csr_array(links + csr_array((np.ones(n, np.float32), np.arange(n), np.arange(n + 1))))
        looped.sort_indices()
        rows = np.repeat(np.arange(n), np.diff(looped.indptr))
        self.is_loop = torch.from_numpy(rows == looped.indices).to(device)
        # Entry (i, j) of a symmetric matrix lies where entry (j, i) lies in its transpose.
        self.across = torch.from_numpy(np.lexsort((rows, looped.indices))).to(device)
        self.rows = torch.from_numpy(rows).to(device)
        self.looped = tensor_of(looped, device)
        self.whole = self.adjacency(torch.ones(len(rows), device=device))
        self.starts, self.degrees = (
            torch.from_numpy(np.array(part, np.int64)).to(device)
            for part in (graph.indptr[:-1], graph.degrees)
        )
        self.ends = torch.from_numpy(np.append(graph.indices, 0).astype(np.int64)).to(device)
        self.cumulative = torch.cumsum(self.degrees.double() ** 0.75, 0)

    def adjacency(self, values):
        """Return D^-1/2 A D^-1/2 with such values for links and loops, and its transpose."""
        structure, columns = (
            (self.looped.crow_indices(), self.looped.col_indices()),
            self.looped.col_indices(),
        )
        into = torch.zeros(self.n, device=self.device).index_add_(0, self.rows, values)
        out = torch.zeros(self.n, device=self.device).index_add_(0, columns, values)
        scaled = values * into.clamp(min=1)[self.rows].rsqrt() * out.clamp(min=1)[columns].rsqrt()
        return tuple(csr_tensor(*structure, each, (self.n, self.n)) for each in (scaled, scaled[self.across]))

    def some_links(self, share):
        """Return the same with this share of the links left out, loops kept."""
        return self.adjacency(
            ((torch.rand(len(self.rows), device=self.device) >= share) | self.is_loop).float()
        )

    def times(self, weights, drop=0.0):
        """Return columns times weights (width, d), after a share of the entries was dropped."""
        if self.sparse is None:
            return dropout(self.columns, drop) @ weights
        if not drop:
            return _Product.apply(*self.sparse, weights)
        values = dropout(self.sparse[0].values(), drop)
        some = (
            csr_tensor(like.crow_indices(), like.col_indices(), each, like.shape)
            for like, each in zip(self.sparse, (values, values[self.turned]), strict=True)
        )
        return _Product.apply(*some, weights)

    def draw(self):
        """Return a random neighbour of every node, itself where it has none, and a node by degree^0.75."""
        steps = (torch.rand(self.n, device=self.device, dtype=torch.float64) * self.degrees).long()
        near = torch.where(
            self.degrees > 0, self.ends[self.starts + steps], torch.arange(self.n, device=self.device)
        )
        at = torch.rand(self.n, device=self.device, dtype=torch.float64) * self.cumulative[-1]
        return near, torch.searchsorted(self.cumulative, at).clamp(max=self.n - 1)

    def dense_columns(self):
        """Return the columns as a dense tensor (n, width)."""
        if self.columns is None:
            self.columns = torch.from_numpy(dense(self.given)).to(self.device)
        return self.columns


def dense(matrix):
    """Return a matrix as a float32 array."""
    return np.ascontiguousarray(matrix.toarray() if issparse(matrix) else matrix, dtype=np.float32)


def matrix(*shape):
    """Return trainable weights."""
    return nn.Parameter(nn.init.xavier_uniform_(torch.empty(*shape)))


class Layer(nn.Module):
    """A GCN layer, with PReLU where it is active; ``first`` is the product of inputs and weights."""

    def __init__(self, width, dim, is_active=True):
        super().__init__()
        self.weights, self.bias = matrix(width, dim), nn.Parameter(torch.zeros(dim))
        self.slope = nn.Parameter(torch.full((dim,), 0.25)) if is_active else None

    def forward(self, adjacency, values=None, *, first=None):
        found = _Product.apply(*adjacency, values @ self.weights if first is None else first) + self.bias
        return found if self.slope is None else prelu(found, self.slope)


class Encoder(nn.Module):
    """One GCN layer or more."""

    def __init__(self, width, dim, depth, is_last_active=True):
        super().__init__()
        widths = [width] + [dim] * depth
        self.layers = nn.ModuleList(
            Layer(*widths[i : i + 2], is_last_active or i < depth - 1) for i in range(depth)
        )

    def forward(self, inputs, adjacency=None, first=None, drop=0.0):
        adjacency = inputs.whole if adjacency is None else adjacency
        first = inputs.times(self.layers[0].weights) if first is None else first
        values = self.layers[0](adjacency, first=first)
        for layer in self.layers[1:]:
            values = layer(adjacency, dropout(values, drop))
        return values


class Infomax(nn.Module):
    """DGI."""

    epochs, decay = 300, 0.0

    def __init__(self, width, dim):
        super().__init__()
        self.encoder, self.judge = Encoder(width, dim, 1), matrix(dim, dim)

    def loss(self, inputs):
        layer = self.encoder.layers[0]
        first = inputs.times(layer.weights)
        # Shuffled rows of columns times weights are shuffled rows of the product.
        other = layer(inputs.whole, first=first[torch.randperm(inputs.n, device=inputs.device)])
        true = layer(inputs.whole, first=first)
        summary = self.judge @ true.mean(dim=0).sigmoid()
        scores = torch.cat([true @ summary, other @ summary])
        is_true = torch.arange(len(scores), device=scores.device) < inputs.n
        return binary_cross_entropy_with_logits(scores, is_true.float())


class Correlated(nn.Module):
    """CCA-SSG."""

    epochs, decay, penalty, without_columns, without_links = 50, 0.0, 1e-3, 0.2, 0.4

    def __init__(self, width, dim):
        super().__init__()
        self.encoder = Encoder(width, dim, 2, is_last_active=False)

    def view(self, inputs):
        kept = (torch.rand(inputs.width, 1, device=inputs.device) >= self.without_columns).float()
        first = inputs.times(kept * self.encoder.layers[0].weights)
        found = self.encoder(inputs, inputs.some_links(self.without_links), first)
        return (found - found.mean(dim=0)) / (found.std(dim=0) + 1e-9)

    def loss(self, inputs):
        one, other = self.view(inputs), self.view(inputs)
        eye = torch.eye(one.shape[1], device=one.device)
        alike = -((one * other).sum(dim=0) / inputs.n).sum()
        apart = sum(((view.T @ view) / inputs.n - eye).square().sum() for view in (one, other))
        return alike + self.penalty * apart


class Masked(nn.Module):
    """GraphMAE with GCN layers."""

    epochs, decay, masked, replaced, exponent, dropped = 300, 2e-4, 0.5, 0.05, 3, 0.2

    def __init__(self, width, dim):
        super().__init__()
        self.encoder, self.token = Encoder(width, dim, 2), nn.Parameter(torch.zeros(1, width))
        self.between, self.decoder = matrix(dim, dim), Layer(dim, width, is_active=False)

    def loss(self, inputs):
        order = torch.randperm(inputs.n, device=inputs.device)
        masked = order[: int(self.masked * inputs.n)]
        with_token = masked[int(self.replaced * len(masked)) :]
        replaced = masked[: int(self.replaced * len(masked))]
        source = torch.arange(inputs.n, device=inputs.device)
        source[replaced] = torch.randint(inputs.n, (len(replaced),), device=inputs.device)
        is_kept = torch.ones(inputs.n, 1, device=inputs.device)
        is_kept[with_token] = 0
        weights = self.encoder.layers[0].weights
        first = inputs.times(weights, self.dropped)[source] * is_kept + (1 - is_kept) * (self.token @ weights)
        codes = self.encoder(inputs, first=first, drop=self.dropped) @ self.between
        codes = codes.index_fill(0, masked, 0)
        found = self.decoder(inputs.whole, codes)[masked]
        cosine = (normalize(found) * normalize(inputs.dense_columns()[masked])).sum(dim=1)
        return (1 - cosine).pow(self.exponent).mean()


class Sage(nn.Module):
    """GraphSAGE."""

    epochs, decay = 100, 0.0

    def __init__(self, width, dim):
        super().__init__()
        self.own, self.near = (nn.ParameterList([matrix(width, dim), matrix(dim, dim)]) for _ in range(2))
        self.bias = nn.ParameterList([nn.Parameter(torch.zeros(dim)) for _ in range(2)])

    def encoder(self, inputs):
        hidden = inputs.times(self.own[0]) + _Product.apply(*inputs.mean, inputs.times(self.near[0]))
        hidden = (hidden + self.bias[0]).relu()
        found = hidden @ self.own[1] + _Product.apply(*inputs.mean, hidden @ self.near[1]) + self.bias[1]
        return normalize(found)

    def loss(self, inputs):
        out = self.encoder(inputs)
        positives, negatives = inputs.draw()
        pull = logsigmoid((out * out[positives]).sum(dim=1))
        push = logsigmoid(-(out * out[negatives]).sum(dim=1))
        return -(pull + push).mean()


# name: (class, its own dimension)
METHODS = {
    "GraphSAGE": (Sage, 256),
    "DGI": (Infomax, 512),
    "CCA-SSG": (Correlated, 512),
    "GraphMAE": (Masked, 512),
}


def fit(name, train, dim, seed, device="cpu", epochs=None):
    """Train on a graph and return the function from a graph to the vectors of all its nodes (n, dim)."""
    torch.manual_seed(seed)
    encoder = None
    if train.has_features:
        encoder = FeatureEncoder.for_matrix(train.features, "auto", train.feature_names)

    def inputs_of(graph):
        columns = made_columns(graph, seed) if encoder is None else encoder.transform(graph.features)
        return Inputs(graph, columns, device)

    inputs = inputs_of(train)
    model = METHODS[name][0](inputs.width, dim).to(device)
    adam = torch.optim.Adam(model.parameters(), lr=RATE, weight_decay=model.decay)
    for _ in range(epochs or model.epochs):
        adam.zero_grad()
        model.loss(inputs).backward()
        adam.step()

    def embed(graph):
        with torch.no_grad():
            return model.encoder(inputs if graph is train else inputs_of(graph)).cpu().numpy()

    return embed


def made_columns(graph, seed):
    """Return 64 random columns, which a node keeps in a larger graph, and log degrees."""
    names = graph.names if graph.names.dtype.kind in "iu" else np.arange(len(graph))
    rows = np.random.default_rng([seed, RANDOM_COLUMNS]).normal(size=(int(names.max()) + 1, RANDOM_COLUMNS))
    return np.hstack([rows[names] / np.sqrt(RANDOM_COLUMNS), np.log1p(graph.degrees)[:, None]]).astype(
        np.float32
    )
