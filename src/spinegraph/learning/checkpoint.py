"""The training history, and checkpoints from which an interrupted run resumes."""

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError

from spinegraph import __version__
from spinegraph.atomic import make_folder, read_signed, sweep, whole_file, write_signed
from spinegraph.config import Config
from spinegraph.errors import ParameterError

_NUM_KEPT = 2
_SHARE_OF_TIME = 0.1  # that saving may take: on a slow disk states are saved less often


@dataclass(frozen=True)
class TrainingRecord:
    """One line of the training history: losses after so many steps.

    Attributes
    ----------
    step : int
        Steps done.
    loss : float
        Objective on the last training batch.
    held_out_loss : float
        Objective on held-out pairs.
    """

    step: int
    loss: float
    held_out_loss: float


@dataclass(frozen=True, eq=False)
class TrainingState:
    """All that a run needs to resume."""

    step: int  # steps done
    arrays: dict[str, NDArray[np.float32]]  # matrices and Adam's moments
    history: list[tuple[int, float, float]]  # step, loss, held-out loss


class Checkpoints:
    """A folder of training states, one every so many steps.

    States of runs with another fingerprint, of data and settings, may lie beside them and are left alone.
    """

    def __init__(self, folder: str | Path, fingerprint: str, every: int = 50) -> None:
        self.folder, self.fingerprint, self.every = Path(folder), fingerprint, every
        self._run = blake2b(fingerprint.encode(), digest_size=4).hexdigest()
        self._not_before = 0.0
        if self.folder.exists() and not self.folder.is_dir():
            raise ParameterError(f"{folder}: is a file; checkpoint names a folder, created if need be")
        make_folder(self.folder)
        sweep(self.folder, f"{self._run}-*")

    @classmethod
    def of_fit(cls, folder: str | Path, data: str, config: Config) -> "Checkpoints":
        """Return the checkpoints of a fit, identified by its data and its settings but the machine's."""
        return cls(folder, f"{__version__} {data} {json.dumps(config.deciding(), sort_keys=True)}")

    def apart(self, how: str) -> "Checkpoints":
        """Return checkpoints of the same fit run in another way, so that neither resumes the other."""
        return Checkpoints(self.folder.resolve(), f"{self.fingerprint} {how}", self.every)

    def is_due(self, step: int) -> bool:
        """Tell whether to save a state after this step."""
        return step % self.every == 0 and time.monotonic() >= self._not_before

    def save(self, state: TrainingState) -> None:
        """Write a state, whole or not at all, and remove all but the newest two."""
        start = time.monotonic()
        about = {
            "fingerprint": self.fingerprint,
            "step": str(state.step),
            "history": json.dumps(state.history),
        }
        with whole_file(self.folder / f"{self._run}-{state.step:09d}.safetensors") as partial:
            write_signed(partial, state.arrays, about)
        for old in self._newest_first()[_NUM_KEPT:]:
            old.unlink(missing_ok=True)
        end = time.monotonic()
        self._not_before = end + (end - start) * (1 / _SHARE_OF_TIME - 1)

    def latest(self, shapes: Mapping[str, tuple[int, ...]], steps: int) -> TrainingState | None:
        """Return the newest whole state with arrays of these shapes and at most so many steps, or None."""
        for path in self._newest_first():
            state = self._read(path)
            if state is None or not 0 < state.step <= steps or state.arrays.keys() != shapes.keys():
                continue
            if all(
                array.shape == shapes[name] and array.dtype == np.float32 and np.isfinite(array).all()
                for name, array in state.arrays.items()
            ):
                return state
        return None

    def _newest_first(self) -> list[Path]:
        return sorted(self.folder.glob(f"{self._run}-*.safetensors"), reverse=True)

    def _read(self, path: Path) -> TrainingState | None:
        try:
            arrays, about = read_signed(path, ("fingerprint", "step", "history"))
            if about.get("fingerprint") != self.fingerprint:
                return None
            history = [
                (int(step), float(loss), float(held)) for step, loss, held in json.loads(about["history"])
            ]
            return TrainingState(int(about["step"]), arrays, history)
        except (SafetensorError, OSError, LookupError, ValueError, TypeError, OverflowError, RecursionError):
            return None  # cut off or damaged: an older one will do
