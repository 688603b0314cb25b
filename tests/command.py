"""The command ``spine`` as a process, and a small organisation for it to work on."""

import multiprocessing
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv, parquet

SPINE = str(Path(sys.executable).with_name("spine"))
# Spare threads of tests that run at the same time would hold each other up.
ALONE = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "COLUMNS": "80"}
NAMES = ("ann", "bob", "cy", "dan", "eve", "flo", "gus", "hal", "ivy", "jo", "kit", "lea")
PRELOADED = (
    "sklearn.linear_model",
    "spinegraph.analysis.report",
    "spinegraph.analysis.roles",
    "spinegraph.apps.cli.fit",
    "spinegraph.estimator",
)
QUICK = ("--dim", "8", "--threads", "1")


def spine(*arguments, cwd=None, **options):
    """Run the command in a process of its own and return what became of it.

    The process is forked from one that has imported the package, which saves seconds; with options of
    ``subprocess.run`` it is a new one.
    """
    command = [SPINE, *map(str, arguments)]
    if options or "forkserver" not in multiprocessing.get_all_start_methods():
        options = {"capture_output": True, "text": True, "timeout": 300, "env": ALONE, **options}
        return subprocess.run(command, cwd=cwd, **options)
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["command", *PRELOADED])
    with tempfile.TemporaryDirectory() as folder:
        files = Path(folder, "out"), Path(folder, "err")
        process = context.Process(target=_run, args=(command, cwd or os.getcwd(), *files))
        process.start()
        process.join(300)
        if process.is_alive():
            process.kill()
            process.join()
            pytest.fail(f"{command} has not ended after 300 s")
        texts = [file.read_text(encoding="utf-8") for file in files]
    return subprocess.CompletedProcess(command, process.exitcode, *texts)


def _run(command, cwd, out, err):
    """Be the command: its arguments, folder, environment and files."""
    os.environ.update(ALONE)
    os.chdir(cwd)
    for stream, path in ((0, os.devnull), (1, out), (2, err)):
        os.dup2(os.open(path, os.O_RDWR | os.O_CREAT), stream)
    sys.argv = command
    sys.stdin, sys.stdout, sys.stderr = open(0), open(1, "w"), open(2, "w", errors="backslashreplace")  # noqa: SIM115
    from spinegraph.apps.cli import main

    main(command[1:])


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
