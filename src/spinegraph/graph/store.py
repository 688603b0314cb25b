"""Graphs on disk: memory-mapped arrays and a JSON header, so that a graph may be larger than memory."""

import json
import mmap
import os
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, fields
from hashlib import blake2b, file_digest
from itertools import pairwise
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse

from spinegraph.atomic import JsonObject, make_folder, recover, whole_folder
from spinegraph.errors import GraphFormatError, MissingFileError, ModelFormatError, ParameterError
from spinegraph.graph.describe import fingerprint
from spinegraph.graph.edges import MAX_NODES, EdgeReport, Rows, pieces
from spinegraph.graph.graph import Graph
from spinegraph.graph.names import NameIndex, as_array, first_few, is_range

if TYPE_CHECKING:
    import pyarrow as pa

FORMAT, VERSION, HEADER = "spinegraph.store", 1, "header.json"
_MAX_HEADER = 2**28  # bytes
_ROWS = 2**18  # rows checked at a time
_NAMES = 2**16  # names encoded or decoded at a time
_SCAN_SHARE = 32  # if at least one in so many names is looked up, reading all is faster than searching each
_REBUILD = "copy the whole store again, or build it again"
ENCODING = ("utf-8", "surrogatepass")  # a lone surrogate is legal in a Python str
# File -> number of dimensions and allowed types.
FILES: dict[str, tuple[int, tuple[str, ...]]] = {
    **dict.fromkeys(("indptr.bin", "names.bin", "names_ends.bin", "names_order.bin"), (1, ("<i8",))),
    **dict.fromkeys(("weights.bin", "outward.bin", "inward.bin", "features_data.bin"), (1, ("<f4",))),
    **dict.fromkeys(("features_indices.bin", "features_indptr.bin"), (1, ("<i4", "<i8"))),
    "indices.bin": (1, ("<i4",)),
    "names_text.bin": (1, ("|u1",)),
    "features.bin": (2, ("<f4",)),
}
SPARSE = ("features_data.bin", "features_indices.bin", "features_indptr.bin")
Arrays = dict[str, NDArray[Any]]


@dataclass(frozen=True)
class Entry:
    """Type, shape and checksum of a file."""

    dtype: str
    shape: tuple[int, ...]
    digest: str


@dataclass(frozen=True)
class Header:
    """The content of a store's header.json."""

    names: str  # "range", "integer" or "text"
    is_sorted: bool  # whether names ascend; if not, names_order.bin holds their order
    num_features: int | None
    feature_names: tuple[str, ...] | None
    report: EdgeReport | None
    fingerprint: str  # of the graph
    files: Mapping[str, Entry]

    @property
    def num_nodes(self) -> int:
        """Number of nodes n."""
        return self.files["indptr.bin"].shape[0] - 1

    def write(self, folder: Path) -> None:
        """Write header.json."""
        about = {"format": FORMAT, "version": VERSION, **asdict(self)}
        about["digest"] = header_digest(about)
        (folder / HEADER).write_text(json.dumps(about, indent=1), encoding="utf-8")

    @classmethod
    def read(cls, folder: Path) -> "Header":
        """Read header.json; raises GraphFormatError if anything is wrong with it."""
        path = folder / HEADER
        if not path.is_file():
            what = f"has no {HEADER}" if folder.is_dir() else "no such folder"
            raise MissingFileError(f"{folder}: {what}; pass a store, as made by spine data build")
        try:
            with path.open("rb") as file:
                about = JsonObject(json.loads(file.read(_MAX_HEADER)), "top level")
            about.one_of("format", FORMAT)
            version = about.whole("version", 1, 2**31)
            if version > VERSION:
                raise ModelFormatError(f"is version {version}, spinegraph reads up to {VERSION}: upgrade it")
            if about.meta.get("digest", header_digest(about.meta)) != header_digest(about.meta):
                raise ModelFormatError("its checksum does not match: it is damaged")
            return _checked(about)
        except (ModelFormatError, ValueError, RecursionError, OSError) as fault:
            raise GraphFormatError(f"{path}: {str(fault)[:300]}; {_REBUILD}") from fault


