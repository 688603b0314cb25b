"""Embeddings: node names and their vectors, in memory and as npz, Parquet, CSV or word2vec text."""

import json
import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyarrow import csv, parquet

from spinegraph.atomic import digest, require_writable, whole_file
from spinegraph.config import PARTS, check_weights
from spinegraph.errors import GraphFormatError, MissingFileError, ParameterError, UnknownNodeError
from spinegraph.graph.describe import data_frame, html_table
from spinegraph.graph.edge_files import open_parquet
from spinegraph.graph.files import expansion_limit, opened, read_npz
from spinegraph.graph.graph import Graph
from spinegraph.graph.names import MAX_COMPARED, as_array, first_few, suggestion

Named = tuple[NDArray[Any], NDArray[np.float32]]  # names (n,), vectors (n, d)
_Read = tuple[NDArray[Any], NDArray[np.float32], dict[str, slice], bool | None]  # with parts, same_network
Parts = Mapping[str, slice]
_FIRST_LINE = re.compile(rb"(\d{1,18}) (\d{1,18})\r?\n")
_DIGEST = b"spinegraph.digest"  # in the metadata of Parquet, which itself checks only some of its bytes
_PARTS = b"spinegraph.parts"  # in the same metadata
_PART_TITLE = re.compile(rf'[,"]({"|".join(PARTS)})_\d')
_MAX_DESCRIPTION = 4_096  # bytes of JSON that describe parts
_WHOLE_NUMBER = re.compile(r"0|-?[1-9]\d{0,18}")
_HTML_ROWS, _HTML_COLUMNS = 5, 6


