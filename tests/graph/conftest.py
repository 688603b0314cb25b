"""Fixtures of the tests of graphs."""

import pytest


@pytest.fixture
def file(tmp_path):
    """Return a function that writes a small file and returns its path."""

    def write(content, name="edges.csv"):
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return write