def is_store(path: Any) -> bool:
    """Return whether a path is the folder of a store."""
    return os.path.isfile(os.path.join(path, HEADER))


def header_digest(about: Mapping[str, Any]) -> str:
    """Return the digest of a header's other fields, independent of their order."""
    others = {key: value for key, value in about.items() if key != "digest"}
    return blake2b(json.dumps(others, sort_keys=True).encode(), digest_size=16).hexdigest()


def _checked(about: JsonObject) -> Header:
    entries = about.get("files", dict)
    files = {name: _entry(JsonObject(entries[name], name), name) for name in sorted(entries)}
    names = about.one_of("names", "range", "integer", "text")
    has_features = about.meta.get("num_features") is not None
    num_features = about.whole("num_features", 0, 2**31 - 1) if has_features else None
    has_titles = about.meta.get("feature_names") is not None
    columns = tuple(about.list_of("feature_names", str)) if has_titles else None
    if columns is not None and len(columns) != num_features:
        raise ModelFormatError(f"feature_names must have {num_features} entries; got {len(columns)}")
    report = about.meta.get("report")
    if report is not None:
        counts, listed = [field.name for field in fields(EdgeReport)], JsonObject(report, "report")
        report = EdgeReport(**{name: listed.whole(name, 0, 2**63 - 1) for name in counts})
    is_sorted, known = about.get("is_sorted", bool), about.get("fingerprint", str)
    header = Header(names, is_sorted, num_features, columns, report, known, files)
    _require_shapes(header)
    return header


def _entry(entry: JsonObject, name: str) -> Entry:
    if name not in FILES:
        raise ModelFormatError(f"{name!r:.60} is not a file of a store")
    dimensions, types = FILES[name]
    shape = entry.list_of("shape", int)
    if len(shape) != dimensions or not all(0 <= size < 2**62 for size in shape):
        raise ModelFormatError(f"{name}: shape must be {dimensions} sizes; got {shape!r:.60}")
    return Entry(entry.one_of("dtype", *types), tuple(shape), entry.get("digest", str))


def _require_shapes(header: Header) -> None:
    """Raise if the files do not form one graph."""
    shapes = {name: entry.shape for name, entry in header.files.items()}
    wanted = {"indptr.bin", "indices.bin"}
    wanted |= {"names_text.bin", "names_ends.bin"} if header.names == "text" else {"names.bin"}
    wanted |= {"weights.bin"} & set(shapes)
    wanted |= {"outward.bin", "inward.bin"} if "outward.bin" in shapes else set()
    wanted |= set() if header.is_sorted else {"names_order.bin"}
    if header.num_features is not None:
        wanted |= {"features.bin"} if "features.bin" in shapes else set(SPARSE)
    if wanted != set(shapes):
        raise ModelFormatError(f"expected the files {', '.join(sorted(wanted))}; got {', '.join(shapes)}")
    n = header.num_nodes
    if not 1 <= n <= MAX_NODES:
        raise ModelFormatError(f"a graph must have 1 to {MAX_NODES} nodes; got {n}")
    same = dict.fromkeys(("weights.bin", "outward.bin", "inward.bin"), shapes["indices.bin"])
    same |= dict.fromkeys(("names.bin", "names_ends.bin", "names_order.bin"), (n,))
    if header.num_features is not None:
        same |= {"features.bin": (n, header.num_features), "features_indptr.bin": (n + 1,)}
        same |= {"features_indices.bin": shapes.get("features_data.bin", ())}
    for name, shape in same.items():
        if name in shapes and shapes[name] != shape:
            raise ModelFormatError(f"{name}: must have shape {shape}; got {shapes[name]}")


