"""Shards of consecutive nodes, the same for every engine, and a folder of them as Parquet parts."""

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
        """Return the number of nodes."""
        return self.stop - self.start

    @property
    def file(self) -> str:
        """Name of its part."""
        return f"part-{self.index:05d}.parquet"


def plan(num_nodes: int, rows: int = ROWS) -> list[Shard]:
    """Cut a graph's nodes into shards of ``rows`` nodes."""
    if not isinstance(rows, int | np.integer) or rows < 1:
        raise ParameterError(f"rows of a shard must be a whole number of at least 1; got {rows!r}")
    starts = range(0, num_nodes, rows)
    return [Shard(index, start, min(start + rows, num_nodes)) for index, start in enumerate(starts)]


FORMAT, VERSION, MANIFEST = "spinegraph.shards", 1, "manifest.json"
Part = dict[str, Any]  # a finished shard as the manifest lists it, by these keys
_PART = {"file", "start", "stop", "bytes", "digest"}


def run_of(generator: AnyGenerator, graph: Graph) -> str:
    """Return a digest of what decides the vectors of a run: the generator and the graph's content."""
    about, arrays = generator.state()
    return digest(arrays, {"about": json.dumps([about, fingerprint(graph)], sort_keys=True)})


@dataclass(frozen=True, eq=False)
class ShardFolder:
    """Vectors as a folder of Parquet parts, with a manifest of finished ones.

    A part is listed once it is on disk, so an interrupted run resumes with the missing ones.
    """

    folder: Path
    run: str  # see ``run_of``
    num_nodes: int
    rows: int
    _parts: dict[str, Part]  # the finished ones by file name

    @classmethod
    def open(cls, folder: str | Path, run: str, num_nodes: int, rows: int = ROWS) -> "ShardFolder":
        """Start a run in a new or empty folder, or resume the same run."""
        folder = Path(folder)
        if folder.exists() and not folder.is_dir():
            raise ParameterError(f"{folder}: is a file; vectors in shards go to a folder")
        make_folder(folder)
        sweep(folder, "*")
        parts: dict[str, Part] = {}
        if (folder / MANIFEST).exists():
            try:
                about = JsonObject(json.loads((folder / MANIFEST).read_bytes()), "top level")
                about.one_of("format", FORMAT)
                about.one_of("version", VERSION)
                about.get("run", str)
                about.whole("num_nodes", 1, 2**63 - 1)
                rows = about.whole("rows", 1, 2**63 - 1)  # the run keeps its shards
                about.list_of("parts", dict)
            except (ValueError, RecursionError) as fault:
                raise GraphFormatError(
                    f"{folder / MANIFEST}: cannot be read ({str(fault)[:200]}); remove the folder and start "
                    "again"
                ) from fault
            if (about.meta["run"], about.meta["num_nodes"]) != (run, num_nodes):
                raise ParameterError(
                    f"{folder}: holds vectors of another model, network or setting; name another folder, "
                    "or remove this one"
                )
            # Entries of another shape count as missing.
            listed = [part for part in about.meta["parts"] if part.keys() == _PART]
            parts = {part["file"]: part for part in listed if type(part["file"]) is str}
            cut = {shard.file: (shard.start, shard.stop) for shard in plan(num_nodes, rows)}
            if any(cut.get(file) != (part["start"], part["stop"]) for file, part in parts.items()):
                raise GraphFormatError(f"{folder / MANIFEST}: is damaged; remove the folder and start again")
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
        """Return the shards still to be computed: not listed, not there, or of another size than listed."""
        return [shard for shard in self.shards if not self._has(shard)]

    def fill(self, found: Iterable[tuple[Shard, Embeddings]], progress: Progress | None = None) -> None:
        """Write the vectors of the missing shards as they come."""
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
        """Check that every part is there and has the checksum that the manifest lists."""
        for shard in self.shards:
            part, path = self._parts.get(shard.file), self.folder / shard.file
            if part is None or not path.is_file():
                raise GraphFormatError(f"{path}: is missing; run the same command again to make it")
            if digest_of(path) != part["digest"]:
                raise GraphFormatError(f"{path}: is damaged; remove it and run the same command again")

    def _has(self, shard: Shard) -> bool:
        part, path = self._parts.get(shard.file), self.folder / shard.file
        return part is not None and path.is_file() and path.stat().st_size == part["bytes"]

    def _save(self) -> None:
        about = {
            "format": FORMAT,
            "version": VERSION,
            "run": self.run,
            "num_nodes": self.num_nodes,
            "rows": self.rows,
            "is_complete": len(self._parts) == len(self.shards),
            "parts": [self._parts[file] for file in sorted(self._parts)],
        }
        with whole_file(self.folder / MANIFEST) as partial:
            partial.write_text(json.dumps(about, indent=1), encoding="utf-8")
