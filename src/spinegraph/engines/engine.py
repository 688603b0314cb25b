"""The choice of an execution backend by the settings, and vectors of all nodes in a folder."""

from pathlib import Path

from spinegraph.config import Config
from spinegraph.engines.local import LocalEngine
from spinegraph.engines.shards import ROWS, AnyGenerator, Progress
from spinegraph.graph.graph import Graph


def engine_for(config: Config) -> LocalEngine:
    """Return the engine that the settings ask for: this process, a Ray cluster or a GPU."""
    if getattr(config, "engine", "local") == "ray":
        from spinegraph.engines.ray import RayEngine

        return RayEngine(config.address)
    if getattr(config, "device", "cpu").startswith("cuda"):
        from spinegraph.engines.gpu.engine import GpuEngine

        return GpuEngine(config.device)
    return LocalEngine()


def embed_to_folder(
    generator: AnyGenerator,
    graph: Graph,
    folder: str | Path,
    *,
    rows: int = ROWS,
    progress: Progress | None = None,
) -> Path:
    """Write the vectors of all nodes to a folder of Parquet parts; resumes an interrupted run of any engine.

    Besides what the graph itself holds (a store holds nothing), memory is that of 64 columns of all nodes, or
    of fewer beyond a million. On a cluster a store is opened by its path on every machine, and another graph
    is sent to each of them once.

    Parameters
    ----------
    generator : Generator
        Its settings choose the engine.
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
    engine = engine_for(generator.config)  # type: ignore[arg-type]
    return engine.embed_to_folder(generator, graph, folder, rows=rows, progress=progress)
