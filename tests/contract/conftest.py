"""What tests of the command share: fitting takes longest."""

import pytest

from command import QUICK, spine, write_organisation


@pytest.fixture(scope="session")
def place(tmp_path_factory):
    """A folder with a small organisation and a model of it; tests leave both as they are."""
    folder = tmp_path_factory.mktemp("organisation")
    write_organisation(folder)
    run = spine("fit", "edges.csv", "--features", "people.csv", "-o", "model", *QUICK, cwd=folder)
    assert run.returncode == 0, run.stderr
    (folder / "fit.txt").write_text(run.stdout + run.stderr)
    return folder
