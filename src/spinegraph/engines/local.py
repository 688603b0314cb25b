"""LocalEngine: every stage in this process, on its cores."""

import os
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from spinegraph.atomic import explained
from spinegraph.config import Config
from spinegraph.engines.shards import ROWS, Progress, Shard, ShardFolder, columns_shard, embed_shard, plan
from spinegraph.generator import Generator, profile_of
from spinegraph.graph.graph import Graph
from spinegraph.structure.pagerank import RootedPageRank
from spinegraph.structure.similarity import SimilarNodes, candidates, similar_nodes

if TYPE_CHECKING:
    from spinegraph.learning.checkpoint import Checkpoints, TrainingRecord
    from spinegraph.learning.sampling import TrainingData


class LocalEngine:
    """Runs the stages in this process; other engines are compared with it."""

    def profile(self, graph: Graph, config: Config, nodes: NDArray[np.int64] | None = None) -> RootedPageRank:
        """Return the profile of all nodes, or of those at some positions."""
        return profile_of(graph, config, nodes)

    def similar(self, profile: RootedPageRank, degrees: NDArray[np.int64], config: Config) -> SimilarNodes:
        """Return the structurally similar nodes of each node of a profile, as rows of the profile."""
        near = candidates(degrees, profile.weights, config.candidates)  # type: ignore[arg-type]
        return similar_nodes(profile, near, config.similarity, threads=config.threads)  # type: ignore[arg-type]

    def learn(
        self, data: "TrainingData", config: Config, states: "Checkpoints | None", progress: Progress
    ) -> "tuple[NDArray[np.float32], list[TrainingRecord]]":
        """Return W_M and the training history."""
        from spinegraph.learning.training import learn

        return learn(data, config, states, progress)

    def embed(
        self,
        generator: Generator,
        graph: Graph,
        profile: RootedPageRank | None = None,
        columns: NDArray[np.float32] | None = None,
    ) -> NDArray[np.float32]:
        """Return the vectors (n, d) of all nodes; a large graph is embedded in shards, as on a cluster."""
        if profile is not None or len(graph) <= ROWS:
            return generator.embed(graph, profile=profile, columns=columns)
        shards, columns = plan(len(graph), ROWS), None
        if generator.inputs.columns_smoothed:
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
    progress: Progress | None = None,
) -> Path:
    """Write the vectors of all nodes to a folder of Parquet parts; resumes an interrupted run.

    Besides what the graph itself holds (a store holds nothing), memory is that of one shard.

    Parameters
    ----------
    generator : Generator
    graph : Graph
        See ``open_store`` for one larger than memory.
    folder : path
    rows : int
        Nodes per shard.
    progress : callable (stage, done, total), optional

    Returns
    -------
    Path
        The folder: part-00000.parquet and so on, in graph order, and manifest.json.
    """
    parts = ShardFolder.of_run(folder, generator, graph, rows)
    missing, columns, scratch = parts.missing(), None, parts.folder / ".columns.bin"
    if generator.inputs.columns_smoothed and missing:
        columns = _columns_on_disk(generator, graph, scratch, parts.shards, progress)
    parts.fill(((shard, embed_shard(generator, graph, shard, columns)) for shard in missing), progress)
    scratch.unlink(missing_ok=True)
    return parts.folder


def _columns_on_disk(
    generator: Generator, graph: Graph, path: Path, shards: list[Shard], progress: Progress | None
) -> NDArray[np.float32]:
    """Return the structural columns of all nodes, (n, s), in a file that an interrupted run resumes."""
    width = 4 * len(generator.inputs.columns)
    with explained(path), path.open("ab") as file:
        finished = [shard for shard in shards if shard.stop * width <= file.tell()]
        file.truncate(finished[-1].stop * width if finished else 0)
        for shard in shards[len(finished) :]:
            if progress is not None:
                progress("structure around every node", shard.start, len(graph))
            file.write(columns_shard(generator, graph, shard).data)
            file.flush()
            os.fsync(file.fileno())
    return np.memmap(path, np.float32, "r", shape=(len(graph), width // 4))