def write_store(graph: Graph, folder: str | Path) -> None:
    """Write a graph as a store, atomically; an existing store is replaced.

    Parameters
    ----------
    graph : Graph
        Its names must be all whole numbers or all text.
    folder : path

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as place:
    ...     write_store(Graph.from_edges([("ann", "bob")]), f"{place}/store")
    ...     open_store(f"{place}/store")
    Graph(2 nodes, 1 edge, names 'ann', 'bob')
    """
    folder = Path(folder)
    require_store_place(folder)
    make_folder(folder.resolve().parent)
    with whole_folder(folder) as partial:
        arrays = {"indptr": graph.indptr, "indices": graph.indices, **graph._rows.values}
        files = {f"{name}.bin": write_array(partial / f"{name}.bin", array) for name, array in arrays.items()}
        kind, is_sorted = _write_names(graph.names, partial, files)
        width = write_features(graph.features, partial, files)
        columns = graph.feature_names
        Header(kind, is_sorted, width, columns, graph.report, fingerprint(graph), files).write(partial)


def open_store(folder: str | Path, *, verify: bool = False) -> Graph:
    """Open a store as a graph; its arrays are read-only memory maps, so that opening is instant.

    Parameters
    ----------
    folder : path
    verify : bool
        Read everything, and raise if files fail their checksum or do not form a graph. Do so once for a store
        from elsewhere, because by default only the header and the sizes of files are checked.

    Raises
    ------
    GraphFormatError
        The store is truncated, damaged or of a newer version; the message names the file.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as place:
    ...     write_store(Graph.from_edges([(0, 1), (1, 2)]), f"{place}/store")
    ...     open_store(f"{place}/store", verify=True).store.name
    'store'
    """
    folder = Path(folder)
    recover(folder)
    header = Header.read(folder)
    arrays = {name: map_array(folder / name, entry) for name, entry in header.files.items()}
    if verify:
        check_content(folder, header, arrays)
    graph = graph_of(header, arrays)
    object.__setattr__(graph, "store", folder.resolve())
    object.__setattr__(graph, "known_fingerprint", header.fingerprint)
    return graph


def graph_of(header: Header, arrays: Arrays) -> Graph:
    """Return the graph of a header and its arrays."""
    order = arrays.get("names_order.bin")
    names: Any
    index: NameIndex
    if header.names == "text":
        names = StoredNames(arrays["names_text.bin"], arrays["names_ends.bin"])
        index = StoredNameIndex(names, order)
    else:
        names = arrays["names.bin"]
        index = NameIndex(names, order, covers_range=header.names == "range")
    values = (arrays.get(f"{name}.bin") for name in ("weights", "outward", "inward"))
    rows = Rows(arrays["indptr.bin"], arrays["indices.bin"], *values)
    features: Any = arrays.get("features.bin")
    if SPARSE[0] in arrays:
        data, indices, indptr = (arrays[name] for name in SPARSE)
        if indptr[0] != 0 or indptr[-1] != len(data):
            raise GraphFormatError(f"features_indptr.bin must rise from 0 to {len(data)}; {_REBUILD}")
        features = csr_array((data, indices, indptr), shape=(header.num_nodes, header.num_features))
    graph = Graph._trusted(rows, names, features, header.feature_names, header.report)
    object.__setattr__(graph, "_name_index", index)
    return graph


def require_store_place(folder: Path) -> None:
    """Raise unless a path is free, a store or an empty folder."""
    if not folder.exists() or is_store(folder):
        return
    if not folder.is_dir():
        raise ParameterError(f"{folder}: is a file; choose another name for the store's folder")
    others = sorted(file.name for file in folder.iterdir())
    if others:
        found = f"contains {', '.join(map(repr, others[:3]))} and is not a store (it has no {HEADER})"
        raise ParameterError(f"{folder}: {found}; choose another folder, or empty this one")


def _write_names(names: Any, folder: Path, files: dict[str, Entry]) -> tuple[str, bool]:
    """Write names; return their kind and whether they ascend."""
    if names.dtype == np.int64:
        files["names.bin"] = write_array(folder / "names.bin", names)
        if is_range(names):
            return "range", True
        is_sorted = bool((names[1:] > names[:-1]).all())
        order = None if is_sorted else np.argsort(names)
    else:
        write_text(_encoded(names), folder)
        for name in ("names_text.bin", "names_ends.bin"):
            files[name] = entry_of(folder / name, FILES[name][1][0])
        listed = names.tolist()
        is_sorted = all(one < other for one, other in pairwise(listed))
        order = None if is_sorted else np.array(sorted(range(len(listed)), key=listed.__getitem__))
    if order is not None:
        files["names_order.bin"] = write_array(folder / "names_order.bin", order)
    return "integer" if names.dtype == np.int64 else "text", is_sorted