@dataclass(frozen=True, eq=False)
class Embeddings:
    """Vectors of nodes, in the order of the graph they come from.

    Attributes
    ----------
    names : array (n,)
    vectors : float32 array (n, d)
        Finite.
    parts : dict of str to slice
        The columns of content, place and role, one part after the other; empty if unknown.
    same_network : bool or None
        Whether the graph is the training network, so that nodes have a place; None if unknown.

    Examples
    --------
    >>> emb = Embeddings(np.array(["ann", "bob"], dtype=object), np.eye(2, dtype=np.float32))
    >>> emb["bob"]
    array([0., 1.], dtype=float32)
    >>> len(emb), emb.dim, "cy" in emb
    (2, 2, False)
    """

    names: NDArray[Any]
    vectors: NDArray[np.float32]
    parts: Parts = field(default_factory=dict)
    same_network: bool | None = None

    def __post_init__(self) -> None:
        vectors = np.ascontiguousarray(self.vectors, dtype=np.float32)
        if vectors.ndim != 2 or len(self.names) != len(vectors):
            raise GraphFormatError(
                f"vectors need one row per name; got {len(self.names)} and {vectors.shape}"
            )
        # A quick test first: the sum of squares is finite only if all values are.
        if not np.isfinite(np.vdot(vectors, vectors)) and not np.isfinite(vectors).all():
            name = self.names[int(np.argmin(np.isfinite(vectors).all(axis=1)))]
            raise GraphFormatError(f"vectors must be finite; the one of {name!r} holds NaN or infinity")
        object.__setattr__(self, "names", np.asarray(self.names))
        object.__setattr__(self, "vectors", vectors)
        object.__setattr__(self, "parts", _checked(self.parts, vectors.shape[1]))

    def __len__(self) -> int:
        return len(self.names)

    def __iter__(self) -> Iterator[Any]:
        """Iterate over the names."""
        return iter(self.names.tolist())

    def __contains__(self, name: object) -> bool:
        try:
            return name in self._positions
        except TypeError:  # not hashable
            return False

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        """Return the vectors: NumPy and scikit-learn take embeddings as an array."""
        return np.array(self.vectors, dtype=dtype, copy=copy)

    def __getitem__(self, name: Any) -> NDArray[np.float32]:
        """Return a node's vector (d,) by name, or rows (m, d) of ``vectors`` by slice, list or array.

        scikit-learn selects rows this way. A single number is a name, never a row: use ``vectors[0]``.

        >>> emb = Embeddings(np.array([7, 8, 9]), np.eye(3, dtype=np.float32))
        >>> emb[8].tolist(), emb[[0, 2]].shape, emb[:2].shape
        ([0.0, 1.0, 0.0], (2, 3), (2, 3))
        """
        key = name if isinstance(name, tuple) else (name,)
        if any(one is ... or isinstance(one, slice | list | np.ndarray) for one in key):
            try:
                return np.asarray(self.vectors[name])
            except IndexError as fault:
                raise ParameterError(
                    f"select rows by a slice, by integers below {len(self)} or by {len(self)} booleans "
                    f"({fault}); for vectors by name use .of(names)"
                ) from fault
        return np.asarray(self.vectors[self.position(name)])

    def __repr__(self) -> str:
        return f"Embeddings({self._summary()})"

    def _summary(self) -> str:
        widths = ", ".join(f"{name} {part.stop - part.start}" for name, part in self.parts.items())
        elsewhere = ", place zero: another network" * ("place" in self.parts and self.same_network is False)
        return f"{len(self):,} nodes, {self.dim} dimensions{': ' * bool(widths)}{widths}{elsewhere}"

    def _repr_html_(self) -> str:
        columns = min(_HTML_COLUMNS, self.dim)
        dots = ("...",) if self.dim > columns else ()
        rows: list[tuple[object, ...]] = [
            (name, *(f"{value:.3f}" for value in vector[:columns]), *dots)
            for name, vector in zip(self.names.tolist(), self.vectors[:_HTML_ROWS], strict=False)
        ]
        if len(self) > _HTML_ROWS:
            rows.append((f"... and {len(self) - _HTML_ROWS:,} more",))
        return html_table(f"Embeddings: {self._summary()}", rows, ("name", *range(columns), *dots))

    @property
    def shape(self) -> tuple[int, int]:
        """Number of nodes and of dimensions, as of an array; scikit-learn needs it."""
        return len(self), self.dim

    @property
    def dim(self) -> int:
        """Length of a vector."""
        return int(self.vectors.shape[1])

    @cached_property
    def _positions(self) -> dict[Any, int]:
        return {name: position for position, name in enumerate(self.names.tolist())}

    def position(self, name: Any) -> int:
        """Return the row of one node's vector."""
        try:
            return self._positions[name]
        except (KeyError, TypeError):  # unknown, or not hashable
            hint = suggestion(str(name), self.names[:MAX_COMPARED].tolist())
            raise UnknownNodeError(f"no vector for {name!r}; {hint}") from None

    def of(self, names: Iterable[Any]) -> NDArray[np.float32]:
        """Return the vectors (m, d) of named nodes, in the order of the names."""
        return self.vectors[[self.position(name) for name in names]]

    def to_pandas(self) -> Any:
        """Return a pandas DataFrame with a row per node, indexed by name, and a column per dimension."""
        titles = _titles(self.dim, self.parts)[1:]
        return data_frame(dict(zip(titles, self.vectors.T, strict=True)), self.names)

    def part(self, name: str) -> "Embeddings":
        """Return one part of the vectors alone.

        >>> parts = {"place": slice(0, 2), "role": slice(2, 3)}
        >>> Embeddings(np.array([7]), np.array([[1, 2, 3]]), parts).part("role").vectors
        array([[3.]], dtype=float32)
        """
        _require_part(name, self.parts)
        columns = self.parts[name]
        part = {name: slice(0, columns.stop - columns.start)}
        return Embeddings(self.names, self.vectors[:, columns], part, self.same_network)

    def weighted(self, by: str = "all", weights: Mapping[str, float] | None = None) -> "Embeddings":
        """Return vectors whose cosine is the mean of the parts' cosines.

        Parts are scaled to length 1. Zero parts stay zero and do not count between two nodes that both lack
        them. Vectors of one part, or whose parts are unknown, stay as they are.

        Parameters
        ----------
        by : str
            ``"all"`` parts, or the name of one.
        weights : dict of part to float, optional
            For a weighted mean, 1 by default.

        Examples
        --------
        >>> parts = {"place": slice(0, 2), "role": slice(2, 3)}
        >>> emb = Embeddings(np.array([7, 8]), np.array([[1, 0, 4], [0, 1, 5]]), parts)
        >>> one, other = emb.weighted(weights={"role": 3}).vectors
        >>> float(one @ other / np.linalg.norm(one) / np.linalg.norm(other))
        0.75
        """
        if by != "all":
            if weights is not None:
                raise ParameterError(f"weights are for all parts together; got weights with by={by!r}")
            return self.part(by)
        factors = part_weights(self.parts, weights)
        if len(factors) < 2:
            return self
        vectors = np.empty_like(self.vectors)
        for name, columns in self.parts.items():
            vectors[:, columns] = unit_length(self.vectors[:, columns]) * np.float32(np.sqrt(factors[name]))
        return Embeddings(self.names, vectors, self.parts, self.same_network)

    def save(self, path: str | Path) -> None:
        """Write to ``.npz``, ``.parquet``, ``.csv`` or word2vec ``.txt``, whole or not at all.

        The parts are saved too: for word2vec text in ``NAME.txt.parts.json`` next to it.
        """
        path = Path(path)
        require_savable(path)
        names = plain_names(self.names, path)
        if not self.dim:
            raise GraphFormatError(f"{path}: vectors without dimensions cannot be saved")
        with whole_file(path) as partial:
            try:
                _FORMATS[path.suffix][0](partial, names, self)
            except (pa.ArrowInvalid, UnicodeEncodeError) as fault:
                raise GraphFormatError(
                    f"{path}: a node name cannot be written to {path.suffix} ({str(fault)[:200]}); "
                    "save as .npz, or relabel the graph"
                ) from fault
            except GraphFormatError as fault:
                raise GraphFormatError(f"{path}: {fault}") from fault
            if path.suffix == ".txt":  # of an older file
                _parts_file(path).unlink(missing_ok=True)
        if path.suffix == ".txt" and self.parts:
            with whole_file(_parts_file(path)) as partial:
                partial.write_bytes(_description(self))

    @classmethod
    def load(cls, path: str | Path) -> "Embeddings":
        """Read a file that ``save`` wrote; names that are all whole numbers come back as int64."""
        path = Path(path)
        if not path.exists():
            raise MissingFileError(f"{path}: no such file")
        if path.suffix not in _FORMATS:
            raise ParameterError(f"{path}: vectors are read from {', '.join(_FORMATS)}; got {path.suffix!r}")
        try:
            return cls(*_FORMATS[path.suffix][1](path))
        except GraphFormatError as fault:
            if str(fault).startswith(str(path)):
                raise
            raise GraphFormatError(f"{path}: {fault}") from fault


