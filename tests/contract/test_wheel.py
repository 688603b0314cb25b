"""The wheel holds the package and nothing else; the source archive can run its own tests."""

import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "spinegraph"


def built(kind, folder):
    command = [sys.executable, "-m", "build", f"--{kind}", "--no-isolation", "--outdir", folder, ROOT]
    run = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert run.returncode == 0, run.stderr
    (archive,) = folder.iterdir()
    return archive


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    with zipfile.ZipFile(built("wheel", tmp_path_factory.mktemp("wheel"))) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def test_the_wheel_holds_every_file_of_the_package(wheel):
    files = {
        f"spinegraph/{path.relative_to(PACKAGE).as_posix()}"
        for path in PACKAGE.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert "spinegraph/py.typed" in files
    assert {name for name in wheel if ".dist-info/" not in name} == files


def test_the_wheel_brings_the_command_the_licence_and_the_readme(wheel):
    about = {
        name.split(".dist-info/")[1]: text.decode() for name, text in wheel.items() if ".dist-info/" in name
    }
    assert "spine = spinegraph.apps.cli:main" in about["entry_points.txt"]
    assert "MIT License" in about["licenses/LICENSE"]
    assert "make demo" in about["METADATA"]


def test_the_core_needs_no_optional_package(wheel):
    (metadata,) = (text.decode() for name, text in wheel.items() if name.endswith(".dist-info/METADATA"))
    core = [
        line for line in metadata.splitlines() if line.startswith("Requires-Dist:") and "extra ==" not in line
    ]
    assert len(core) > 8
    for package in ("networkx", "igraph", "pandas", "polars", "torch-geometric", "pytest"):
        assert not any(f" {package}" in line for line in core)


def test_the_source_archive_holds_what_its_tests_read(tmp_path):
    with tarfile.open(built("sdist", tmp_path)) as archive:
        names = {name.split("/", 1)[-1] for name in archive.getnames()}
    for file in (
        "README.md",
        "CITATION.cff",
        "CONTRIBUTING.md",
        "Makefile",
        "constraints.txt",
        "docs/conf.py",
        "docs/play.py",
        "docs/tutorials/roles.md",
        "docs/figures/result.png",
        "examples/new_node.py",
    ):
        assert file in names
    assert "tests/reference.py" in names
    assert not any("__pycache__" in name or name.startswith("docs/_build") for name in names)
    folders = {name.split("/")[0] for name in names if "/" in name}
    assert folders == {"src", "tests", "paper", "results", "benchmarks", "docs", "examples", "fuzz", "audit"}
