"""Vectors of a whole graph in shards: cut and embedded alike by every engine, kept as Parquet parts."""

import json
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from hashlib import blake2b
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from spinegraph.atomic import JsonObject, make_folder, sweep, whole_file
from spinegraph.embeddings import Embeddings, plain_names
from spinegraph.errors import GraphFormatError, ParameterError
from spinegraph.generator import Generator
from spinegraph.graph.fingerprint import fingerprint
from spinegraph.graph.graph import Graph
from spinegraph.graph.store import digest_of

ROWS = 65_536
# Nodes whose surroundings are held at a time: so many, or as many as have surroundings of about this size.
_LEAST_BLOCK, _MOST_BLOCK, _BLOCK_BYTES = 16, 32_768, 2**27
_BYTES_PER_VALUE = 16  # of a feature, while it is gathered and scaled


@dataclass(frozen=True)
class Shard:
    """Consecutive nodes of a graph, ``start`` to ``stop``."""

    index: int
    start: int
    stop: int

    @property
    def file(self) -> str:
        """Name of its part."""
        return f"part-{self.index:05d}.parquet"


def plan(num_nodes: int, rows: int = ROWS) -> list[Shard]:
    """Cut a graph's nodes into shards; the same whoever embeds them."""
    if not isinstance(rows, int | np.integer) or rows < 1:
        raise ParameterError(f"rows of a shard must be a whole number of at least 1; got {rows!r}")
    starts = range(0, num_nodes, rows)
    return [Shard(index, start, min(start + rows, num_nodes)) for index, start in enumerate(starts)]


def embed_shard(
    generator: Generator, graph: Graph, shard: Shard, columns: NDArray[np.float32] | None = None
) -> Embeddings:
    """Return the vectors of one shard, in graph order, holding little beside them.

    Parameters
    ----------
    generator : Generator
    graph : Graph
    shard : Shard
    columns : float32 array (n, s), optional
        Structural columns of all nodes (see ``columns_shard``), where the generator smooths them: without
        them those of all nodes around the shard are computed again.
    """
    vectors = np.empty((shard.stop - shard.start, generator.dim), dtype=np.float32)
    for start, stop in _blocks(shard, _rows_at_a_time(generator, graph)):
        positions = np.arange(start, stop)
        vectors[start - shard.start : stop - shard.start] = generator.embed(graph, positions, columns=columns)
    return Embeddings(graph.names[shard.start : shard.stop], vectors)


def columns_shard(generator: Generator, graph: Graph, shard: Shard) -> NDArray[np.float32]:
    """Return the standardised structural columns (r, s) of one shard, for ``embed_shard``."""
    inputs = generator.inputs
    parts = [inputs.structural(graph, np.arange(start, stop)) for start, stop in _blocks(shard, _MOST_BLOCK)]
    return np.concatenate(parts)


def needs_columns(generator: Generator) -> bool:
    """Say whether a generator smooths structural columns, so that shards need those of nodes elsewhere."""
    return generator.inputs.through


def _blocks(shard: Shard, rows: int) -> Iterator[tuple[int, int]]:
    for start in range(shard.start, shard.stop, rows):
        yield start, min(start + rows, shard.stop)


