"""Vectors of a whole graph to a folder of Parquet parts, by the machines of a cluster."""

from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any
from uuid import uuid4

from spinegraph.engines.ray import tasks
from spinegraph.engines.ray.cluster import connected
from spinegraph.engines.ray.engine import columns_of
from spinegraph.engines.ray.flights import finished
from spinegraph.engines.ray.tasks import Shared
from spinegraph.engines.shard_folder import Part, ShardFolder, require_names, run_of
from spinegraph.engines.shards import ROWS, needs_columns
from spinegraph.errors import ClusterError
from spinegraph.generator import Generator


def embed_to_folder(
    generator: Generator,
    graph: Any,
    folder: str | Path,
    *,
    address: str | None = None,
    rows: int = ROWS,
    progress: Callable[[str, int, int], None] | None = None,
) -> Path:
    """Write the vectors of all nodes to a folder of Parquet parts, the same as the local engine's.

    A machine that sees the folder writes its parts there itself; the vectors of one that does not come back
    and are written here. What a stopped run left is gone on from, by either engine.

    Parameters
    ----------
    generator : Generator
    graph : Graph
        One of a store is opened by its path on every machine; another is sent to each of them once.
    folder : path
    address : str, optional
        See ``cluster.connect``.
    rows : int
        Nodes a shard, which is what one core does at a time.
    progress : callable (stage, done, total), optional

    Returns
    -------
    Path
        The folder: part-00000.parquet and so on, in graph order, and manifest.json.
    """
    require_names(graph, folder)
    shards = ShardFolder.open(folder, run_of(generator, graph), len(graph), rows)
    missing = shards.missing()
    told = progress or (lambda stage, done, total: None)
    done = shards.num_nodes - sum(shard.stop - shard.start for shard in missing)
    told("embedding nodes", done, shards.num_nodes)
    if not missing:
        return shards.folder
    here, token = shards.folder.resolve(), here_token()
    with connected(address):
        (here / token).touch()
        try:
            shared, work = Shared.of(graph), Shared.of(generator)
            columns = columns_of(work, shared, generator, shards.shards) if needs_columns(generator) else None
            calls = [(work, shared, columns, shard, here, token) for shard in missing]
            with closing(finished(tasks.write_vectors, calls)) as parts:  # a stop stops them too
                for place, found in parts:
                    _keep(shards, missing[place], found)
                    done += missing[place].stop - missing[place].start
                    told("embedding nodes", done, shards.num_nodes)
        finally:
            (here / token).unlink(missing_ok=True)
    return shards.folder


def here_token() -> str:
    """Return the name of a file by which machines know that they see the same folder.

    >>> here_token() == here_token()
    False
    """
    return f".seen-{uuid4().hex}"


def _keep(shards: ShardFolder, shard: Any, found: Any) -> None:
    """List a part that a machine wrote, or write the vectors that it sent."""
    if not isinstance(found, Part):
        shards.write(shard, found)
        return
    path = shards.folder / found.file
    if not path.is_file() or path.stat().st_size != found.bytes:
        raise ClusterError(f"{path}: a machine wrote it and it is not here; run the same command again")
    shards.record(found)