def embeddings_per_graph(
    graph: Graph | Sequence[Graph], vectors: NDArray[np.float32], parts: Parts
) -> "Embeddings | list[Embeddings]":
    """Return the embeddings of one graph, or a list with those of each; ``vectors`` has all their rows."""
    same = True if "place" in parts else None
    if isinstance(graph, Graph):
        return Embeddings(graph.names, vectors, parts, same)
    pieces = np.split(vectors, np.cumsum([len(each) for each in graph])[:-1])
    return [Embeddings(each.names, some, parts, same) for each, some in zip(graph, pieces, strict=True)]


def part_weights(parts: Parts, weights: Mapping[str, float] | None = None) -> dict[str, float]:
    """Return the weight of every part, 1 by default, or raise if they are wrong."""
    fault, given = check_weights(weights)
    if fault:
        raise ParameterError(f"weights must {fault}; got {weights!r}")
    for name in given or {}:
        _require_part(name, parts)
    found = {name: (given or {}).get(name, 1.0) for name in parts}
    if found and not any(found.values()):
        raise ParameterError(f"weights must not be 0 for all parts of these vectors; got {weights!r}")
    return found


def _require_part(name: str, parts: Parts) -> None:
    if not isinstance(name, str):
        raise ParameterError(
            f"expected the name of a part, such as 'role'; got {name!r}; for weights pass weights={{...}}"
        )
    if name not in parts:
        there = " and ".join(filter(None, [", ".join([*parts][:-1]), *[*parts][-1:]]))
        raise ParameterError(f"no part {name!r}; these vectors have {there or 'no parts'}")