def _encoded(names: Any) -> Iterator["pa.Array"]:
    """Yield names as UTF-8 in pieces."""
    import pyarrow as pa

    for start in range(0, len(names), _NAMES):
        some = names[start : start + _NAMES].tolist()
        other = [name for name in some if not isinstance(name, str)]
        if other:
            rule = f"node names in a store must be all text or all whole numbers; got {first_few(other, 3)}"
            raise GraphFormatError(f"{rule}. Relabel the graph first: graph.relabel(map(str, graph.names))")
        yield pa.array([name.encode(*ENCODING) for name in some], pa.large_binary())


def write_text(batches: "Iterable[pa.Array]", folder: Path) -> None:
    """Write names, given as Arrow arrays of text, to two files: their bytes, and the end of each."""
    size = 0
    with (folder / "names_text.bin").open("wb") as text, (folder / "names_ends.bin").open("wb") as ends:
        for batch in batches:
            column = batch.cast("large_binary")
            _, offsets, data = column.buffers()
            marks = np.frombuffer(offsets, np.int64)[column.offset : column.offset + len(column) + 1]
            text.write(data[int(marks[0]) : int(marks[-1])] if data is not None else b"")
            ends.write((marks[1:] - marks[0] + size).tobytes())
            size += int(marks[-1] - marks[0])


def write_features(features: Any, folder: Path, files: dict[str, Entry]) -> int | None:
    """Write features; return the number of columns, None without features."""
    if features is None:
        return None
    if not issparse(features):
        files["features.bin"] = write_array(folder / "features.bin", features)
        return int(features.shape[1])
    # The type that SciPy itself would choose for both, so that it does not copy them.
    index = np.int32 if max(features.nnz, *features.shape) < 2**31 else np.int64
    indices, indptr = features.indices.astype(index, copy=False), features.indptr.astype(index, copy=False)
    for name, part in zip(SPARSE, (features.data, indices, indptr), strict=True):
        files[name] = write_array(folder / name, part)
    return int(features.shape[1])


def write_array(path: Path, array: NDArray[Any]) -> Entry:
    """Write an array in pieces and return its header entry."""
    return write_chunks(path, pieces(array), array.dtype, array.shape[1:])


def write_chunks(path: Path, arrays: Iterable[NDArray[Any]], dtype: Any, row: tuple[int, ...] = ()) -> Entry:
    """Write arrays one after the other to a file and return its header entry."""
    kind, digest, rows = np.dtype(dtype).newbyteorder("<"), blake2b(digest_size=16), 0
    with path.open("wb") as file:
        for array in arrays:
            data = np.ascontiguousarray(array, dtype=kind)
            digest.update(data.data if data.size else b"")
            file.write(data.data if data.size else b"")
            rows += len(data)
    return Entry(kind.str, (rows, *row), digest.hexdigest())


