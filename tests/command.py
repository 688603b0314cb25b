"""The command ``spine`` as a process, and a small organisation for it to work on."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv, parquet

SPINE = str(Path(sys.executable).with_name("spine"))
# Spare threads of tests that run at the same time would hold each other up.
ALONE = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "COLUMNS": "80"}
NAMES = ("ann", "bob", "cy", "dan", "eve", "flo", "gus", "hal", "ivy", "jo", "kit", "lea")
QUICK = ("--dim", "8", "--steps", "25", "--passes", "1e6", "--threads", "1")


def spine(*arguments, **options):
    """Run the command and return what became of it."""
    command = [SPINE, *map(str, arguments)]
    options = {"capture_output": True, "text": True, "timeout": 300, "env": ALONE, **options}
    return subprocess.run(command, **options)


def write_organisation(folder):
    """Write edges.csv, people.csv or .parquet, teams.csv; later.csv and people_later.csv have one more."""
    n = len(NAMES)
    edges = {(i, (i + step) % n) for i in range(n) for step in (1, 2)} | {(0, 5), (0, 7)}
    listed = [(NAMES[i], NAMES[j]) for i, j in sorted(edges)]
    people = {
        "node": list(NAMES),
        "team": ["north" if i < n // 2 else "south" for i in range(n)],
        "age": [25 + i for i in range(n)],
    }
    _write(folder / "edges.csv", listed)
    _write(folder / "later.csv", [*listed, ("ann", "zed"), ("bob", "zed")])
    csv.write_csv(pa.table(people), folder / "people.csv")
    parquet.write_table(pa.table(people), folder / "people.parquet")
    later = {
        name: [*values, more]
        for (name, values), more in zip(people.items(), ("zed", "north", 33), strict=True)
    }
    csv.write_csv(pa.table(later), folder / "people_later.csv")
    csv.write_csv(pa.table({"node": people["node"], "label": people["team"]}), folder / "teams.csv")


def _write(path, edges):
    path.write_text("source,target\n" + "".join(f"{one},{other}\n" for one, other in edges))


def real(name):
    """Return the path of a real network, or skip."""
    path = Path(os.environ.get("SPINEGRAPH_DATA", ""), name)
    if not path.is_file():
        pytest.skip("SPINEGRAPH_DATA names no folder with the real networks")
    return path


def write_cora(folder):
    """Write Cora as cora.csv, words.npz and labels.csv, as a user may have it."""
    with np.load(real("cora.npz")) as arrays:
        kept = {name: arrays[name] for name in arrays.files}
    _write(folder / "cora.csv", kept["edges"].tolist())
    words = {name: kept[name] for name in ("feat_data", "feat_indices", "feat_indptr", "feat_shape")}
    np.savez(folder / "words.npz", **words)
    numbers = np.arange(len(kept["labels"]))
    csv.write_csv(pa.table({"node": numbers, "label": kept["labels"]}), folder / "labels.csv")


def in_small_place(command, folder, options, *, filled=False):
    """Run a command where ``folder`` is a file system of its own, mounted with some options; or skip.

    The standard output ends with the names of what is left there.
    """
    unshare = shutil.which("unshare")
    mount = f"mount -t tmpfs -o {options} tmpfs {folder}"
    if unshare is None or subprocess.run([unshare, "-rm", "sh", "-c", mount], capture_output=True).returncode:
        pytest.skip("this machine lets nobody mount a small file system")
    fill = f"cat /dev/zero > {folder}/filler 2> /dev/null;" if filled else ""
    script = f'{mount}; {fill} "$@"; code=$?; ls -A {folder} | sed "s/^/left: /"; exit $code'
    return subprocess.run(
        [unshare, "-rm", "sh", "-c", script, "sh", *map(str, command)],
        capture_output=True,
        text=True,
        timeout=300,
        env=ALONE,
    )
