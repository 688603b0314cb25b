"""The paper's networks from their public originals: fetched, checked, converted once and kept in the cache.

``python -m paper.originals cora`` prepares one network, ``python -m paper.originals all`` every one.
"""

import csv
import gzip
import hashlib
import io
import json
import math
import os
import pickle
import pickletools
import re
import sys
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from http.client import HTTPException
from pathlib import Path
from typing import IO, Any
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from spinegraph.atomic import whole_file
from spinegraph.errors import GraphFormatError, MissingFileError, ParameterError, SpineError
from spinegraph.graph import datasets
from spinegraph.graph.datasets import Dataset

Arrays = dict[str, NDArray[Any]]
Progress = Callable[[str, int, int | None], None]

_CHUNK = 1 << 16
_MAX_DOWNLOAD = 1 << 29  # bytes; the largest original is under 30 MB
_MAX_MEMBER = 1 << 30  # bytes of one unpacked member of an archive
_TIMEOUT = 30.0  # seconds without a byte


@dataclass(frozen=True)
class Original:
    """One public file: its name in the cache, its address, and its SHA-256 where unrelated sources agree."""

    file: str
    url: str
    sha256: str | None = None


@dataclass(frozen=True)
class Source:
    """A network's original files, their conversion, and the fingerprint of what they hold."""

    originals: tuple[Original, ...]
    convert: Callable[..., Arrays]  # from the files' paths
    fingerprint: str
    parts: tuple[str, ...] = ("features", "labels")


class DownloadError(SpineError, OSError):
    """A data set that could not be fetched or whose checksum is wrong."""


def load(name: str, progress: Progress | None = None) -> Dataset:
    """Load one of the paper's networks; one that is in no local folder is fetched and kept in the cache.

    ``progress`` is called with a file, the bytes so far, and the bytes in all or None.
    """
    with suppress(MissingFileError):
        return datasets.load(name)
    if not (cache_folder() / f"{name}.npz").is_file():
        convert_original(name, cache_folder(), progress)
    return datasets.load(name, cache_folder())


def cache_folder() -> Path:
    """Return the folder of converted networks: ``SPINEGRAPH_CACHE``, or the system's usual place."""
    if chosen := os.environ.get("SPINEGRAPH_CACHE"):
        return Path(chosen).absolute()
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "spinegraph"
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", Path.home())) / "spinegraph"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache").absolute() / "spinegraph"


def load_ppi() -> list[Dataset]:
    """Load PPI as its 24 tissue networks, in order of id: 20 to train on, 2 to validate, 2 to test.

    A tissue's whole node set is its ``train``, ``val`` or ``test``; the other two are empty.
    """
    return split_by_graph(load("ppi"))


def split_by_graph(dataset: Dataset) -> list[Dataset]:
    """Split a data set that holds several networks into one per value of ``extras["graph_id"]``."""
    graph, extras = dataset.graph, dict(dataset.extras)
    if "graph_id" not in extras:
        raise ParameterError(f"{dataset.name} is one network: it has no graph_id")
    graph_id, titles = extras.pop("graph_id"), extras.pop("graph_names", None)
    splits = {"train": dataset.train, "val": dataset.val, "test": dataset.test}
    parts = []
    for index, number in enumerate(np.unique(graph_id)):
        members = np.flatnonzero(graph_id == number)
        title = f"{dataset.name}/{number if titles is None else titles[index]}"
        parts.append(
            Dataset(
                title,
                graph.subgraph(graph.names[members]),
                labels=None if dataset.labels is None else dataset.labels[members],
                **{
                    split: None if chosen is None else np.flatnonzero(np.isin(members, chosen))
                    for split, chosen in splits.items()
                },
                extras={
                    key: value[members] if value.shape[:1] == (len(graph),) else value
                    for key, value in extras.items()
                },
            )
        )
    return parts


def write_npz(path: str | Path, arrays: Arrays) -> None:
    """Write arrays as a compressed npz, whole or not at all."""
    with whole_file(path) as partial, partial.open("wb") as out:
        named = {key: np.asarray(value) for key, value in arrays.items()}
        np.savez_compressed(out, allow_pickle=False, **named)  # type: ignore[arg-type]


