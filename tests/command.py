"""The command ``spine`` as a process, and a small organisation for it to work on."""

import multiprocessing
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import weakref
from functools import cache
from multiprocessing import forkserver
from pathlib import Path
from threading import Thread
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv, parquet

SPINE = str(Path(sys.executable).with_name("spine"))
# Spare threads of tests that run at the same time would hold each other up.
ALONE = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "COLUMNS": "80"}
NAMES = ("ann", "bob", "cy", "dan", "eve", "flo", "gus", "hal", "ivy", "jo", "kit", "lea")
PRELOADED = (
    "duckdb",
    "plotly.graph_objects",
    "rich.progress",
    "sklearn.cluster",
    "sklearn.linear_model",
    "sklearn.manifold",
    "sklearn.metrics",
    "spinegraph.analysis.evaluation",
    "spinegraph.analysis.report",
    "spinegraph.apps.cli.fit",
    "spinegraph.apps.cli.serve",
    "spinegraph.apps.server.app",
    "spinegraph.graph.feature_files",
    "spinegraph.graph.read",
    "warmed",
)
CAN_FORK = "forkserver" in multiprocessing.get_all_start_methods()
QUICK = ("--dim", "8", "--threads", "1")


def spine(*arguments, cwd=None, columns=80, piped=None, **options):
    """Run the command in a process of its own and return what became of it.

    With options of ``subprocess.run`` it is a new one, which takes seconds longer than one that is forked.
    ``piped`` is a text that it reads from its standard input, a pipe.
    """
    if options or not CAN_FORK:
        environment = {**ALONE, "COLUMNS": str(columns)}
        options = {"capture_output": True, "text": True, "timeout": 300, "env": environment, **options}
        options |= {} if piped is None else {"input": piped}
        return subprocess.run([SPINE, *map(str, arguments)], cwd=cwd, **options)
    with Forked(main_of, *map(str, arguments), cwd=cwd, piped=piped, COLUMNS=str(columns)) as process:
        out, err = process.communicate(300)
    return subprocess.CompletedProcess(arguments, process.returncode, out, err)


def main_of(*arguments):
    """Be the command."""
    from spinegraph.apps.cli import main

    sys.argv = [SPINE, *arguments]
    main(list(arguments))


@cache
def _fork_server():
    """Start the process that others are forked from.

    Python 3.11 gives it no path of its own, and leaves out in silence what it cannot import.
    """
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["command", *PRELOADED])
    with patch.dict(os.environ, PYTHONPATH=os.pathsep.join(filter(None, sys.path))):
        forkserver.ensure_running()
    return context


class Forked:
    """A process that calls a function, forked from one that has imported the package.

    It has an environment, a folder and files of its own, and is used like a ``subprocess.Popen``.
    """

    def __init__(self, function, *arguments, cwd=None, piped=None, **environment):
        context = _fork_server()
        folder = tempfile.mkdtemp()
        self._remove_folder = weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        files = [Path(folder, name) for name in ("out", "err")]
        for file in files:
            file.touch()
        source = Path(os.devnull)
        if piped is not None:
            os.mkfifo(source := Path(folder, "in"))
            Thread(target=source.write_text, args=(piped,), daemon=True).start()
        environment = {**os.environ, **ALONE, **environment}
        given = (function, arguments, cwd or os.getcwd(), environment, source, *files)
        self._process = context.Process(target=_become, args=given)
        self._process.start()
        self.pid = self._process.pid
        self.stdout, self.stderr = (_Output(file, self.poll) for file in files)

    @property
    def returncode(self):
        return self._process.exitcode

    def poll(self):
        return self._process.exitcode

    def wait(self, timeout=None):
        self._process.join(timeout)
        if self.poll() is None:
            raise subprocess.TimeoutExpired("spine", timeout)
        return self.returncode

    def communicate(self, timeout=None):
        """Wait until it has ended and return what it wrote to both outputs."""
        self.wait(timeout)
        return self.stdout.read(), self.stderr.read()

    def send_signal(self, number):
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self):
        self.send_signal(signal.SIGKILL)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.kill()
        self.wait()
        self._remove_folder()


class _Output:
    """What a process writes into a file, read as if it came through a pipe."""

    def __init__(self, path, poll):
        self._path, self._poll, self._seen = path, poll, 0

    def readline(self):
        while True:
            has_ended = self._poll() is not None
            line, end, _ = self._rest().partition(b"\n")
            if end or has_ended:
                self._seen += len(line + end)
                return (line + end).decode()
            time.sleep(0.005)

    def read(self):
        rest = self._rest()
        self._seen += len(rest)
        return rest.decode(errors="replace")

    def _rest(self):
        return self._path.read_bytes()[self._seen :]


def _become(function, arguments, cwd, environment, source, out, err):
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(cwd)
    os.dup2(os.open(source, os.O_RDONLY), 0)
    for stream, path in ((1, out), (2, err)):
        os.dup2(os.open(path, os.O_WRONLY | os.O_APPEND), stream)
    sys.stdin, sys.stdout, sys.stderr = open(0), open(1, "w"), open(2, "w", errors="backslashreplace")  # noqa: SIM115
    function(*arguments)


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
