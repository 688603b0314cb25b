"""Write a network's arrays as the public originals hold them, so that converters meet their real formats."""

import gzip
import io
import json
import pickle
import struct
import tarfile
import zipfile
from collections import defaultdict

import numpy as np
import scipy.sparse as sp

SPLITS = {"train": "train_idx", "valid": "val_idx", "test": "test_idx"}


class Python2Pickler(pickle._Pickler):
    """Pickles as Python 2 did: bytes and text alike are byte strings, and modules have their old names."""

    dispatch = dict(pickle._Pickler.dispatch)  # noqa: RUF012 - as in the parent

    def save_byte_string(self, value):
        data = value.encode("latin1") if isinstance(value, str) else value
        self.write(pickle.BINSTRING + struct.pack("<i", len(data)) + data)
        self.memoize(value)

    dispatch[bytes] = save_byte_string
    dispatch[str] = save_byte_string


def python2_pickle(value):
    buffer = io.BytesIO()
    Python2Pickler(buffer, protocol=2).dump(value)
    return (
        buffer.getvalue()
        .replace(b"numpy._core.multiarray", b"numpy.core.multiarray")
        .replace(b"scipy.sparse._csr", b"scipy.sparse.csr")
    )


def features_of(arrays):
    parts = (arrays["feat_data"], arrays["feat_indices"], arrays["feat_indptr"])
    return sp.csr_matrix(parts, shape=tuple(arrays["feat_shape"]))


def planetoid(name, arrays, seed=0):
    """The eight files of a citation network, tests in random order, undescribed nodes left out."""
    features, labels = features_of(arrays), arrays["labels"]
    n, train = len(labels), len(arrays["train_idx"])
    known = int(arrays["test_idx"].min())
    test = np.random.default_rng(seed).permutation(arrays["test_idx"])
    one_hot = np.zeros((n, labels.max() + 1), dtype=np.int32)
    one_hot[labels >= 0, labels[labels >= 0]] = 1
    graph = defaultdict(list, {node: [] for node in range(n)})
    for u, v in arrays["edges"].tolist():
        graph[u].append(v)
        graph[v].append(u)
    graph[0].append(0)  # the originals hold self-loops and repeats
    values = {
        "x": features[:train],
        "y": one_hot[:train],
        "tx": features[test],
        "ty": one_hot[test],
        "allx": features[:known],
        "ally": one_hot[:known],
        "graph": graph,
    }
    files = {f"ind.{name}.{part}": python2_pickle(value) for part, value in values.items()}
    return files | {f"ind.{name}.test.index": "".join(f"{node}\n" for node in test).encode()}


def facebook(ego, arrays, seed=0):
    """``facebook.tar.gz`` with one ego network, profiles in random order."""
    ids, rng = arrays["node_ids"], np.random.default_rng(seed)
    table = np.column_stack([ids, features_of(arrays).toarray().astype(int)])
    edges = [line for u, v in ids[arrays["edges"]].tolist() for line in (f"{u} {v}", f"{v} {u}")]
    circles = [
        "\t".join([str(title), *map(str, ids[arrays["labels"][:, column] == 1])])
        for column, title in enumerate(arrays["circle_names"])
    ]
    members = {
        "feat": [" ".join(map(str, row)) for row in rng.permutation(table)],
        "edges": edges,
        "circles": circles,
        "featnames": [f"{number} {title}" for number, title in enumerate(arrays["feature_names"])],
    }
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        for kind, lines in members.items():
            data = "".join(f"{line}\n" for line in lines).encode()
            info = tarfile.TarInfo(f"facebook/{ego}.{kind}")
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return {"facebook.tar.gz": buffer.getvalue()}


def twitter(arrays, ids):
    """``twitter_combined.txt.gz``."""
    lines = "".join(f"{u} {v}\n" for u, v in ids[arrays["edges"]].tolist())
    return {"twitter_combined.txt.gz": gzip.compress(lines.encode())}


def zipped(members):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return buffer.getvalue()


def twitch(country, arrays, seed=0):
    """``twitch.zip`` with one country, users in random order."""
    n, features = int(arrays["num_nodes"]), features_of(arrays)
    rows = ["id,days,mature,views,partner,new_id"]
    for node in np.random.default_rng(seed).permutation(n):
        marks = {key: str(bool(arrays[key][node])) for key in ("labels", "partner")}
        numbers = (arrays["days"][node], marks["labels"], arrays["views"][node], marks["partner"], node)
        rows.append(",".join(map(str, (10_000 + node, *numbers))))
    games = {
        str(node): features.indices[features.indptr[node] : features.indptr[node + 1]].tolist()
        for node in range(n)
    }
    edges = ["from,to", *(f"{u},{v}" for u, v in arrays["edges"].tolist())]
    stem = f"twitch/{country}/musae_{country}"
    members = {
        f"{stem}_target.csv": "\n".join(rows),
        f"{stem}_features.json": json.dumps(games),
        f"{stem}_edges.csv": "\n".join(edges),
    }
    return {"twitch.zip": zipped(members)}


def airports(country, arrays, seed=0):
    """An edge list and a label table in random order."""
    ids = arrays["node_ids"]
    order = np.random.default_rng(seed).permutation(len(ids))
    labels = ["node label", *(f"{ids[node]} {arrays['labels'][node]}" for node in order)]
    edges = [f"{u} {v}" for u, v in ids[arrays["edges"]].tolist()]
    return {
        f"{country}-airports.edgelist": "\n".join(edges).encode(),
        f"labels-{country}-airports.txt": "\n".join(labels).encode(),
    }


def npy(value, allow_pickle=False):
    buffer = io.BytesIO()
    np.save(buffer, value, allow_pickle=allow_pickle)
    return buffer.getvalue()


def amazon(arrays):
    """``amazon_electronics_photo.npz``, whose class names are a pickled object array."""
    n = int(arrays["num_nodes"])
    u, v = arrays["edges"].T
    matrices = {
        "adj": sp.csr_matrix((np.ones(len(u), np.float32), (u, v)), shape=(n, n)),
        "attr": features_of(arrays),
    }
    members = {"labels.npy": npy(arrays["labels"])}
    members["class_names.npy"] = npy(np.array(["Film", None], dtype=object), allow_pickle=True)
    for prefix, matrix in matrices.items():
        for part in ("data", "indices", "indptr", "shape"):
            members[f"{prefix}_{part}.npy"] = npy(np.asarray(getattr(matrix, part)))
    return {"amazon_electronics_photo.npz": zipped(members)}


def ppi(arrays):
    """``ppi.zip`` with standardised content, one file of each kind a split."""
    dense = features_of(arrays).toarray().astype(np.float64)
    spread = dense.std(axis=0)
    dense = (dense - dense.mean(axis=0)) / np.where(spread > 0, spread, 1)
    members = {}
    for split, key in SPLITS.items():
        nodes = arrays[key]
        start = int(nodes[0])
        inside = arrays["edges"][np.isin(arrays["edges"][:, 0], nodes)] - start
        both = np.concatenate([inside, inside[:, ::-1], [[0, 0]]])
        links = [{"source": u, "target": v} for u, v in both.tolist()]
        graph = {"directed": True, "nodes": [{"id": node} for node in range(len(nodes))], "links": links}
        members[f"{split}_graph.json"] = json.dumps(graph)
        members[f"{split}_feats.npy"] = npy(dense[nodes])
        members[f"{split}_labels.npy"] = npy(arrays["labels"][nodes].astype(np.int64))
        members[f"{split}_graph_id.npy"] = npy(arrays["graph_id"][nodes].astype(np.int64) + 1)
    return {"ppi.zip": zipped(members)}
