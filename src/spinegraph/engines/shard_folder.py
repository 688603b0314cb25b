"""A folder of vectors in shards: Parquet parts, each whole, and a manifest of those finished."""

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np

from spinegraph.atomic import make_folder, sweep, whole_file
from spinegraph.embedding_files import plain_names
from spinegraph.embeddings import Embeddings
from spinegraph.engines.shards import ROWS, Shard, plan
from spinegraph.errors import GraphFormatError, ParameterError
from spinegraph.fingerprint import fingerprint
from spinegraph.generator import Generator
from spinegraph.graph.store_files import digest_of
from spinegraph.json_object import JsonObject

FORMAT, VERSION, MANIFEST = "spinegraph.shards", 1, "manifest.json"


def run_of(generator: Generator, graph: Any) -> str:
    """Name a run by what decides its vectors: the generator and the graph's content.

    >>> from spinegraph import SPINE, made
    >>> model = SPINE(dim=4, steps=5).fit(made.barbell(5))
    >>> len(run_of(model.generator_, model.graph_))
    32
    """
    inputs = generator.inputs
    meta, arrays = (None, {}) if inputs.encoder is None else inputs.encoder.state()
    about = [inputs.config.deciding(), meta, inputs.columns, inputs.through, inputs.past, fingerprint(graph)]
    digest = blake2b(json.dumps(about, sort_keys=True).encode(), digest_size=16)
    for array in (generator.weights, inputs.mean, inputs.scale, *(arrays[key] for key in sorted(arrays))):
        digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()


def require_names(graph: Any, folder: str | Path) -> None:
    """Refuse names that are not all text or all whole numbers, before the first of many shards is made.

    Each shard for itself might pass, and its file would then not go with the others.

    Examples
    --------
    >>> from spinegraph import made
    >>> require_names(made.barbell(5), "vectors")
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

    Examples
    --------
    >>> import tempfile
    >>> two = Embeddings(np.array([0, 1]), np.eye(2, dtype=np.float32))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     shards = ShardFolder.open(folder, "this run", num_nodes=4, rows=2)
    ...     shards.write(shards.missing()[0], two)
    ...     ShardFolder.open(folder, "this run", num_nodes=4, rows=2).missing()
    [Shard(index=1, start=2, stop=4)]
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
