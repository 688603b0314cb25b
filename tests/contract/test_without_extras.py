"""The core works without optional packages, and a command that needs one names it."""

import json
import subprocess
import sys

import pytest

from command import ALONE, write_organisation

OPTIONAL = [
    "fastapi", "igraph", "matplotlib", "pandas", "pgvector", "polars", "prometheus_client", "psycopg", "ray",
    "torch_geometric", "umap", "usearch", "uvicorn",
]  # fmt: skip
# Runs commands one after the other in a process that finds none of the optional packages.
SCRIPT = """
import json, sys
from importlib.machinery import PathFinder

class Without(PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        return None if name.partition(".")[0] in {optional} else super().find_spec(name, path, target)

sys.meta_path[sys.meta_path.index(PathFinder)] = Without
from spinegraph.apps.cli import main

for command in json.loads(sys.argv[1]):
    sys.argv = ["spine", *command]
    try:
        main()
    except SystemExit as end:
        if end.code:
            raise
"""
QUICK = ["--dim", "8", "--threads", "1"]


def run_without(commands, folder):
    script = SCRIPT.format(optional=set(OPTIONAL))
    arguments = [sys.executable, "-c", script, json.dumps(commands)]
    return subprocess.run(arguments, capture_output=True, text=True, timeout=300, cwd=folder, env=ALONE)


def test_from_files_to_vectors_roles_and_a_report(tmp_path):
    write_organisation(tmp_path)
    features = ["--features", "people.csv"]
    done = run_without(
        [
            ["data", "describe", "edges.csv", *features],
            ["fit", "edges.csv", *features, "-o", "model", *QUICK],
            ["embed", "model", "later.csv", "--features", "people_later.csv", "-o", "vectors.parquet"],
            ["similar", "model", "ann"],
            ["explain", "model", "ann", "bob"],
            ["roles", "model"],
            ["report", "model", "-o", "report.html"],
        ],
        tmp_path,
    )
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "vectors.parquet").exists()
    assert (tmp_path / "report.html").exists()


@pytest.mark.parametrize(
    ("command", "extra"),
    [
        (["serve", "model", "--store", "changes"], "serve"),
        (["export", "model", "--to", "postgresql://localhost/app"], "postgres"),
    ],
)
def test_a_command_that_needs_an_extra_names_it(command, extra, tmp_path):
    write_organisation(tmp_path)
    done = run_without([["fit", "edges.csv", "-o", "model", *QUICK], command], tmp_path)
    assert done.returncode == 1
    assert f"spinegraph[{extra}" in done.stderr
    assert "Traceback" not in done.stderr
