"""Checkpoints of training: never half-written, the newest whole one wins, old ones pruned."""

import json
import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

_KEPT = 2
_PATTERN = "step-*.safetensors"


@dataclass(frozen=True, eq=False)
class TrainingState:
    """All that a run needs to go on: steps done, matrices and Adam's moments, history."""

    step: int
    arrays: dict[str, NDArray[np.float32]]
    history: list[tuple[int, float, float]]


class Checkpoints:
    """A folder of training states of one run.

    Parameters
    ----------
    folder : Path
        Made if it is not there.
    fingerprint : str
        Of the data and settings; states of another run are passed over.
    every : int
        Steps between two states.
    """

    def __init__(self, folder: str | Path, fingerprint: str, every: int = 50) -> None:
        self.folder, self.fingerprint, self.every = Path(folder), fingerprint, every
        self.folder.mkdir(parents=True, exist_ok=True)

    def is_due(self, step: int) -> bool:
        """Say whether a state is to be saved after this step."""
        return step % self.every == 0

    def save(self, state: TrainingState) -> None:
        """Write a state under a temporary name, bring it to disk, then give it its name."""
        path = self.folder / f"step-{state.step:09d}.safetensors"
        temporary = path.with_suffix(f".{os.getpid()}.tmp")
        about = {
            "fingerprint": self.fingerprint,
            "step": str(state.step),
            "history": json.dumps(state.history),
        }
        try:
            save_file(state.arrays, temporary, metadata=about)
            with open(temporary, "rb") as file:
                os.fsync(file.fileno())
            os.replace(temporary, path)
        finally:
            temporary.unlink(missing_ok=True)
        for old in self._newest_first()[_KEPT:]:
            old.unlink(missing_ok=True)

    def latest(self) -> TrainingState | None:
        """Return the newest whole state of this run, or None."""
        for path in self._newest_first():
            state = self._read(path)
            if state is not None:
                return state
        return None

    def _newest_first(self) -> list[Path]:
        return sorted(self.folder.glob(_PATTERN), reverse=True)

    def _read(self, path: Path) -> TrainingState | None:
        try:
            with safe_open(path, framework="numpy") as file:
                about = file.metadata() or {}
                if about.get("fingerprint") != self.fingerprint:
                    return None
                arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
            history = [
                (int(step), float(loss), float(held)) for step, loss, held in json.loads(about["history"])
            ]
            return TrainingState(int(about["step"]), arrays, history)
        except (SafetensorError, OSError, KeyError, ValueError):
            return None  # cut off or damaged: an older one will do
