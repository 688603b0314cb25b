"""What a FeatureEncoder learned from a table, as JSON; what is read encodes a table."""

import json
from pathlib import Path

import pyarrow as pa
from fuzz.outcome import Target

from spinegraph.graph.encode import FeatureEncoder

_TABLE = pa.table(
    {
        "age": [1.5, None, 3.0],
        "team": ["north", None, "south"],
        "member": [True, False, None],
        "since": pa.array([1, 2, None], pa.timestamp("s")),
        "words": [f"w{i}" for i in range(3)],
    }
)


def _seeds() -> list[bytes]:
    whole = FeatureEncoder().fit(_TABLE).state()[0]
    found = [json.dumps(whole).encode()]
    for column in whole["columns"]:
        found.append(json.dumps({**whole, "columns": [column]}).encode())
    wide = pa.table({"street": [f"street {i % 300}" for i in range(900)]})
    return [*found, json.dumps(FeatureEncoder().fit(wide).state()[0]).encode()]


SEEDS = _seeds()


def begin(folder: Path) -> Target:
    """Return a function that reads an encoder from JSON and encodes with it."""

    def target(data: bytes) -> None:
        try:
            meta = json.loads(data)
        except (ValueError, RecursionError):
            return
        encoder = FeatureEncoder.from_state(meta, {})
        assert FeatureEncoder.from_state(encoder.state()[0], {}).feature_names_ == encoder.feature_names_
        assert encoder.transform(_TABLE).shape[1] == encoder.num_features

    return target
