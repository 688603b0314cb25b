"""What a FeatureEncoder learned, as any JSON or sound JSON changed; what is read encodes a table."""

import json
from pathlib import Path

import pyarrow as pa
from fuzz.inputs import json_of
from fuzz.outcome import Target

from spinegraph.graph.encoder import FeatureEncoder

_TABLE = pa.table(
    {
        "age": [1.5, None, 3.0],
        "team": ["north", None, "south"],
        "member": [True, False, None],
        "since": pa.array([1, 2, None], pa.timestamp("s")),
        "words": [f"w{i}" for i in range(3)],
    }
)
_SOUND = FeatureEncoder().fit(_TABLE).state()[0]


def _seeds() -> list[bytes]:
    found = [json.dumps(_SOUND).encode(), b"\1", bytes(range(128, 160))]
    for column in _SOUND["columns"]:
        found.append(json.dumps({**_SOUND, "columns": [column]}).encode())
    wide = pa.table({"street": [f"street {i % 300}" for i in range(900)]})
    return [*found, json.dumps(FeatureEncoder().fit(wide).state()[0]).encode()]


SEEDS = _seeds()


def begin(folder: Path) -> Target:
    """Return a function that reads an encoder from JSON and encodes with it."""

    def target(data: bytes) -> None:
        encoder = FeatureEncoder.from_state(json_of(data, _SOUND), {})
        assert FeatureEncoder.from_state(encoder.state()[0], {}).feature_names_ == encoder.feature_names_
        assert encoder.transform(_TABLE).shape[1] == encoder.num_features

    return target
