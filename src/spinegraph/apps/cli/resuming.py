"""Checkpoints from the command's side: what is asked for, and how an interrupted run goes on."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from spinegraph.errors import ParameterError

CheckpointFolder = Annotated[
    Path | None, typer.Option(metavar="DIR", help="Save the state of training here, to go on after a stop.")
]
Resume = Annotated[bool, typer.Option("--resume", help="Go on from the newest state in that folder.")]


def require_checkpoint(checkpoint: Path | None, resume: bool) -> None:
    """Refuse --resume without a folder, and a folder with states of training without --resume.

    Examples
    --------
    >>> require_checkpoint(Path("not there yet"), resume=False)
    """
    if resume and checkpoint is None:
        raise typer.BadParameter("needs --checkpoint DIR, the folder to go on from", param_hint="--resume")
    if checkpoint is not None and not resume and _has_state(checkpoint):
        raise ParameterError(
            f"{checkpoint}: holds states of training; add --resume to go on, or name another folder"
        )


@contextmanager
def interruptible(checkpoint: Path | None) -> Iterator[None]:
    """Let an interrupt say how the run can go on."""
    try:
        yield
    except KeyboardInterrupt:
        raise KeyboardInterrupt(_way_on(checkpoint)) from None


def _way_on(checkpoint: Path | None) -> str:
    if checkpoint is None:
        return "nothing was written; with --checkpoint DIR a stopped run can go on"
    if not _has_state(checkpoint):
        return (
            f"nothing was written, no state of training is in {checkpoint} yet; the same command begins anew"
        )
    return f"the state of training is in {checkpoint}; run the same command with --resume to go on"


def _has_state(checkpoint: Path) -> bool:
    return any(checkpoint.glob("*.safetensors"))
