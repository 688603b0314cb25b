"""Where Torch computes."""

import torch

from spinegraph.errors import ParameterError


def usable_device(name: str) -> torch.device:
    """Return the Torch device of this name, or say why it cannot be used.

    Examples
    --------
    >>> usable_device("cpu")
    device(type='cpu')
    """
    try:
        device = torch.device(name)
        torch.zeros(1, device=device)
    except (RuntimeError, AssertionError, NotImplementedError) as fault:
        reason = str(fault).split("\n")[0][:200]
        raise ParameterError(f"device {name!r} cannot be used here: {reason}; use device='cpu'") from fault
    return device
