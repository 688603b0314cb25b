"""Shards of consecutive nodes, the same for every engine, and a folder with a Parquet part for each."""

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from spinegraph.atomic import JsonObject, digest, make_folder, sweep, whole_file
from spinegraph.embeddings import Embeddings
from spinegraph.errors import GraphFormatError, ParameterError
from spinegraph.graph.describe import fingerprint
from spinegraph.graph.graph import Graph
from spinegraph.graph.store import digest_of
from spinegraph.parts.paper import AnyGenerator as AnyGenerator

Progress = Callable[[str, int, int], None]  # stage, done, total
ROWS = 65_536


@dataclass(frozen=True)
class Shard:
    """Consecutive nodes of a graph, ``start`` to ``stop``."""

    index: int
    start: int
    stop: int

    def __len__(self) -> int:
        return self.stop - self.start

    @property
    def file(self) -> str:
        """Name of its Parquet part."""
        return f"part-{self.index:05d}.parquet"


def plan(num_nodes: int, rows: int = ROWS) -> list[Shard]:
    """Split a graph's nodes into shards of ``rows`` nodes."""
    if not isinstance(rows, int | np.integer) or rows < 1:
        raise ParameterError(f"rows must be a whole number of at least 1; got {rows!r}")
    starts = range(0, num_nodes, rows)
    return [Shard(index, start, min(start + rows, num_nodes)) for index, start in enumerate(starts)]


FORMAT, VERSION, MANIFEST = "spinegraph.shards", 1, "manifest.json"
Part = dict[str, Any]  # a finished shard in the manifest, with these keys
_PART = {"file", "start", "stop", "bytes", "digest"}


def run_digest(generator: AnyGenerator, graph: Graph) -> str:
    """Return a digest of all that determines the vectors of a run: the generator and the graph's content."""
    about, arrays = generator.state()
    return digest(arrays, {"about": json.dumps([about, fingerprint(graph)], sort_keys=True)})


@dataclass(frozen=True, eq=False)
class ShardFolder:
    """A folder of vectors as Parquet parts, with a manifest of the finished ones.

    A part is listed once it is on disk, so an interrupted run resumes with the missing parts.
    """

    folder: Path
    run: str  # see ``run_digest``
    num_nodes: int
    rows: int
    _parts: dict[str, Part]  # finished parts by file name

    @classmethod
    def open(cls, folder: str | Path, run: str, num_nodes: int, rows: int = ROWS) -> "ShardFolder":
        """Start a run in a new or empty folder, or resume the same run."""
        folder = Path(folder)
        if folder.exists() and not folder.is_dir():
            raise ParameterError(f"{folder}: is a file; name a folder for the shards")
        make_folder(folder)
        sweep(folder, "*")
        parts: dict[str, Part] = {}
        if (folder / MANIFEST).exists():
            try:
                about = JsonObject(json.loads((folder / MANIFEST).read_bytes()), "top level")
                about.one_of("format", FORMAT)
                about.one_of("version", VERSION)
                there = about.get("run", str), about.whole("num_nodes", 1, 2**63 - 1)
                rows = about.whole("rows", 1, 2**63 - 1)  # a resumed run keeps its shards
                # Entries of another shape count as missing.
                listed = [part for part in about.list_of("parts", dict) if part.keys() == _PART]
            except (ValueError, RecursionError) as fault:
                why = f"{folder / MANIFEST}: cannot be read ({str(fault)[:200]})"
                raise GraphFormatError(f"{why}; remove the folder and start again") from fault
            if there != (run, num_nodes):
                raise ParameterError(
                    f"{folder}: is of another model, network or setting; name another folder, or remove it"
                )
            parts = {part["file"]: part for part in listed if type(part["file"]) is str}
            cut = {shard.file: (shard.start, shard.stop) for shard in plan(num_nodes, rows)}
            if any(cut.get(file) != (part["start"], part["stop"]) for file, part in parts.items()):
                raise GraphFormatError(f"{folder / MANIFEST}: is damaged; remove the folder and start again")
        elif others := sorted(file.name for file in folder.iterdir() if not file.name.startswith(".")):
            raise ParameterError(
                f"{folder}: has {', '.join(map(repr, others[:3]))} but no {MANIFEST}; name an empty folder"
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
        """Return the shards still to be computed: not listed, missing, or of another size than listed."""
        return [shard for shard in self.shards if not self._has(shard)]

    def fill(self, found: Iterable[tuple[Shard, Embeddings]], progress: Progress | None = None) -> None:
        """Write the vectors of the missing shards as they arrive."""
        report = progress or (lambda stage, done, total: None)
        done = self.num_nodes - sum(map(len, self.missing()))
        report("embedding nodes", done, self.num_nodes)
        for shard, result in found:
            path, between = self.folder / shard.file, {"start": shard.start, "stop": shard.stop}
            result.save(path)
            checks = {"bytes": path.stat().st_size, "digest": digest_of(path)}
            self._parts[shard.file] = {"file": shard.file, **between, **checks}
            self._save()
            done += len(shard)
            report("embedding nodes", done, self.num_nodes)

    def verify(self) -> None:
        """Raise unless every part exists and has the checksum that the manifest lists."""
        for shard in self.shards:
            part, path = self._parts.get(shard.file), self.folder / shard.file
            if part is None or not path.is_file():
                raise GraphFormatError(f"{path}: is missing; run the same command again to write it")
            if digest_of(path) != part["digest"]:
                raise GraphFormatError(f"{path}: is damaged; remove it and run the same command again")

    def _has(self, shard: Shard) -> bool:
        part, path = self._parts.get(shard.file), self.folder / shard.file
        return part is not None and path.is_file() and path.stat().st_size == part["bytes"]

    def _save(self) -> None:
        about: dict[str, Any] = {"format": FORMAT, "version": VERSION, "run": self.run}
        about |= {"num_nodes": self.num_nodes, "rows": self.rows}
        about["is_complete"] = len(self._parts) == len(self.shards)
        about["parts"] = [self._parts[file] for file in sorted(self._parts)]
        with whole_file(self.folder / MANIFEST) as partial:
            partial.write_text(json.dumps(about, indent=1), encoding="utf-8")
