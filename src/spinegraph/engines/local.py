"""LocalEngine: every stage in this process."""

from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np

from spinegraph.atomic import whole_file
from spinegraph.config import Config
from spinegraph.embeddings import Embeddings, plain_names
from spinegraph.engines.shards import ROWS, AnyGenerator, Progress, Shard, ShardFolder, plan, run_digest
from spinegraph.graph.graph import Graph
from spinegraph.parts.generator import Chunk, Generator, Known, Vectors
from spinegraph.parts.paper import PaperGenerator

_SMOOTHED = ".smoothed"  # prefix of the files of an unfinished run


class LocalEngine:
    """Runs the stages in this process; the reference for other engines."""

    def fit(self, graph: Graph, config: Config, progress: Progress, *, several: bool = False) -> Generator:
        """Fit all parts on a graph; ``several`` if it is the union of several networks."""
        return Generator.fit(graph, config, progress, several=several)

    def smoothed(
        self, generator: Generator, graph: Graph, chunks: list[Chunk], known: Known
    ) -> Iterator[tuple[Chunk, Vectors]]:
        """Yield the values (n, c) of chunks, in any order."""
        for chunk in chunks:
            yield chunk, generator.smoothed(graph, chunk, known)

    def role_rows(
        self, generator: Generator, graph: Graph, shards: Iterable[Shard]
    ) -> Iterator[tuple[Shard, Vectors | None]]:
        """Yield the role part of shards, in any order; None if the model has none."""
        around = generator.surroundings(graph)
        for shard in shards:
            yield shard, generator.role_rows(graph, np.arange(shard.start, shard.stop), around)

    def embed(self, generator: AnyGenerator, graph: Graph, known: Known = None) -> Vectors:
        """Return the vectors (n, d) of all nodes, given their training positions."""
        if isinstance(generator, PaperGenerator):
            return generator.embed(graph)
        vectors = np.zeros((len(graph), generator.dim), np.float32)
        for chunk, values in self.smoothed(generator, graph, generator.chunks(graph, known), known):
            vectors[:, generator.at(chunk)] = values
        for shard, role in self.role_rows(generator, graph, plan(len(graph), ROWS)):
            generator.finish(vectors[shard.start : shard.stop], role)
        return vectors

    def embed_to_folder(
        self,
        generator: AnyGenerator,
        graph: Graph,
        folder: str | Path,
        rows: int = ROWS,
        progress: Progress | None = None,
    ) -> Path:
        """Write the vectors of all nodes to a folder; see ``engines.engine.embed_to_folder``."""
        if graph.store is None:  # all names of a store have one type
            plain_names(graph.names, Path(folder))
        parts = ShardFolder.open(folder, run_digest(generator, graph), len(graph), rows)
        if isinstance(generator, PaperGenerator):

            def whole(shard: Shard) -> Embeddings:
                vectors = generator.embed_some(graph, np.arange(shard.start, shard.stop))
                return Embeddings(graph.names[shard.start : shard.stop], vectors, generator.parts)

            parts.fill(((shard, whole(shard)) for shard in parts.missing()), progress)
        elif parts.missing():
            parts.fill(self._finished(generator, graph, parts, progress), progress)
        for file in parts.folder.glob(f"{_SMOOTHED}-*"):
            file.unlink(missing_ok=True)
        return parts.folder

    def _finished(
        self, generator: Generator, graph: Graph, parts: ShardFolder, progress: Progress | None
    ) -> Iterator[tuple[Shard, Embeddings]]:
        """Yield the vectors of missing shards; smoothed values are kept in files until then."""
        known = generator.known(graph)
        chunks = generator.chunks(graph, known)
        missing = [chunk for chunk in chunks if not _file(parts.folder, chunk).exists()]
        report, done = progress or (lambda stage, done, total: None), 0
        report("smoothing", done, len(missing))
        for chunk, values in self.smoothed(generator, graph, missing, known):
            with whole_file(_file(parts.folder, chunk)) as partial:
                values.tofile(partial)
            del values  # else they would take memory while the next are computed
            done += 1
            report("smoothing", done, len(missing))
        same_network = None if generator.place is None else known is not None
        for shard, role in self.role_rows(generator, graph, parts.missing()):
            vectors = np.zeros((len(shard), generator.dim), np.float32)
            for chunk in chunks:
                vectors[:, generator.at(chunk)] = _rows(_file(parts.folder, chunk), shard, len(graph))
            generator.finish(vectors, role)
            names = graph.names[shard.start : shard.stop]
            yield shard, Embeddings(names, vectors, generator.parts, same_network)


def _file(folder: Path, chunk: Chunk) -> Path:
    return folder / f"{_SMOOTHED}-{chunk.part}-{chunk.columns.start}"


def _rows(file: Path, shard: Shard, count: int) -> Vectors:
    """Read the rows of a shard from an array (count, c); a memory map would count as used memory."""
    width = file.stat().st_size // (4 * count)
    found = np.fromfile(file, np.float32, len(shard) * width, offset=4 * width * shard.start)
    return found.reshape(len(shard), width)
