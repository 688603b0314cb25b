"""What several targets do with bytes: read them as a network, or as the features of one."""

from pathlib import Path

from fuzz.outcome import Target

from spinegraph.graph.read import read_graph


def network_or_features(folder: Path, name: str) -> Target:
    """Return a function that reads bytes from a file of that name; the first byte says as what."""
    path, edges = folder / name, folder / "edges.csv"
    edges.write_text("0,1\n1,2\n")

    def target(data: bytes) -> None:
        path.write_bytes(data[1:])
        if data and data[0] % 2:
            read_graph(edges, path)
        else:
            read_graph(path)

    return target