def unit_length(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return vectors (n, d) scaled to length 1; zero vectors stay zero."""
    # Divided by the largest entry first: squares of tiny or huge numbers leave float32's range.
    largest = np.abs(vectors).max(axis=1, initial=0, keepdims=True)
    scaled = np.divide(vectors, np.where(largest > 0, largest, 1), dtype=np.float32)
    length = np.sqrt(np.square(scaled, dtype=np.float64).sum(axis=1, keepdims=True))
    np.divide(scaled, np.where(length > 0, length, 1), out=scaled, casting="same_kind")
    return scaled


def _checked(parts: Any, dim: int) -> dict[str, slice]:
    """Return parts as plain slices, or raise unless they follow one another from 0 to ``dim``."""
    found, start = dict[str, slice](), 0
    for name, columns in parts.items():
        found[name] = slice(int(columns.start), int(columns.stop))
        if name not in PARTS or found[name].start != start or found[name].stop <= start:
            break
        start = found[name].stop
    else:
        if not found or start == dim:
            return found
    ends = ", ".join(f"{name!r} to {columns.stop}" for name, columns in parts.items())
    raise GraphFormatError(
        f"parts must be some of {', '.join(PARTS)}, one after the other, and end at {dim}; got {ends[:200]}"
    )


def _description(embeddings: Embeddings) -> bytes:
    """Return where each part ends and whether the network is the training one, as JSON."""
    ends = {name: part.stop for name, part in embeddings.parts.items()}
    return json.dumps({"parts": ends, "same_network": embeddings.same_network}).encode()


def _described(path: Path, text: bytes) -> tuple[dict[str, slice], bool | None]:
    """Read what ``_description`` wrote."""
    try:
        found = json.loads(text) if len(text) <= _MAX_DESCRIPTION else None
    except (ValueError, RecursionError):
        found = None
    found = found if isinstance(found, dict) else {}
    return _ended(path, found.get("parts"), found.get("same_network"))


def _ended(path: Path, ends: Any, same_network: Any = None) -> tuple[dict[str, slice], bool | None]:
    """Return parts from where each ends, or raise unless these are whole numbers by name."""
    is_known = isinstance(ends, dict) and all(type(end) is int for end in ends.values())
    if not is_known or not (same_network is None or isinstance(same_network, bool)):
        raise GraphFormatError(f"{path}: the description of the vectors' parts is damaged; write it again")
    starts = [0, *ends.values()]
    parts = {name: slice(start, end) for start, (name, end) in zip(starts, ends.items(), strict=False)}
    return parts, same_network


def _parts_file(path: Path) -> Path:
    return path.with_name(f"{path.name}.parts.json")


def require_savable(path: str | Path, what: str = "embeddings", endings: Iterable[str] | None = None) -> None:
    """Raise early if embeddings, or a table, cannot be saved to a path."""
    path, endings = Path(path), endings or _FORMATS
    if path.suffix not in endings:
        raise ParameterError(f"{path}: {what} are saved as {', '.join(endings)}; got {path.suffix!r}")
    if not path.parent.is_dir():
        raise MissingFileError(f"{path}: the folder {path.parent} does not exist; create it first")
    require_writable(path)


def write_csv(stream: BinaryIO | Path, embeddings: Embeddings) -> None:
    """Write embeddings as CSV to a path or to an open stream such as standard output."""
    names = plain_names(embeddings.names, "standard output")
    csv.write_csv(_table(names, embeddings.vectors, embeddings.parts), stream)


def plain_names(names: NDArray[Any], path: Path | str) -> NDArray[Any]:
    """Return names as int64, or as an object array of str."""
    array = as_array(names)
    if array.dtype == np.int64:
        return array
    other = [name for name in array.tolist() if not isinstance(name, str)]
    if other:
        raise GraphFormatError(
            f"{path}: node names in a file must be all text or all whole numbers; got {first_few(other, 3)}. "
            "Relabel the graph first: graph.relabel(map(str, graph.names))"
        )
    return array


def _write_npz(path: Path, names: NDArray[Any], embeddings: Embeddings) -> None:
    texts = names if names.dtype == np.int64 else names.astype(str)
    if names.dtype != np.int64 and (texts != names).any():
        raise GraphFormatError("npz drops null characters at the end of a name; save as .parquet")
    arrays: dict[str, Any] = {"names": texts, "vectors": embeddings.vectors}
    if embeddings.parts:
        arrays["part_names"] = np.array([*embeddings.parts])
        arrays["part_ends"] = np.array([part.stop for part in embeddings.parts.values()])
    if embeddings.same_network is not None:
        arrays["same_network"] = np.array(embeddings.same_network)
    with path.open("wb") as file:  # not compressed: floats hardly shrink, and it takes far longer
        np.savez(file, allow_pickle=False, **arrays)


def _read_npz(path: Path) -> _Read:
    arrays = read_npz(path)
    names, vectors = arrays.get("names"), arrays.get("vectors")
    if names is None or vectors is None:
        found = ", ".join(sorted(arrays)[:10]) or "none"
        raise GraphFormatError(f"expected arrays 'names' and 'vectors'; found {found}")
    if names.ndim != 1 or names.dtype.kind not in "iuU" or vectors.dtype.kind not in "f":
        raise GraphFormatError(
            f"names must be a 1-d array of whole numbers or text, and vectors floats; "
            f"got {names.dtype} {names.shape} and {vectors.dtype} {vectors.shape}"
        )
    titles, ends = (np.ravel(arrays.get(key, [])).tolist() for key in ("part_names", "part_ends"))
    is_whole = len(set(titles)) == len(titles) == len(ends)
    same = arrays["same_network"].tolist() if "same_network" in arrays else None
    described = _ended(path, dict(zip(titles, ends, strict=False)) if is_whole else None, same)
    return as_array(names), vectors.astype(np.float32), *described


def _write_parquet(path: Path, names: NDArray[Any], embeddings: Embeddings) -> None:
    vectors = embeddings.vectors
    rows = pa.FixedSizeListArray.from_arrays(pa.array(vectors.reshape(-1)), vectors.shape[1])
    table = pa.table({"name": _column(names), "vector": rows})
    about = {_DIGEST: _content_digest(table["name"], vectors) + b":%d" % len(vectors)}
    if embeddings.parts or embeddings.same_network is not None:
        about[_PARTS] = _description(embeddings)
    signed = table.replace_schema_metadata(about)
    parquet.write_table(signed, path, use_dictionary=["name"])


def _read_parquet(path: Path) -> _Read:
    with opened(path) as source, open_parquet(source.stream, source.path) as file:
        schema = file.schema_arrow
        if not {"name", "vector"} <= set(schema.names):
            raise GraphFormatError(f"expected columns name and vector; found {', '.join(schema.names[:9])}")
        name, vector = schema.field("name").type, schema.field("vector").type
        kinds = pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list
        is_vector = any(kind(vector) for kind in kinds) and pa.types.is_floating(vector.value_type)
        if not is_vector or name not in (pa.int64(), pa.string(), pa.large_string()):
            raise GraphFormatError(f"name must be int64 or text, vector a float list; got {name}, {vector}")
        size, needed = path.stat().st_size, 4 * file.metadata.num_rows * getattr(vector, "list_size", 1)
        if needed > expansion_limit(size):
            raise GraphFormatError(f"claims {needed:,} bytes of vectors in a file of {size:,}")
        table = file.read(["name", "vector"])
        table.validate(full=True)  # Parquet itself does not check that text is UTF-8
        rows = table["vector"].combine_chunks()
        if table["name"].null_count or rows.null_count or rows.flatten().null_count:
            raise GraphFormatError("every row needs a name and a complete vector; some are empty")
        lengths = pc.unique(pc.list_value_length(rows)).to_pylist()
        if len(lengths) > 1 or lengths == [0]:
            raise GraphFormatError(f"vectors must have the same length; found {lengths[:5]}; write it again")
        width = lengths[0] if lengths else getattr(vector, "list_size", 0)
        values = rows.flatten().to_numpy(zero_copy_only=False).reshape(-1, width).astype(np.float32)
        written, description = ((schema.metadata or {}).get(key) for key in (_DIGEST, _PARTS))
        # A file with another number of rows than the digest states was filtered on purpose.
        expected, _, count = (written or b"").partition(b":")
        is_whole = not count or count == b"%d" % len(values)
        if written is not None and is_whole and expected != _content_digest(table["name"], values):
            raise GraphFormatError("its checksum does not match, so it is damaged; write it again")
    described = ({}, None) if description is None else _described(path, description)
    return as_array(table["name"].to_numpy()), values, *described


def _content_digest(names: Any, vectors: NDArray[np.float32]) -> bytes:
    """Return a digest of names and vectors that does not depend on the Arrow type of the names."""
    if pa.types.is_integer(names.type):
        return digest({"names": names.to_numpy(), "vectors": vectors}).encode()
    texts = names.cast(pa.large_string()).combine_chunks()
    lengths = pc.binary_length(texts).to_numpy(zero_copy_only=False)
    joined = np.frombuffer("".join(texts.to_pylist()).encode(), np.uint8)
    return digest({"names": joined, "lengths": lengths, "vectors": vectors}).encode()


def _write_text(path: Path, names: NDArray[Any], embeddings: Embeddings) -> None:
    texts = [str(name) for name in names.tolist()]
    spaced = [text for text in texts if not text or any(map(str.isspace, text))]
    if spaced:
        raise GraphFormatError(
            f"word2vec text cannot hold names that are empty or contain white space, such as "
            f"{first_few(spaced, 3)}; save as .csv, .parquet or .npz"
        )
    with path.open("wb") as file:
        file.write(b"%d %d\n" % embeddings.vectors.shape)
        options = csv.WriteOptions(include_header=False, delimiter=" ", quoting_style="none")
        csv.write_csv(_table(np.array(texts, dtype=object), embeddings.vectors, {}), file, options)


def _read_text(path: Path) -> _Read:
    with opened(path) as source:
        first = _FIRST_LINE.fullmatch(source.stream.readline(64))
        n, d = map(int, first.groups()) if first else (0, 0)
        if not first or n * d * 2 > path.stat().st_size:
            raise GraphFormatError(
                f"{path}:1: expected the number of vectors and of dimensions, such as '2708 200', "
                "followed by that many numbers"
            )
        if not n:
            return np.zeros(0, dtype=np.int64), np.zeros((0, d), dtype=np.float32), {}, None
        source.stream.seek(-1, os.SEEK_END)
        if source.stream.read() != b"\n":
            raise GraphFormatError("does not end with a line break, so it is truncated; write it again")
        options = csv.ParseOptions(delimiter=" ", quote_char=False)
        # The first line is read and skipped: Arrow drops a byte-order mark at the start of what it reads.
        found = _parsed(path, _titles(d, {}), options, has_titles=False)
    if len(found[0]) != n:
        raise GraphFormatError(f"its first line says {n} vectors, but {len(found[0])} follow; write it again")
    sidecar = _parts_file(path)
    text = sidecar.read_bytes()[: _MAX_DESCRIPTION + 1] if sidecar.is_file() else None
    return *found, *(({}, None) if text is None else _described(sidecar, text))


def _read_csv(path: Path) -> _Read:
    with opened(path) as source:
        first = source.stream.readline(2**26).decode(errors="replace")
        widths = Counter(_PART_TITLE.findall(first))
        ends = dict(zip(widths, np.cumsum([*widths.values()]).tolist(), strict=True))
        parts, _ = _ended(path, ends)
        titles = _titles(first.count(","), parts)
        found = _parsed(path, titles, csv.ParseOptions(newlines_in_values=True))
        return *found, parts, None


def _titles(dim: int, parts: Parts) -> list[str]:
    """Return the column titles of a table: ``name, 0, 1, ...`` or ``name, content_0, content_1, ...``."""
    listed = [f"{name}_{index}" for name, part in parts.items() for index in range(part.stop - part.start)]
    return ["name", *(listed or map(str, range(dim)))]


def _parsed(path: Path, titles: list[str], options: Any, has_titles: bool = True) -> Named:
    """Read lines of a name followed by numbers."""
    d, given = len(titles) - 1, None if has_titles else titles
    types = {title: pa.float32() for title in titles[1:]} | {"name": pa.string()}
    try:
        table = csv.read_csv(
            pa.OSFile(str(path)),
            csv.ReadOptions(column_names=given, skip_rows=int(not has_titles), block_size=2**26),
            options,
            csv.ConvertOptions(column_types=types, null_values=[], strings_can_be_null=False),
        )
        found = table.column_names
    except (pa.ArrowException, UnicodeDecodeError) as fault:
        raise GraphFormatError(f"expected a name and {d} numbers per line ({str(fault)[:200]!r})") from fault
    if found != titles or not d:
        expected = ", ".join(titles[: 3 if d else 1])
        raise GraphFormatError(f"expected the columns {expected}, ...; found {found[:5]}")
    vectors = np.empty((table.num_rows, d), dtype=np.float32)
    for index, column in enumerate(table.columns[1:]):
        vectors[:, index] = column.to_numpy()
    texts = table["name"].to_pylist()
    numbers = as_array(list(map(int, texts)) if all(map(_WHOLE_NUMBER.fullmatch, texts)) else texts)
    return numbers if numbers.dtype == np.int64 else np.array(texts, dtype=object), vectors


def _table(names: NDArray[Any], vectors: NDArray[np.float32], parts: Parts) -> Any:
    columns = [pa.array(np.ascontiguousarray(column)) for column in vectors.T]
    return pa.table([_column(names), *columns], names=_titles(len(columns), parts))


def _column(names: NDArray[Any]) -> Any:
    return pa.array(names) if names.dtype == np.int64 else pa.array(names, pa.string())


_FORMATS: dict[str, tuple[Callable[[Path, NDArray[Any], Embeddings], None], Callable[[Path], _Read]]] = {
    ".npz": (_write_npz, _read_npz),
    ".parquet": (_write_parquet, _read_parquet),
    ".csv": (lambda path, names, found: write_csv(path, found), _read_csv),
    ".txt": (_write_text, _read_text),
}
