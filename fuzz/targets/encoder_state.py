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
        "words": ["an audit of invoices", "audit the invoices", None],
    }
)
_SOUND = FeatureEncoder({"words": "text"}).fit(_TABLE).state()[0]
_HASHED = {"name": "team", "kind": "hashed", "has_gaps": True, "width": 8}  # as 0.1.0 wrote it


def _seeds() -> list[bytes]:
    found = [json.dumps(_SOUND).encode(), b"\1", bytes(range(128, 160))]
    for column in _SOUND["columns"]:
        found.append(json.dumps({**_SOUND, "columns": [column]}).encode())
    wide = FeatureEncoder().fit({"street": [f"street-{i % 300}" for i in range(900)]}).state()[0]
    return [*found, *(json.dumps(state).encode() for state in (wide, {**_SOUND, "columns": [_HASHED]}))]


SEEDS = _seeds()


def begin(folder: Path) -> Target:
    """Return a function that reads an encoder from JSON and encodes with it."""

    def target(data: bytes) -> None:
        encoder = FeatureEncoder.from_state(json_of(data, _SOUND), {})
        assert FeatureEncoder.from_state(encoder.state()[0], {}).feature_names_ == encoder.feature_names_
        assert encoder.transform(_TABLE).shape[1] == encoder.num_features

    return target