def entry_of(path: Path, dtype: Any, row: tuple[int, ...] = ()) -> Entry:
    """Return the header entry of an existing file."""
    kind = np.dtype(dtype).newbyteorder("<")
    width = kind.itemsize * int(np.prod(row))
    return Entry(kind.str, (path.stat().st_size // max(width, 1), *row), digest_of(path))


def map_array(path: Path, entry: Entry) -> NDArray[Any]:
    """Map a file as a read-only array."""
    if not path.is_file():
        raise GraphFormatError(f"{path}: is missing; {_REBUILD}")
    size, wanted = path.stat().st_size, prod(entry.shape) * int(entry.dtype[2:])
    if size != wanted:
        fault = f"has {size:,} bytes, but the header says {wanted:,}: it is damaged"
        raise GraphFormatError(f"{path}: {fault}; {_REBUILD}")
    if not size:
        return np.zeros(entry.shape, dtype=entry.dtype)
    with path.open("rb") as file:
        mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    return np.frombuffer(mapped, dtype=entry.dtype).reshape(entry.shape)


def digest_of(path: Path) -> str:
    """Return the checksum of a file."""
    with path.open("rb") as file:
        return file_digest(file, lambda: blake2b(digest_size=16)).hexdigest()


class StoredNames:
    """Names (n,) as UTF-8 bytes and the end of each; usable like an object array of str."""

    dtype = np.dtype(object)
    ndim = 1

    def __init__(self, text: NDArray[np.uint8], ends: NDArray[np.int64]) -> None:
        self._text, self._ends = text, ends
        self.shape, self.size = (len(ends),), len(ends)  # as of an array

    def __len__(self) -> int:
        return len(self._ends)

    def __getitem__(self, index: Any) -> Any:
        """Return a name by position, or an object array by slice, positions or mask."""
        if isinstance(index, int | np.integer):
            position = int(index) + (len(self) if index < 0 else 0)
            if not 0 <= position < len(self):
                raise IndexError(f"position {index} of {len(self)} names")
            return self.encoded(position).decode(*ENCODING)
        if isinstance(index, slice):
            start, stop, step = index.indices(len(self))
            if step == 1:
                return _objects(self._between(start, max(stop, start)))
            index = np.arange(start, stop, step)
        positions = np.asarray(index)
        if positions.dtype == bool:
            positions = np.flatnonzero(positions)
        return _objects([self[position] for position in positions.tolist()])

    def __iter__(self) -> Iterator[str]:
        for start in range(0, len(self), _NAMES):
            yield from self._between(start, min(start + _NAMES, len(self)))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return _objects(self.tolist()) if dtype is None else _objects(self.tolist()).astype(dtype)

    def __eq__(self, other: object) -> Any:
        return np.asarray(self) == np.asarray(other)

    def __ne__(self, other: object) -> Any:
        return np.asarray(self) != np.asarray(other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"StoredNames({len(self):,} names)"

    def tolist(self) -> list[str]:
        """Return all names."""
        return list(self)

    def astype(self, dtype: Any, copy: bool = True) -> NDArray[Any]:
        """Return all names as an array in memory."""
        return np.asarray(self, dtype=dtype)

    def encoded(self, position: int) -> bytes:
        """Return a name as bytes, which sort like the text."""
        start = int(self._ends[position - 1]) if position else 0
        return self._text[start : int(self._ends[position])].tobytes()

    def _between(self, start: int, stop: int) -> list[str]:
        if stop <= start:
            return []
        first = int(self._ends[start - 1]) if start else 0
        ends = (self._ends[start:stop] - first).tolist()
        raw = self._text[first : first + ends[-1]].tobytes()
        return [raw[a:b].decode(*ENCODING) for a, b in zip([0, *ends[:-1]], ends, strict=True)]


class StoredNameIndex(NameIndex):
    """Finds the positions of stored text names by binary search on disk.

    ``order`` (n,) lists the positions by ascending name; None if the names ascend.
    """

    def __init__(self, names: StoredNames, order: NDArray[np.int64] | None = None) -> None:
        self._names: Any = names
        self._order = order

    def find(self, wanted: Iterable[Any]) -> NDArray[np.int64]:
        """Return the position of each name, -1 if unknown."""
        listed = as_array(wanted)
        if len(listed) * _SCAN_SHARE >= len(self._names) > 0:
            return self._find_by_scan(listed.tolist())
        return np.fromiter(map(self.find_one, listed.tolist()), np.int64, len(listed))

    def find_one(self, name: Any) -> int:
        """Return the position of one name, -1 if unknown."""
        if not isinstance(name, str):
            return -1
        encoded, n = name.encode(*ENCODING), len(self._names)
        rank = bisect_left(range(n), encoded, key=lambda rank: self._names.encoded(self._position(rank)))
        position = self._position(rank) if rank < n else -1
        return position if rank < n and self._names.encoded(position) == encoded else -1

    def _position(self, rank: int) -> int:
        return rank if self._order is None else int(self._order[rank])

    def _find_by_scan(self, wanted: list[Any]) -> NDArray[np.int64]:
        """Read all names once, and look each up among the wanted ones."""
        found = {name: -1 for name in wanted if isinstance(name, str)}
        for position, name in enumerate(self._names):
            if name in found:
                found[name] = position
        return np.array([found[name] if isinstance(name, str) else -1 for name in wanted], dtype=np.int64)


def _objects(names: list[str]) -> NDArray[Any]:
    return np.fromiter(names, dtype=object, count=len(names))


def check_content(folder: Path, header: Header, arrays: Arrays) -> None:
    """Raise if files fail their checksum, or if their content is not that of a graph.

    Symmetry of the adjacency is left to the checksum, since checking it would take a sort.
    """
    for name, entry in header.files.items():
        if digest_of(folder / name) != entry.digest:
            raise GraphFormatError(f"{folder / name}: its checksum does not match the header; {_REBUILD}")
    for fault in _faults(arrays, header.num_nodes, header.num_features or 0):
        raise GraphFormatError(f"{folder}: {fault}; build the store again")


def _faults(arrays: Arrays, n: int, f: int) -> Iterator[str]:
    indptr, indices = arrays["indptr.bin"], arrays["indices.bin"]
    if not _rises(indptr, len(indices)):
        yield f"indptr.bin must rise from 0 to {len(indices)}"
        return
    for start in range(0, n, _ROWS):
        stop = min(start + _ROWS, n)
        lengths = np.diff(indptr[start : stop + 1])
        row = indices[indptr[start] : indptr[stop]]
        rows = np.repeat(np.arange(start, stop), lengths)
        if len(row) and (row.min() < 0 or row.max() >= n):
            yield f"indices.bin must lie in 0 .. {n - 1}"
        if (row == rows).any() or ((rows[1:] == rows[:-1]) & (row[1:] <= row[:-1])).any():
            yield "rows of indices.bin must ascend, without the node itself"
    flows = dict.fromkeys(("outward.bin", "inward.bin"), np.nextafter(0.0, -1.0))
    known = dict.fromkeys(("features.bin", "features_data.bin"), -np.inf)
    for name, low in {"weights.bin": 0.0, **flows, **known}.items():
        values = pieces(arrays.get(name, np.zeros(0)))
        if not all((np.isfinite(some) & (some > low)).all() for some in values):
            rule = " above 0" if low == 0 else " from 0" if name in flows else ""
            yield f"{name} must be finite numbers{rule}"
    if "features_indptr.bin" in arrays:
        indptr, indices = arrays["features_indptr.bin"], arrays["features_indices.bin"]
        if not _rises(indptr, len(indices)):
            yield f"features_indptr.bin must rise from 0 to {len(indices)}"
        if any(chunk.min() < 0 or chunk.max() >= f for chunk in pieces(indices)):
            yield f"features_indices.bin must lie in 0 .. {f - 1}"
    if not _names_ascend(arrays, n):
        yield "names must be distinct, valid text or whole numbers, and ascend in the given order"


def _names_ascend(arrays: Arrays, n: int) -> bool:
    """Return whether each name is above the previous one, so that they are distinct and searchable."""
    order, names = arrays.get("names_order.bin"), arrays.get("names.bin")
    if names is None:
        text, ends = arrays["names_text.bin"], arrays["names_ends.bin"]
        if ends[0] < 0 or ends[-1] != len(text) or not _ascends(ends):
            return False
        names = StoredNames(text, ends)  # type: ignore[assignment]

    def listed() -> Iterator[Any]:
        for start in range(0, n, _NAMES):
            ranks = slice(start, start + _NAMES)
            yield from names[ranks if order is None else order[ranks]].tolist()  # type: ignore[index]

    try:
        return all(one < other for one, other in pairwise(listed()))
    except (UnicodeDecodeError, IndexError):
        return False


def _rises(indptr: NDArray[Any], last: int) -> bool:
    return bool(indptr[0] == 0 and indptr[-1] == last) and _ascends(indptr)


def _ascends(values: NDArray[Any]) -> bool:
    starts = range(0, len(values), _ROWS)
    return all((np.diff(values[start : start + _ROWS + 1]) >= 0).all() for start in starts)