def convert_original(name: str, folder: Path, progress: Progress | None = None) -> Path:
    """Fetch a network's originals, convert and check them, and return ``folder/<name>.npz``.

    A file's SHA-256 is checked where unrelated public sources agree on it (Planetoid, PPI). For every network
    the converted content must have the fingerprint that this package knows.
    """
    source, target = SOURCES[name], folder / f"{name}.npz"
    files = [fetch(original, folder / "originals", progress) for original in source.originals]
    arrays = source.convert(*files)
    found = fingerprint(arrays, source.parts)
    if found != source.fingerprint:
        listed = ", ".join(original.url for original in source.originals[:2])
        raise DownloadError(
            f"{name}: the content must have fingerprint {source.fingerprint}, got {found}: "
            f"{listed} ... no longer hold the published network. Delete {folder / 'originals'} "
            "to download again"
        )
    write_npz(target, arrays)
    return target


def fetch(original: Original, folder: Path, progress: Progress | None = None) -> Path:
    """Return the path of ``original`` in ``folder``, downloading it if it is not there or not intact.

    The file appears under its name only when it is complete and its checksum is right.

    Parameters
    ----------
    original : Original
    folder : Path
    progress : callable(file, bytes so far, bytes in all or None), optional
    """
    path, known = folder / original.file, original.sha256
    if path.is_file() and (known is None or checksum(path) == known):
        return path
    folder.mkdir(parents=True, exist_ok=True)
    with whole_file(path) as partial_file:
        with partial_file.open("wb") as out:
            found = _download(original, out, progress)
        if known is not None and found != known:
            raise DownloadError(
                f"{original.url}: the file's SHA-256 must be {known}, got {found}. It was changed at its "
                "source or on the way; nothing was kept. Try again later, or set SPINEGRAPH_DATA to a folder "
                "that holds the npz files"
            )
    return path


