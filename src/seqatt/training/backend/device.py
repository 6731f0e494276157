"""The device to train on."""

from __future__ import annotations

import torch


def resolve_device(device: str | torch.device) -> torch.device:
    """A device that can be used; ``"auto"`` is CUDA where there is one, else the CPU."""
    if device == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        resolved = torch.device(device)
        torch.empty(1, device=resolved)
    except Exception as error:
        raise ValueError(
            f"device: {device!r} cannot be used here ({str(error).splitlines()[0]}); "
            "use 'auto', 'cpu' or 'cuda'"
        ) from None
    return resolved
