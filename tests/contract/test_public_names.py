"""What ``import spinegraph`` promises: quick, light, sorted, and every name there."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import spinegraph

HEAVY = ["igraph", "networkx", "numba", "pandas", "polars", "pyarrow", "sklearn", "torch", "torch_geometric"]


def printed_by(code):
    """Run code in a fresh interpreter and return what it prints."""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120
    )
    return done.stdout.strip()


def loaded_by(statement):
    return printed_by(f"import sys; {statement}; print([name for name in {HEAVY} if name in sys.modules])")


@pytest.mark.slow  # measures time
def test_the_import_takes_less_than_half_a_second():
    code = "import time; start = time.perf_counter(); import spinegraph; print(time.perf_counter() - start)"
    assert min(float(printed_by(code)) for _ in range(3)) < 0.5


def test_the_import_leaves_heavy_packages_out():
    assert loaded_by("import spinegraph") == "[]"


def test_building_a_graph_leaves_heavy_packages_out():
    assert (
        loaded_by("from spinegraph import Graph; Graph.from_edges([(0, 1)]).overlay([2], [(2, 0)])") == "[]"
    )


def test_public_names_are_sorted_and_listed_once():
    assert list(spinegraph.__all__) == sorted(set(spinegraph.__all__))
    assert dir(spinegraph) == list(spinegraph.__all__)


def test_editors_see_the_names_that_are_loaded_on_first_use():
    source = ast.parse(Path(spinegraph.__file__).read_text())
    block = next(node for node in source.body if isinstance(node, ast.If))
    seen = {
        alias.asname or alias.name: f"{line.module}.{alias.name}"
        for line in block.body
        for alias in line.names
    }
    assert sorted(seen) == sorted(spinegraph._MODULE_OF)
    for name, home in spinegraph._MODULE_OF.items():
        assert seen[name] in (home, f"{home}.{name}")


@pytest.mark.parametrize("name", spinegraph.__all__)
def test_every_public_name_loads(name):
    assert getattr(spinegraph, name) is not None


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="has no attribute 'spine'"):
        _ = spinegraph.spine
