"""The choice of an execution backend by the settings."""

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
    """Write the vectors of all nodes to a folder of Parquet parts, by the engine of the generator's settings.

    See ``engines.local.embed_to_folder``.
    """
    engine = engine_for(generator.config)  # type: ignore[arg-type]
    return engine.embed_to_folder(generator, graph, folder, rows=rows, progress=progress)
