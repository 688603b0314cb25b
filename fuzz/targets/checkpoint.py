"""States of training: bytes of a file, and sound files with odd metadata or arrays."""

import json
import tempfile
from pathlib import Path

import atheris
import numpy as np
from fuzz.inputs import arrays
from fuzz.outcome import Target

from spinegraph.atomic import write_signed
from spinegraph.learning.checkpoint import Checkpoints, TrainingState

_SHAPES = {"weights": (3, 2)}
_STATE = TrainingState(50, {"weights": np.ones((3, 2), np.float32)}, [(25, 1.5, 1.25)])


def _seeds() -> list[bytes]:
    with tempfile.TemporaryDirectory() as folder:
        Checkpoints(folder, "run").save(_STATE)
        (file,) = Path(folder).glob("*.safetensors")
        whole = file.read_bytes()
    return [
        b"\0" + whole,
        b"\0" + whole[:-1],
        b"\1" + bytes(range(70)),
        b"\2[[25, 1.5, 1.25]]",
        b"\2[[1e999, 1, 1]]",
    ]


SEEDS = _seeds()


def begin(folder: Path) -> Target:
    """Return a function that looks for a state in a folder that holds one such file."""
    checkpoints = Checkpoints(folder / "states", "run")
    checkpoints.save(_STATE)
    (path,) = (folder / "states").glob("*.safetensors")

    def target(data: bytes) -> None:
        role = data[0] % 3 if data else 0
        if role == 0:
            path.write_bytes(data[1:])
        elif role == 1:
            draw = atheris.FuzzedDataProvider(data[1:])
            about = {"fingerprint": "run", "step": draw.ConsumeUnicodeNoSurrogates(4), "history": "[]"}
            write_signed(path, arrays(draw.ConsumeBytes(200), ("weights", "w"), ("<f4", "<f8", "<i8")), about)
        else:
            text = data[1:].decode(errors="replace")
            write_signed(path, _STATE.arrays, {"fingerprint": "run", "step": "50", "history": text})
        state = checkpoints.latest(_SHAPES, 300)
        if state is not None:
            assert np.isfinite(state.arrays["weights"]).all()
            assert 0 < state.step <= 300
            json.dumps(state.history)

    return target
