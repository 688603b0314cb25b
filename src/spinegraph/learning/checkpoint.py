"""Checkpoints and the record of training."""

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
        Objective on pairs that training never sees.
    """

    step: int
    loss: float
    held_out_loss: float


_KEPT = 2
_SHARE_OF_TIME = 0.1  # that saving may take: on a slow disk states are saved less often


@dataclass(frozen=True, eq=False)
class TrainingState:
    """All that a run needs to go on.

    Attributes
    ----------
    step : int
        Steps done.
    arrays : dict of float32 arrays
        Matrices and Adam's moments.
    history : list of (step, loss, held-out loss)
    """

    step: int
    arrays: dict[str, NDArray[np.float32]]
    history: list[tuple[int, float, float]]


class Checkpoints:
    """A folder of training states; those of several runs may lie side by side.

    Parameters
    ----------
    folder : Path
        Made if it is not there.
    fingerprint : str
        Of the data and settings; states of another run are passed over, and left alone.
    every : int
        Steps between two states.
    """

    def __init__(self, folder: str | Path, fingerprint: str, every: int = 50) -> None:
        self.folder, self.fingerprint, self.every = Path(folder), fingerprint, every
        self._run = blake2b(fingerprint.encode(), digest_size=4).hexdigest()
        self._not_before = 0.0
        if self.folder.exists() and not self.folder.is_dir():
            raise ParameterError(f"{folder}: is a file; checkpoint names a folder, which is made if need be")
        make_folder(self.folder)
        sweep(self.folder, f"{self._run}-*")

    @classmethod
    def of_fit(cls, folder: str | Path, data: str, config: Config) -> "Checkpoints":
        """Return the states of a fit, known by data and settings but those of the machine."""
        return cls(folder, f"{__version__} {data} {json.dumps(config.deciding(), sort_keys=True)}")

    def apart(self, how: str) -> "Checkpoints":
        """Return the states of the same fit run in another way, so that neither goes on from the other's.

        The folder's path is a full one: another process may work elsewhere.
        """
        return Checkpoints(self.folder.resolve(), f"{self.fingerprint} {how}", self.every)

    def is_due(self, step: int) -> bool:
        """Say whether a state is to be saved after this step."""
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
        for old in self._newest_first()[_KEPT:]:
            old.unlink(missing_ok=True)
        end = time.monotonic()
        self._not_before = end + (end - start) * (1 / _SHARE_OF_TIME - 1)

    def latest(self, shapes: Mapping[str, tuple[int, ...]], steps: int) -> TrainingState | None:
        """Return the newest whole state of this run, or None.

        Parameters
        ----------
        shapes : dict of shapes
            Arrays that a state of this run has.
        steps : int
            Most steps that it may have done.
        """
        for path in self._newest_first():
            state = self._read(path)
            if state is not None and 0 < state.step <= steps and _fits(state.arrays, shapes):
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
            return None  # cut off, damaged or made up: an older one will do


def _fits(arrays: Mapping[str, NDArray[np.float32]], shapes: Mapping[str, tuple[int, ...]]) -> bool:
    return arrays.keys() == shapes.keys() and all(
        array.shape == shapes[name] and array.dtype == np.float32 and bool(np.isfinite(array).all())
        for name, array in arrays.items()
    )
