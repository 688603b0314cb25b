"""Names and vectors as PostgreSQL's binary COPY takes them, without a step through text."""

import struct
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinegraph.analysis.explain_standing import shown
from spinegraph.embeddings import Embeddings
from spinegraph.errors import OutputError
from spinegraph.graph.names import first_few

_BEGINNING = b"PGCOPY\n\xff\r\n\0" + struct.pack(">ii", 0, 0)  # signature, flags, no extension
_END = struct.pack(">h", -1)
_ROW = [("fields", ">i2")]
_NUMBER = [("name_length", ">i4"), ("name", ">i8")]
_BATCH_BYTES = 2**20
_LARGEST_HALF = 65504.0


def text_names(names: NDArray[Any]) -> list[bytes]:
    """Return names as PostgreSQL's text holds them; (0, "ann") of several networks is ``0:ann``.

    Examples
    --------
    >>> text_names(np.array([3, 14]))
    [b'3', b'14']
    """
    texts = [shown(name) for name in names.tolist()]
    for name in texts:
        if "\0" in name or any("\ud800" <= letter <= "\udfff" for letter in name):
            raise OutputError(
                f"node {name!r}: PostgreSQL's text holds neither the character NUL nor halves of characters; "
                "rename the node"
            )
    if len(set(texts)) < len(texts):
        seen: set[str] = set()
        again = [name for name in texts if name in seen or seen.add(name)]  # type: ignore[func-returns-value]
        raise OutputError(f"names must differ as text; several nodes would be {first_few(again)}")
    return [name.encode() for name in texts]


def copy_rows(embeddings: Embeddings, *, numbers: bool, half: bool) -> Iterator[tuple[int, bytes]]:
    """Yield a binary COPY of (name, vector) in parts, and how many rows lie in all parts up to there.

    Parameters
    ----------
    embeddings : Embeddings
    numbers : bool
        Names are bigint, else text.
    half : bool
        Vectors are halfvec, else vector.

    Examples
    --------
    >>> emb = Embeddings(np.array([7]), np.array([[1, 2]], dtype=np.float32))
    >>> [(rows, len(part)) for rows, part in copy_rows(emb, numbers=True, half=False)]
    [(0, 19), (1, 30), (1, 2)]
    """
    if half and (top := float(np.abs(embeddings.vectors).max(initial=0))) > _LARGEST_HALF:
        raise OutputError(
            f"halfvec holds numbers up to {_LARGEST_HALF:,.0f}; the vectors reach {top:g}: pass --no-index, "
            "which stores them as vector"
        )
    kind = _vector_kind(embeddings.dim, half=half)
    row = np.dtype(_ROW + (_NUMBER if numbers else []) + kind)
    texts = None if numbers else text_names(embeddings.names)
    yield 0, _BEGINNING
    size, n = max(1, _BATCH_BYTES // row.itemsize), len(embeddings)
    for start in range(0, n, size):
        stop = min(start + size, n)
        rows = np.zeros(stop - start, row)
        rows["fields"] = 2
        rows["length"] = sum(np.dtype([field]).itemsize for field in kind[1:])
        rows["dim"] = embeddings.dim
        rows["values"] = embeddings.vectors[start:stop]
        if texts is None:
            rows["name_length"] = 8
            rows["name"] = embeddings.names[start:stop]
            yield stop, rows.tobytes()
        else:
            yield stop, _with_names(rows, texts[start:stop])
    yield n, _END


def _vector_kind(dim: int, *, half: bool) -> list[Any]:
    number = ">f2" if half else ">f4"
    return [("length", ">i4"), ("dim", ">i2"), ("unused", ">i2"), ("values", number, (dim,))]


def _with_names(rows: NDArray[Any], names: list[bytes]) -> bytes:
    """Put each name, whose length differs, behind its row's count of fields."""
    raw, width = memoryview(rows.tobytes()), rows.dtype.itemsize
    parts: list[bytes | memoryview] = []
    for place, name in enumerate(names):
        row = raw[place * width : (place + 1) * width]
        parts += [row[:2], struct.pack(">i", len(name)), name, row[2:]]
    return b"".join(parts)
