"""CUDA kernels, compiled when they are first asked for by the compiler that comes with Torch."""

import logging
from functools import cache
from importlib.resources import files
from typing import Any

import torch

logger = logging.getLogger(__name__)


@cache
def kernel(file: str, name: str, index: int, *definitions: str) -> Any:
    """Return a kernel for the CUDA device of that index, or None where Torch cannot compile one.

    Parameters
    ----------
    file, name : str
        Source in this folder, and the kernel's name in it.
    definitions : str
        Macros to define.
    """
    source = files("spinegraph.gpu").joinpath(file).read_text()
    lines = [*(f"#define {definition}" for definition in definitions), source]
    try:
        with torch.cuda.device(index):
            return torch.cuda._compile_kernel("\n".join(lines), name)
    except (AttributeError, OSError, RuntimeError) as fault:
        logger.warning("%s: no compiled kernel, Torch's operations instead: %s", name, fault)
        return None