def checksum(path: Path) -> str:
    """Return a file's SHA-256."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _download(original: Original, out: IO[bytes], progress: Progress | None) -> str:
    """Copy the file from the net and return its SHA-256."""
    if not original.url.startswith(("https://", "http://127.0.0.1:")):
        raise DownloadError(f"{original.url}: only https is fetched from")
    digest, done = hashlib.sha256(), 0
    try:
        request = Request(original.url, headers={"User-Agent": "spinegraph"})  # noqa: S310 checked above
        with urlopen(request, timeout=_TIMEOUT) as answer:  # noqa: S310
            stated = answer.headers.get("Content-Length", "")
            total = int(stated) if stated.isdecimal() else None
            while chunk := answer.read(_CHUNK):
                done += len(chunk)
                if done > _MAX_DOWNLOAD:
                    raise DownloadError(f"{original.url}: over {_MAX_DOWNLOAD:,} bytes; stopped")
                digest.update(chunk)
                out.write(chunk)
                if progress is not None:
                    progress(original.file, done, total)
    except (URLError, HTTPException, TimeoutError, ConnectionError) as fault:
        if isinstance(fault, HTTPError):
            fault.close()  # it holds the page that came instead
        raise DownloadError(
            f"{original.url}: could not be fetched ({getattr(fault, 'reason', fault)}). "
            "Check the connection, or set SPINEGRAPH_DATA to a folder that holds the npz files"
        ) from fault
    if total is not None and done != total:
        raise DownloadError(f"{original.url}: {done} of {total} bytes arrived; nothing was kept, try again")
    return digest.hexdigest()


def fingerprint(arrays: Mapping[str, NDArray[Any]], parts: tuple[str, ...] = ("features", "labels")) -> str:
    """Return 16 hexadecimal digits for edges and, as asked, where features are not 0, and labels.

    Each node starts from its label and the popularity of the features it has, takes in its neighbours'
    numbers twice, and the sorted numbers are hashed.
    """
    n, edges = int(arrays["num_nodes"]), np.asarray(arrays["edges"], dtype=np.int64)
    numbers = np.ones(n, dtype=np.uint64)
    if "features" in parts and "feat_indices" in arrays:
        popularity = np.bincount(arrays["feat_indices"])
        own = _mixed(popularity[arrays["feat_indices"]])
        numbers += _sums(own, np.asarray(arrays["feat_indptr"], dtype=np.int64))
    if "labels" in parts and "labels" in arrays:
        labels = arrays["labels"].astype(np.int64)
        numbers += _mixed((labels if labels.ndim == 1 else labels.sum(axis=1)) + 2)
    ends, others = np.concatenate([edges, edges[:, ::-1]]).T
    order = np.argsort(ends, kind="stable")
    indptr = np.concatenate([[0], np.cumsum(np.bincount(ends, minlength=n))])
    for _ in range(2):
        numbers = _mixed(numbers * np.uint64(3) + _sums(_mixed(numbers)[others[order]], indptr))
    digest = hashlib.sha256(f"{n} {len(edges)} ".encode())
    digest.update(np.sort(numbers).astype("<u8").tobytes())
    return digest.hexdigest()[:16]


def _mixed(values: NDArray[Any]) -> NDArray[np.uint64]:
    """Spread numbers over 64 bits (the finishing step of splitmix64)."""
    mixed = values.astype(np.uint64) + np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(mixed ^ (mixed >> np.uint64(31)))


def _sums(values: NDArray[np.uint64], indptr: NDArray[np.int64]) -> NDArray[np.uint64]:
    """Add up the values of each row, modulo 2**64."""
    total: NDArray[np.uint64] = np.concatenate([np.zeros(1, np.uint64), np.cumsum(values, dtype=np.uint64)])
    return np.asarray(total[indptr[1:]] - total[indptr[:-1]])


def pack(edges: NDArray[Any], num_nodes: int, features: sp.csr_array | None = None, **others: Any) -> Arrays:
    """Return a network as arrays: each undirected edge once, u < v, no loops; features as CSR parts."""
    ends = np.sort(np.asarray(edges, dtype=np.int64).reshape(-1, 2), axis=1)
    if len(ends) and (ends[:, 0].min() < 0 or ends[:, 1].max() >= num_nodes):
        raise GraphFormatError(f"an edge names a node outside 0..{num_nodes - 1}")
    ends = ends[ends[:, 0] != ends[:, 1]]
    keys = np.unique(ends[:, 0] * num_nodes + ends[:, 1])
    arrays: Arrays = {
        "edges": np.column_stack(np.divmod(keys, max(num_nodes, 1))).astype(np.int32),
        "num_nodes": np.array(num_nodes, dtype=np.int64),
    }
    if features is not None:
        matrix = sp.csr_array(features, dtype=np.float32, copy=True)
        matrix.sum_duplicates()
        matrix.eliminate_zeros()
        arrays |= {"feat_data": matrix.data, "feat_indices": matrix.indices, "feat_indptr": matrix.indptr}
        arrays["feat_shape"] = np.array(matrix.shape, dtype=np.int64)
    return arrays | {key: np.asarray(value) for key, value in others.items()}


def convert_airports(edges: Path, labels: Path) -> Arrays:
    """Convert an edge list and a label table with a header."""
    table = _integers(labels.read_bytes().partition(b"\n")[2], str(labels), 2)
    table = table[np.argsort(table[:, 0], kind="stable")]
    flights = _positions_of(table[:, 0], _integers(edges.read_bytes(), str(edges), 2), str(edges))
    return pack(flights, len(table), labels=table[:, 1], node_ids=table[:, 0])


def convert_amazon(path: Path) -> Arrays:
    """Convert ``amazon_electronics_photo.npz``; directions are dropped."""
    adjacency, content = _csr_of_npz(path, "adj").tocoo(), _csr_of_npz(path, "attr")
    labels = _npy_member(path, "labels")
    n = adjacency.shape[0]
    shapes = adjacency.shape, content.shape[:1], labels.shape
    if shapes != ((n, n), (n,), (n,)) or labels.dtype.kind not in "iu":
        raise GraphFormatError(
            f"{path}: adjacency {adjacency.shape}, attributes {content.shape} and labels {labels.shape} "
            "do not describe the same nodes"
        )
    return pack(np.column_stack(adjacency.coords), n, content, labels=labels.astype(np.int64))


def _csr_of_npz(path: Path, prefix: str) -> sp.csr_array:
    """Read a CSR matrix from its four arrays."""
    data, indices, indptr, shape = (
        _npy_member(path, f"{prefix}_{part}") for part in ("data", "indices", "indptr", "shape")
    )
    try:
        matrix = sp.csr_array((data, indices, indptr), shape=tuple(int(size) for size in shape))
        matrix.check_format(full_check=True)
    except (TypeError, ValueError) as fault:
        raise GraphFormatError(f"{path}: {prefix} is not a CSR matrix ({fault})") from fault
    return matrix


PARTS = ("x", "y", "tx", "ty", "allx", "ally", "graph", "test.index")


def convert_planetoid(*paths: Path) -> Arrays:
    """Convert the files, in the order of ``PARTS``, with the public split.

    ``allx`` and ``ally`` describe the first nodes, of which ``y`` counts the training ones; row i of ``tx``
    and ``ty`` describes node ``test.index[i]``. Nodes that neither describes (15 of Citeseer's) get no
    content and label -1.
    """
    files = dict(zip(PARTS, paths, strict=True))
    read = {part: read_pickle(files[part]) for part in PARTS[:-1]}
    for part in ("tx", "allx"):
        if not isinstance(read[part], sp.csr_array):
            raise GraphFormatError(f"{files[part]}: expected a CSR matrix")
    test = _integers(files["test.index"].read_bytes(), str(files["test.index"]), 1)[:, 0]
    known, tested, n = read["allx"].shape[0], read["tx"].shape[0], int(test.max(initial=-1)) + 1
    if len(test) != tested or len(np.unique(test)) < tested or test.min(initial=known) < known:
        raise GraphFormatError(f"{files['test.index']}: expected {tested} different nodes from {known} up")
    labels = np.full(n, -1, dtype=np.int64)
    labels[:known] = _classes(read["ally"], known, files["ally"])
    labels[test] = _classes(read["ty"], tested, files["ty"])
    rows = np.concatenate([np.arange(known), test])
    # Row i of the stacked content becomes row rows[i]; rows that no file describes stay empty.
    ones = np.ones(len(rows), np.float32)
    order = sp.csr_array((ones, (rows, np.arange(len(rows)))), shape=(n, len(rows)))
    train = len(_classes(read["y"], read["x"].shape[0], files["y"]))
    return pack(
        _neighbour_lists(read["graph"], files["graph"]),
        n,
        order @ sp.vstack([read["allx"], read["tx"]], format="csr").astype(np.float32),
        labels=labels,
        train_idx=np.arange(train),
        val_idx=np.arange(train, min(train + 500, known)),
        test_idx=np.sort(test),
    )


def _classes(one_hot: Any, rows: int, path: Path) -> NDArray[np.int64]:
    """Return the class of each row, -1 where none is marked."""
    if not isinstance(one_hot, np.ndarray) or one_hot.ndim != 2 or len(one_hot) != rows:
        raise GraphFormatError(f"{path}: expected one row of class marks for each of {rows} nodes")
    return np.where(one_hot.any(axis=1), one_hot.argmax(axis=1), -1).astype(np.int64)


def _neighbour_lists(listing: Any, path: Path) -> NDArray[np.int64]:
    """Return a dict of node to neighbours as pairs (m, 2)."""
    if not isinstance(listing, dict) or not all(isinstance(others, list) for others in listing.values()):
        raise GraphFormatError(f"{path}: expected a dict of node to list of neighbours")
    pairs = [(node, other) for node, others in listing.items() for other in others]
    if not all(type(node) is int and type(other) is int for node, other in pairs):
        raise GraphFormatError(f"{path}: nodes must be integers")
    return np.array(pairs, dtype=np.int64).reshape(-1, 2)


def convert_ppi(path: Path) -> Arrays:
    """Convert ``ppi.zip``: nodes of the training networks first, then validation, then test."""
    edges, features, labels, graph_ids, splits = [], [], [], [], {}
    start = networks = 0
    for split, key in {"train": "train_idx", "valid": "val_idx", "test": "test_idx"}.items():
        feats, marks, ids = (_npy_member(path, f"{split}_{name}") for name in ("feats", "labels", "graph_id"))
        n = len(ids)
        if feats.ndim != 2 or marks.ndim != 2 or len(feats) != n or len(marks) != n:
            raise GraphFormatError(f"{path}: the {split} arrays do not describe the same {n} nodes")
        edges.append(_links(path, f"{split}_graph.json", n) + start)
        numbers = np.unique(ids, return_inverse=True)[1]
        graph_ids.append(numbers + networks)
        features.append(feats)
        labels.append(marks)
        splits[key] = np.arange(start, start + n)
        start, networks = start + n, networks + int(numbers.max(initial=-1)) + 1
    content = np.concatenate(features)
    # Content is 0/1, but was standardised: of a column's two values the larger is 1.
    low, high = content.min(axis=0), content.max(axis=0)
    if ((content == low) | (content == high)).all():
        content = (content == high) & (high > low)
    return pack(
        np.concatenate(edges),
        start,
        sp.csr_array(content.astype(np.float32)),
        labels=np.concatenate(labels).astype(np.uint8),
        graph_id=np.concatenate(graph_ids).astype(np.int16),
        **splits,
    )


def _links(path: Path, member: str, n: int) -> NDArray[np.int64]:
    """Read the links of a node-link JSON as (m, 2)."""
    try:
        listing = json.loads(_zip_member(path, member))
        pairs = [(link["source"], link["target"]) for link in listing["links"]]
        edges = np.array(pairs, dtype=np.int64).reshape(-1, 2)
    except (KeyError, TypeError, ValueError) as fault:
        raise GraphFormatError(f"{path}: {member}: not a node-link graph ({fault!r})") from fault
    if len(edges) and not (edges.min() >= 0 and edges.max() < n):
        raise GraphFormatError(f"{path}: {member}: links must lie in 0..{n - 1}")
    return edges


def convert_facebook(archive: Path, ego: int) -> Arrays:
    """Convert one ego network of ``facebook.tar.gz``: friends of ``ego``, their profiles and circles."""
    kinds = ("edges", "feat", "circles", "featnames")
    text = {kind: _tar_member(archive, f"facebook/{ego}.{kind}") for kind in kinds}
    title = f"{archive}: {ego}"
    names = [line.split(" ", 1)[-1] for line in text["featnames"].decode().splitlines()]
    table = _integers(text["feat"], f"{title}.feat", 1 + len(names))
    table = table[np.argsort(table[:, 0], kind="stable")]
    ids = table[:, 0]
    circles = [line.split() for line in text["circles"].decode().splitlines() if line.split()]
    labels = np.zeros((len(ids), len(circles)), dtype=np.uint8)
    for column, (_, *members) in enumerate(circles):
        labels[np.isin(ids, np.array(members, dtype=np.int64)), column] = 1
    return pack(
        _positions_of(ids, _integers(text["edges"], f"{title}.edges", 2), f"{title}.edges"),
        len(ids),
        sp.csr_array(table[:, 1:]),
        labels=labels,
        node_ids=ids,
        feature_names=np.array(names),
        circle_names=np.array([circle[0] for circle in circles]),
    )


def convert_twitter(path: Path) -> Arrays:
    """Convert ``twitter_combined.txt.gz``: who follows whom, directions dropped."""
    with _readable(path, "gzip"):
        text = gzip.decompress(path.read_bytes())
    ids, edges = np.unique(_integers(text, str(path), 2), return_inverse=True)
    return pack(edges.reshape(-1, 2), len(ids), node_ids=ids)


_TWITCH_FEATURES = 3170  # shared by all countries


def convert_twitch(archive: Path, country: str) -> Arrays:
    """Convert one country of ``twitch.zip``: friendships, games as content, mature language as label."""
    stem = f"twitch/{country}/musae_{country}"
    title = f"{archive}: {stem}"
    try:
        users = list(csv.DictReader(io.StringIO(_zip_member(archive, f"{stem}_target.csv").decode())))
        users.sort(key=lambda user: int(user["new_id"]))
        n = len(users)
        numbers = {key: np.array([int(user[key]) for user in users]) for key in ("new_id", "days", "views")}
        marks = {
            key: np.array([user[key] == "True" for user in users], dtype=np.int64)
            for key in ("mature", "partner")
        }
        games = json.loads(_zip_member(archive, f"{stem}_features.json"))
        listed = [np.array(games[str(user)], dtype=np.int64) for user in range(n)]
        pairs = list(csv.reader(io.StringIO(_zip_member(archive, f"{stem}_edges.csv").decode())))[1:]
        edges = np.array(pairs, dtype=np.int64).reshape(-1, 2)
    except GraphFormatError:
        raise
    except (KeyError, TypeError, ValueError) as fault:
        raise GraphFormatError(f"{title}: the tables are not those of the MUSAE data ({fault!r})") from fault
    if not np.array_equal(numbers["new_id"], np.arange(n)):
        raise GraphFormatError(f"{title}_target.csv: new_id must number the users 0..{n - 1}")
    columns = np.concatenate([np.zeros(0, np.int64), *listed])
    if columns.size and not (columns.min() >= 0 and columns.max() < _TWITCH_FEATURES):
        raise GraphFormatError(f"{title}_features.json: features must lie in 0..{_TWITCH_FEATURES - 1}")
    rows = np.repeat(np.arange(n), [len(own) for own in listed])
    content = sp.csr_array((np.ones(len(rows), np.float32), (rows, columns)), shape=(n, _TWITCH_FEATURES))
    content.data[:] = 1.0
    more = {"partner": marks["partner"], "views": numbers["views"], "days": numbers["days"]}
    return pack(edges, n, content, labels=marks["mature"], **more)


def _zip_member(path: Path, name: str) -> bytes:
    """Return one member of a zip file, in bounded memory and without writing it anywhere."""
    with _readable(path, "zip"), zipfile.ZipFile(path) as archive:
        _require_member(archive.namelist(), name, path)
        with archive.open(name) as member:
            return _bounded(member, f"{path}: {name}")


def _tar_member(path: Path, name: str) -> bytes:
    """Return one member of a gzipped tar file, in bounded memory and without writing it anywhere."""
    with _readable(path, "tar"), tarfile.open(path, "r:gz") as archive:
        _require_member(archive.getnames(), name, path)
        member = archive.extractfile(name)
        if member is None:
            raise GraphFormatError(f"{path}: {name} is not a plain file")
        return _bounded(member, f"{path}: {name}")


_DAMAGED = (zipfile.BadZipFile, tarfile.TarError, gzip.BadGzipFile, zlib.error, EOFError, RuntimeError)


@contextmanager
def _readable(path: Path, kind: str) -> Iterator[None]:
    try:
        yield
    except _DAMAGED as fault:
        raise GraphFormatError(
            f"{path}: not a readable {kind} file ({fault}); delete it and load again"
        ) from fault


def _require_member(names: list[str], name: str, path: Path) -> None:
    if name not in names:
        raise GraphFormatError(f"{path}: {name} is not in the archive; it holds {', '.join(names[:5])} ...")


def _bounded(member: IO[bytes], title: str) -> bytes:
    """Read a member, unless it unpacks to more than any original does."""
    data = member.read(_MAX_MEMBER + 1)
    if len(data) > _MAX_MEMBER:
        raise GraphFormatError(f"{title} unpacks to over {_MAX_MEMBER:,} bytes")
    return data


def _npy_member(path: Path, name: str) -> NDArray[Any]:
    """Return the array ``name``.npy of a zip file; pickled objects are refused."""
    try:
        return np.asarray(np.load(io.BytesIO(_zip_member(path, f"{name}.npy")), allow_pickle=False))
    except GraphFormatError:
        raise
    except (ValueError, EOFError, OSError) as fault:
        raise GraphFormatError(f"{path}: {name}: not a readable npy array ({fault})") from fault


def _integers(text: bytes, title: str, columns: int) -> NDArray[np.int64]:
    """Return white-space separated integers as (rows, columns)."""
    try:
        return np.array(text.split(), dtype=np.int64).reshape(-1, columns)
    except (ValueError, OverflowError) as fault:
        raise GraphFormatError(f"{title}: expected {columns} integers a line ({fault})") from fault


def _positions_of(ids: NDArray[np.int64], wanted: NDArray[np.int64], title: str) -> NDArray[np.int64]:
    """Return the position of each wanted id in the ascending ``ids``."""
    unknown = wanted[~np.isin(wanted, ids)]
    if unknown.size:
        raise GraphFormatError(f"{title}: node {unknown.flat[0]} is named here and nowhere described")
    return np.searchsorted(ids, wanted)


def read_pickle(path: Path) -> Any:
    """Return what a Planetoid pickle holds: an array, a csr_array, or a dict of lists of integers.

    Nothing that a pickle names is ever loaded: stand-ins record the parts of arrays, which are checked.
    """
    data = path.read_bytes()
    try:
        for code, slot, _ in pickletools.genops(data):  # memory is allocated up to the largest memo slot
            if code.name in ("PUT", "LONG_BINPUT") and not 0 <= int(slot or 0) < len(data):
                raise GraphFormatError(
                    f"a pickle of {len(data)} bytes may not remember a value at place {slot}"
                )
        found = _Reader(io.BytesIO(data), encoding="latin1").load()
        whole = found.value() if isinstance(found, _Array | _Csr) else found
        if isinstance(whole, _Call | _DType | type):
            raise GraphFormatError("holds the name of a function or type, and no array")
        return whole
    except GraphFormatError as fault:
        raise GraphFormatError(f"{path}: {fault}") from fault
    except Exception as fault:  # a damaged pickle can fail in any way the opcodes allow
        raise GraphFormatError(f"{path}: not a readable pickle of arrays ({fault!r})") from fault


class _DType:
    """Stands in for numpy.dtype."""

    def __init__(self, name: str = "", *_: Any) -> None:
        self.name, self.order = name, "<"

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        self.order = state[1]

    def value(self) -> np.dtype[Any]:
        """Return the type if it is one of plain numbers."""
        if not re.fullmatch("[iu][1248]|f[48]|b1", self.name) or self.order not in ("<", ">", "|", "="):
            raise GraphFormatError(f"arrays must hold plain numbers; got dtype {self.name!r}")
        return np.dtype(self.name).newbyteorder(self.order)  # type: ignore[arg-type]


class _Array:
    """Stands in for numpy.ndarray: records its state."""

    state: tuple[Any, ...] = ()

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        self.state = state

    def value(self) -> NDArray[Any]:
        """Build the array from checked parts."""
        _, shape, dtype, is_fortran, data = self.state
        raw = data.encode("latin1") if isinstance(data, str) else data
        if not isinstance(dtype, _DType) or not isinstance(raw, bytes) or not _is_shape(shape):
            raise GraphFormatError("an array's parts are not those of an array")
        kind, size = dtype.value(), math.prod(shape)
        if len(raw) != size * kind.itemsize:
            raise GraphFormatError(f"an array of shape {shape} must hold {size} numbers of {kind}")
        return np.frombuffer(raw, kind).reshape(shape, order="F" if is_fortran else "C")


class _Csr:
    """Stands in for scipy.sparse.csr_matrix: records its state."""

    state: dict[str, Any] = {}  # noqa: RUF012 - replaced, never changed

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.state = state

    def value(self) -> sp.csr_array:
        """Build the matrix from checked parts."""
        parts: list[Any] = [self.state.get(key) for key in ("data", "indices", "indptr")]
        shape = self.state.get("_shape", self.state.get("shape"))
        if not all(isinstance(part, _Array) for part in parts) or not _is_shape(shape):
            raise GraphFormatError("a matrix's parts are not those of a CSR matrix")
        matrix = sp.csr_array(tuple(part.value() for part in parts), shape=shape)
        matrix.check_format(full_check=True)
        return matrix


def _is_shape(shape: Any) -> bool:
    return isinstance(shape, tuple) and all(type(size) is int and size >= 0 for size in shape)


class _Call:
    """A function that a pickle may call, and do nothing else to."""

    __slots__ = ("_function",)

    def __init__(self, function: Any) -> None:
        self._function = function

    def __call__(self, *arguments: Any) -> Any:
        return self._function(*arguments)

    def __setstate__(self, state: Any) -> None:
        raise GraphFormatError("a pickle may not change a function")


def _bytes(text: str, encoding: str) -> bytes:
    """Encode as Python 3 asks old pickles to; other codecs could do anything."""
    if encoding != "latin1":
        raise GraphFormatError(f"a pickle may not use the codec {encoding!r}")
    return text.encode("latin1")


_ALLOWED: dict[str, Any] = {
    "_codecs.encode": _Call(_bytes),
    "collections.defaultdict": _Call(lambda *_: {}),
    **dict.fromkeys(("__builtin__.list", "builtins.list"), _Call(list)),
    "numpy.ndarray": _Array,
    "numpy.dtype": _DType,
    **{f"numpy.{core}.multiarray._reconstruct": _Call(lambda *_: _Array()) for core in ("core", "_core")},
    **dict.fromkeys(("scipy.sparse.csr.csr_matrix", "scipy.sparse._csr.csr_matrix"), _Csr),
}


class _Reader(pickle.Unpickler):
    """An unpickler that knows only the stand-ins."""

    def find_class(self, module: str, name: str) -> Any:
        """Return a stand-in, or refuse."""
        if f"{module}.{name}" not in _ALLOWED:
            raise GraphFormatError(
                f"refused: the pickle asks for {module}.{name}, which is no array; not loaded"
            )
        return _ALLOWED[f"{module}.{name}"]


_SNAP = "https://snap.stanford.edu/data"
_STRUC2VEC = "https://raw.githubusercontent.com/leoribeiro/struc2vec/master/graph"
_AMAZON = "https://github.com/shchur/gnn-benchmark/raw/master/data/npz"
_PLANETOID = (
    "https://raw.githubusercontent.com/kimiyoung/planetoid/af6abf468a772cc055bec88c52e4d6f51b7c37e3/data"
)
_PPI = Original(
    "ppi.zip",
    "https://data.dgl.ai/dataset/ppi.zip",
    "1f5b2b09ac0f897fa6aa1338c64ab75a5473674cbba89380120bede8cddb2a6a",
)

# In the order of PARTS.
_PLANETOID_SHA256 = {
    "cora": (
        "23cfa55d91c6f624233f5eb7b6e3f141f1bd2b2ae39608a63cf5d084bb27baab",
        "94465c14eb53e04ca262198dcbb2521ee8af60fb3f3d546cd6ca24a511b0e7d1",
        "b9afbaa4a400df991f6f02ef677e1e44da55ffc04801fd02f9e673987829226a",
        "41f5ac76596a1699cc33f53084a2419e92961c42bb75f36fc38e616d348532ad",
        "9419ba2f26f5c35243db64aba110e0f35a04851609e0dc5433450676ca6b8543",
        "2b998f5cc7fedc86e7f97ca2498f47a1ffc1462c29e2d578b23bf3f62b6e7d71",
        "58f13302f39dde8852dad6fe6d15b89b077b6d7f837626bce671ef80344b383d",
        "297ce89af2b51a6a194181c7dbe1796c6a1cf9cd9349a88383b1b1e227867875",
    ),
    "citeseer": (
        "d20de19150741e555de0ed037195630fc194114ebc7fd72ced62810148aa22f6",
        "8ba87e515d8e3ee3cf52f6d2c5b86aa73f11ecad825a808455209ec26cd54924",
        "539a8906a2da97628d212f2fdd668c109a8b3f0d36574b59e5d3fd5b5303da21",
        "55e5bd1ba1e733a04598753ad1a8d57957f4b8f89e74519f41f4f4938767e4ce",
        "2ac30345d95c9ec933a817ee0bdd6a5f077f8c184a20e696910192d534414668",
        "f704b2d986dde6c2669934de1f3ae5696a6cf9455c0f6b2646a2d135ea0a1c95",
        "d79a4ef9d3e7169aee8946145f6b7306e35bc79bffad26346cfb94e10e9912a7",
        "2af990671580b6b2df5d158d1038f8292e30c9cd821b5453f399659b25b723d4",
    ),
    "pubmed": (
        "fbe9cb5c47200d1b7769a26e579be3b7130b556831f9d850e77c4c74f2599b33",
        "e6c807633307a07ed659249006536a147c7999c797f11a2560752990181b41b3",
        "4eb5f5d0f30f26497eb0ac6ac9719d09c67e284f1ed0385c93f3ef27a671da3d",
        "ee2e0d4819d9fbcc403689c3bf2e49face401b605932f093bc58ab6461130fdd",
        "508e538e2abdccdd54c4d3e9f49d638b4af7107d85845f66ddea5a5152658b7e",
        "0c37bbe3b5014ec365e9d393cf4791925e5ed94fb194305d74f064a8d7b50f0e",
        "5b89f0036ca22909471f1e6558eb42fa06e0c730a577bde5b058b40638f81dc9",
        "b101d421688bbaecbd82e8a18f1e282378d6830f3a37666f28ebc47f844341b5",
    ),
}


def _files(address: str, *names: str) -> tuple[Original, ...]:
    return tuple(Original(name, f"{address}/{name}") for name in names)


def _planetoid(name: str, content: str) -> Source:
    files = _files(_PLANETOID, *(f"ind.{name}.{part}" for part in PARTS))
    checked = zip(files, _PLANETOID_SHA256[name], strict=True)
    return Source(tuple(Original(one.file, one.url, sha) for one, sha in checked), convert_planetoid, content)


def _facebook(ego: int, content: str) -> Source:
    return Source(_files(_SNAP, "facebook.tar.gz"), partial(convert_facebook, ego=ego), content)


def _twitch(country: str, content: str) -> Source:
    return Source(_files(_SNAP, "twitch.zip"), partial(convert_twitch, country=country), content)


def _airports(country: str, content: str) -> Source:
    files = _files(_STRUC2VEC, f"{country}-airports.edgelist", f"labels-{country}-airports.txt")
    return Source(files, convert_airports, content)


SOURCES: Mapping[str, Source] = {
    "airports_brazil": _airports("brazil", "ba555d84548b23dc"),
    "airports_europe": _airports("europe", "c8829e7a8365d9c4"),
    "amazon_photo": Source(
        _files(_AMAZON, "amazon_electronics_photo.npz"), convert_amazon, "bbe09fafd85f0049"
    ),
    "citeseer": _planetoid("citeseer", "f833d8761d217180"),
    "cora": _planetoid("cora", "31c73f0fc5b463f4"),
    "ego_twitter": Source(_files(_SNAP, "twitter_combined.txt.gz"), convert_twitter, "6fd467709172a4fe"),
    "fb686": _facebook(686, "7aca2941ac7c1b29"),
    "fb_ego_414": _facebook(414, "a59ac6d54e267b88"),
    "ppi": Source((_PPI,), convert_ppi, "b28b6fefcea78af1", parts=()),
    "pubmed": _planetoid("pubmed", "5d2eed7a0765f6a5"),
    "twitch_ENGB": _twitch("ENGB", "dd6ae92d2a822d2a"),
    "twitch_ES": _twitch("ES", "fc85dcca8091269d"),
    "twitch_PTBR": _twitch("PTBR", "2885d5b849d33af3"),
    "twitch_RU": _twitch("RU", "e2f32d3a96e3e1a2"),
}


def main() -> None:
    """Prepare the networks named on the command line."""
    for name in datasets.NAMES if sys.argv[1:] == ["all"] else sys.argv[1:]:
        print(f"{name}: {load(name).graph}; converted networks are in {cache_folder()}")


if __name__ == "__main__":
    main()
