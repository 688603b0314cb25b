"""LocalEngine: every stage in this process, on its cores."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from spinegraph.atomic import explained
from spinegraph.config import Config
from spinegraph.engines.shards import (
    ROWS,
    Shard,
    ShardFolder,
    columns_shard,
    embed_shard,
    fill,
    needs_columns,
    plan,
    require_names,
    run_of,
)
from spinegraph.generator import Generator, profile_of
from spinegraph.graph.graph import Graph
from spinegraph.structure.pagerank import RootedPageRank
from spinegraph.structure.similarity import SimilarNodes, candidates, similar_nodes

if TYPE_CHECKING:
    from spinegraph.learning.checkpoint import Checkpoints, TrainingRecord
    from spinegraph.learning.sampling import TrainingData
    from spinegraph.learning.training import Progress


@dataclass(frozen=True)
class LocalEngine:
    """Runs the stages here; the engine that others are compared with."""

    def profile(self, graph: Graph, config: Config, nodes: NDArray[np.int64] | None = None) -> RootedPageRank:
        """Return the profile of all nodes, or of those at some positions."""
        return profile_of(graph, config, nodes)

    def similar(self, profile: RootedPageRank, degrees: NDArray[np.int64], config: Config) -> SimilarNodes:
        """Return the structural twins of the nodes of a profile, by place."""
        near = candidates(degrees, profile.weights, config.candidates)  # type: ignore[arg-type]
        return similar_nodes(profile, near, config.similarity, threads=config.threads)  # type: ignore[arg-type]

    def learn(
        self, lesson: "TrainingData", config: Config, states: "Checkpoints | None", progress: "Progress"
    ) -> "tuple[NDArray[np.float32], list[TrainingRecord]]":
        """Return W_M and the training history."""
        from spinegraph.learning.training import learn

        return learn(lesson, config, states, progress)

    def embed(
        self, generator: Generator, graph: Graph, profile: RootedPageRank | None = None
    ) -> NDArray[np.float32]:
        """Return the vectors (n, d) of all nodes; those of a large graph in shards, as other engines do."""
        if profile is not None or len(graph) <= ROWS:
            return generator.embed(graph, profile=profile)
        shards, columns = plan(len(graph), ROWS), None
        if needs_columns(generator):
            columns = np.concatenate([columns_shard(generator, graph, shard) for shard in shards])
        vectors = np.empty((len(graph), generator.dim), dtype=np.float32)
        for shard in shards:
            vectors[shard.start : shard.stop] = embed_shard(generator, graph, shard, columns).vectors
        return vectors


def embed_to_folder(
    generator: Generator,
    graph: Graph,
    folder: str | Path,
    *,
    rows: int = ROWS,
    progress: Callable[[str, int, int], None] | None = None,
) -> Path:
    """Write the vectors of all nodes to a folder of Parquet parts; what a stopped run left is gone on from.

    Besides what the graph itself holds (a store holds nothing), memory is that of one shard.

    Parameters
    ----------
    generator : Generator
    graph : Graph
        See ``open_store`` for one larger than memory.
    folder : path
    rows : int
        Nodes a shard.
    progress : callable (stage, done, total), optional

    Returns
    -------
    Path
        The folder: part-00000.parquet and so on, in graph order, and manifest.json.
    """
    require_names(graph, folder)
    shards = ShardFolder.open(folder, run_of(generator, graph), len(graph), rows)
    columns, scratch = None, shards.folder / ".columns.bin"
    if needs_columns(generator) and shards.missing():
        columns = _columns_on_disk(generator, graph, scratch, shards.shards, progress)

    def embed(shard: Shard) -> Any:
        return embed_shard(generator, graph, shard, columns)

    fill(shards, embed, progress)
    scratch.unlink(missing_ok=True)
    return shards.folder


def _columns_on_disk(
    generator: Generator,
    graph: Graph,
    path: Path,
    shards: list[Shard],
    progress: Callable[[str, int, int], None] | None,
) -> NDArray[np.float32]:
    """Return the structural columns of all nodes, (n, s), in a file that a stopped run goes on with."""
    told = progress or (lambda stage, done, total: None)
    width = 4 * len(generator.inputs.columns)
    with explained(path), path.open("ab") as file:
        whole = [shard for shard in shards if shard.stop * width <= file.tell()]
        file.truncate(whole[-1].stop * width if whole else 0)
        for shard in shards[len(whole) :]:
            told("structure around every node", shard.start, len(graph))
            file.write(columns_shard(generator, graph, shard).data)
            file.flush()
            os.fsync(file.fileno())
    return np.memmap(path, np.float32, "r", shape=(len(graph), width // 4))
