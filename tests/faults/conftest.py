"""What the faults are injected into: one small organisation, its model and its vectors, made once."""

import shutil

import pytest

from command import QUICK, spine, write_organisation


@pytest.fixture
def injected(record_property):
    """Count injected faults; the summary of the run adds them up."""

    def count(kind, number=1):
        record_property("faults", (kind, number))

    return count


@pytest.fixture(scope="session")
def organisation(tmp_path_factory):
    """A folder with edges, people, a model of them and vectors.parquet."""
    folder = tmp_path_factory.mktemp("organisation")
    write_organisation(folder)
    for order in (
        ("fit", "edges.csv", "--features", "people.csv", "-o", "model", *QUICK),
        ("embed", "model", "edges.csv", "--features", "people.csv", "-o", "vectors.parquet"),
    ):
        run = spine(*order, cwd=folder)
        assert run.returncode == 0, run.stderr
    return folder


@pytest.fixture
def place(organisation, tmp_path):
    """A copy of the organisation to do harm to."""
    return shutil.copytree(organisation, tmp_path / "place")