def _rows_at_a_time(generator: Generator, graph: Graph) -> int:
    """Return how many nodes to embed at a time; it follows from the graph and the model alone."""
    features = graph.features
    values = len(generator.inputs.columns)
    if features is not None:
        values += int(features.nnz if issparse(features) else features.size) // len(graph)
    around = 4 * generator.inputs.config.k // 3  # ties make rows of T a little longer than k
    return min(max(_BLOCK_BYTES // (_BYTES_PER_VALUE * around * max(values, 1)), _LEAST_BLOCK), _MOST_BLOCK)


FORMAT, VERSION, MANIFEST = "spinegraph.shards", 1, "manifest.json"


def run_of(generator: Generator, graph: Graph) -> str:
    """Name a run by what decides its vectors: the generator and the graph's content."""
    inputs = generator.inputs
    meta, arrays = (None, {}) if inputs.encoder is None else inputs.encoder.state()
    about = [inputs.config.deciding(), meta, inputs.columns, inputs.through, inputs.past, fingerprint(graph)]
    digest = blake2b(json.dumps(about, sort_keys=True).encode(), digest_size=16)
    for array in (generator.weights, inputs.mean, inputs.scale, *(arrays[key] for key in sorted(arrays))):
        digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()


def require_names(graph: Graph, folder: str | Path) -> None:
    """Refuse names that are not all text or all whole numbers, before the first of many shards is made.

    Each shard for itself might pass, and its file would then not go with the others.
    """
    if graph.store is None:  # a store has names of one kind
        plain_names(graph.names, folder)


@dataclass(frozen=True)
class Part:
    """A finished shard as the manifest lists it."""

    file: str
    start: int
    stop: int
    bytes: int
    digest: str


def write_part(folder: Path, shard: Shard, embeddings: Embeddings) -> Part:
    """Write one shard's Parquet file, whole or not at all; :meth:`ShardFolder.record` then lists it.

    Any number of processes may write parts of one folder at a time.
    """
    if len(embeddings) != shard.stop - shard.start:
        raise GraphFormatError(f"{shard} needs {shard.stop - shard.start} vectors; got {len(embeddings)}")
    path = folder / shard.file
    embeddings.save(path)
    return Part(shard.file, shard.start, shard.stop, path.stat().st_size, digest_of(path))


class ShardFolder:
    """A folder of vectors in shards that a run fills, whoever computes them; a stopped run goes on there.

    Parameters
    ----------
    folder : Path
        Made if it is not there; one that holds anything else is refused.
    run : str
        See ``run_of``: shards of another run are never mixed with these.
    num_nodes, rows : int
        What ``plan`` cuts.
    """

    def __init__(self, folder: Path, run: str, num_nodes: int, rows: int, parts: dict[str, Part]) -> None:
        self.folder, self.run, self.num_nodes, self.rows = folder, run, num_nodes, rows
        self._parts = parts

    @classmethod
    def open(cls, folder: str | Path, run: str, num_nodes: int, rows: int = ROWS) -> "ShardFolder":
        """Begin a run in a new or empty folder, or go on with the same run where it stopped."""
        folder = Path(folder)
        if folder.exists() and not folder.is_dir():
            raise ParameterError(f"{folder}: is a file; vectors in shards go to a folder")
        make_folder(folder)
        sweep(folder, "*")
        parts: dict[str, Part] = {}
        if (folder / MANIFEST).exists():
            about = _read_manifest(folder)
            if (about.meta["run"], about.meta["num_nodes"]) != (run, num_nodes):
                raise ParameterError(
                    f"{folder}: holds vectors of another model, network or setting; name another folder, "
                    "or remove this one"
                )
            rows = about.meta["rows"]  # a run goes on as it was cut
            parts = _listed_parts(about)
            cut = {shard.file: (shard.start, shard.stop) for shard in plan(num_nodes, rows)}
            if any(cut.get(part.file) != (part.start, part.stop) for part in parts.values()):
                raise GraphFormatError(
                    f"{folder / MANIFEST}: is damaged, it lists parts that are not {rows} nodes long; "
                    "remove the folder and begin anew"
                )
        elif others := sorted(file.name for file in folder.iterdir() if not file.name.startswith(".")):
            raise ParameterError(
                f"{folder}: holds {', '.join(map(repr, others[:3]))} and no {MANIFEST}; name an empty folder"
            )
        shards = cls(folder, run, num_nodes, rows, parts)
        if not parts:
            shards._save()
        return shards

    @property
    def shards(self) -> list[Shard]:
        """All shards of the run, finished or not."""
        return plan(self.num_nodes, self.rows)

    def missing(self) -> list[Shard]:
        """Return the shards still to be computed: not listed, gone, or of another size than listed."""
        return [shard for shard in self.shards if not self._has(shard)]

    def write(self, shard: Shard, embeddings: Embeddings) -> None:
        """Write one shard and list it in the manifest."""
        self.record(write_part(self.folder, shard, embeddings))

    def record(self, part: Part) -> None:
        """List a written part in the manifest; one process of a run does this."""
        self._parts[part.file] = part
        self._save()

    def verify(self) -> None:
        """Refuse parts that are not there or not what the manifest says, by their checksums."""
        for shard in self.shards:
            part, path = self._parts.get(shard.file), self.folder / shard.file
            if part is None or not path.is_file():
                raise GraphFormatError(f"{path}: is missing; run the same command again to make it")
            if digest_of(path) != part.digest:
                raise GraphFormatError(f"{path}: is damaged; remove it and run the same command again")

    def _has(self, shard: Shard) -> bool:
        part, path = self._parts.get(shard.file), self.folder / shard.file
        is_listed = part is not None and (part.start, part.stop) == (shard.start, shard.stop)
        return is_listed and path.is_file() and path.stat().st_size == part.bytes  # type: ignore[union-attr]

    def _save(self) -> None:
        is_whole = len(self._parts) == len(self.shards)
        about = {
            "format": FORMAT,
            "version": VERSION,
            "run": self.run,
            "num_nodes": self.num_nodes,
            "rows": self.rows,
            "is_complete": is_whole,
            "parts": [asdict(self._parts[file]) for file in sorted(self._parts)],
        }
        with whole_file(self.folder / MANIFEST) as partial:
            partial.write_text(json.dumps(about, indent=1), encoding="utf-8")


def fill(
    shards: ShardFolder,
    embed: Callable[[Shard], Embeddings],
    progress: Callable[[str, int, int], None] | None = None,
) -> None:
    """Compute and write what is missing, one shard after the other; ``progress`` counts nodes."""
    told = progress or (lambda stage, done, total: None)
    missing = shards.missing()
    done = shards.num_nodes - sum(shard.stop - shard.start for shard in missing)
    told("embedding nodes", done, shards.num_nodes)
    for shard in missing:
        shards.write(shard, embed(shard))
        done += shard.stop - shard.start
        told("embedding nodes", done, shards.num_nodes)


def _read_manifest(folder: Path) -> JsonObject:
    try:
        about = JsonObject(json.loads((folder / MANIFEST).read_bytes()), "top level")
        about.one_of("format", FORMAT)
        about.one_of("version", VERSION)
        about.get("run", str)
        about.whole("num_nodes", 1, 2**63 - 1)
        about.whole("rows", 1, 2**63 - 1)
        about.list_of("parts", dict)
    except (ValueError, RecursionError) as fault:
        raise GraphFormatError(
            f"{folder / MANIFEST}: cannot be read ({str(fault)[:200]}); remove the folder and begin anew"
        ) from fault
    return about


def _listed_parts(about: JsonObject) -> dict[str, Part]:
    """Return the parts that a manifest lists; what is not a part's entry counts as missing."""
    parts = {}
    for entry in about.meta["parts"]:
        try:
            part = Part(**entry)
        except TypeError:
            continue
        if type(part.file) is str:
            parts[part.file] = part
    return parts
