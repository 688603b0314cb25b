"""All vectors as a stream of Parquet or Arrow, of one moment, in bounded memory."""

from collections.abc import Iterator
from enum import StrEnum
from typing import Annotated, Any

import numpy as np
import pyarrow as pa
from fastapi import APIRouter, Query, Request
from fastapi.responses import StreamingResponse
from pyarrow import parquet

from spinegraph.apps.server.live import Snapshot
from spinegraph.apps.server.replies import service_of

router = APIRouter(prefix="/v1", tags=["export"])
_ROWS = 8_192  # a piece


class Format(StrEnum):
    """What an export may be."""

    parquet = "parquet"
    arrow = "arrow"


_TYPES = {"parquet": "application/vnd.apache.parquet", "arrow": "application/vnd.apache.arrow.stream"}


@router.get(
    "/export",
    response_class=StreamingResponse,
    responses={
        200: {
            "content": {kind: {"schema": {"type": "string", "format": "binary"}} for kind in _TYPES.values()}
        }
    },
)
async def export(request: Request, format: Annotated[Format, Query()] = Format.parquet) -> Any:
    """Stream the names and vectors of all nodes: columns name and vector."""
    now = service_of(request).snapshot
    headers = {
        "Content-Disposition": f'attachment; filename="vectors.{format.value}"',
        "X-Spine-Version": str(now.version),
        "Cache-Control": "no-store",
    }
    return StreamingResponse(pieces(now, format.value), 200, headers, _TYPES[format.value])


def pieces(snapshot: Snapshot, format: str) -> Iterator[bytes]:
    """Return an export piece by piece: Parquet as ``Embeddings.load`` reads it, or an Arrow stream."""
    sink = _Sink()
    names = snapshot.overlay.names[snapshot.overlay.standing]
    kind = pa.int64() if names.dtype == np.int64 else pa.string()
    schema = pa.schema([("name", kind), ("vector", pa.list_(pa.float32(), snapshot.vectors.width))])
    with pa.PythonFile(sink, "w") as file:
        opened = (
            parquet.ParquetWriter(file, schema, use_dictionary=["name"])
            if format == "parquet"
            else pa.ipc.new_stream(file, schema)
        )
        with opened as writer:
            for start in range(0, len(names), _ROWS):
                some = snapshot.overlay.standing[start : start + _ROWS]
                listed = names[start : start + _ROWS].tolist()
                column = listed if kind == pa.int64() else [str(name) for name in listed]
                rows = pa.array(snapshot.vectors.take(some).reshape(-1))
                vectors = pa.FixedSizeListArray.from_arrays(rows, snapshot.vectors.width)
                writer.write_table(pa.table([pa.array(column, kind), vectors], schema=schema))
                yield sink.taken()
        yield sink.taken()
    yield sink.taken()


class _Sink:
    """A file that is only written to, and emptied as it fills."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self.closed = False

    def write(self, part: Any) -> int:
        self._parts.append(bytes(part))
        return len(self._parts[-1])

    def taken(self) -> bytes:
        parts, self._parts = self._parts, []
        return b"".join(parts)

    def flush(self) -> None:
        """Nothing waits."""

    def close(self) -> None:
        self.closed = True

    def writable(self) -> bool:
        return True

    def readable(self) -> bool:
        return False

    def seekable(self) -> bool:
        return False
