"""The engine that the settings select, and vectors of all nodes in a folder."""

from pathlib import Path

from spinegraph.config import Config
from spinegraph.engines.local import LocalEngine
from spinegraph.engines.shards import ROWS, AnyGenerator, Progress
from spinegraph.errors import ParameterError
from spinegraph.graph.graph import Graph


def engine_for(config: Config) -> LocalEngine:
    """Return the engine that the settings select: this process, a Ray cluster or a GPU."""
    if getattr(config, "engine", "local") == "ray":
        if config.device != "cpu":
            raise ParameterError(f"engine='ray' needs device='cpu'; got device={config.device!r}")
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
    """Write the vectors of all nodes to a folder of Parquet parts; resume an interrupted run of any engine.

    Besides the graph itself (a store takes none), this needs memory for 64 columns of all nodes, or for fewer
    beyond a million nodes. On a cluster, every machine opens a store by its path; any other graph is sent to
    each machine once.

    Parameters
    ----------
    generator : Generator
        Its settings choose the engine.
    graph : Graph
        For a graph larger than memory, see ``open_store``.
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
