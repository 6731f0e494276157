"""The device to train on."""

from __future__ import annotations

import torch

REMEDY = "use 'auto', 'cpu', 'cuda' or 'cuda:N'"


def resolve_device(device: str | torch.device) -> torch.device:
    """A device that can be used; ``"auto"`` is CUDA where there is one, else the CPU."""
    if device == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    if device == "gpu":
        raise ValueError(
            "device: 'gpu' is not a name that PyTorch knows; use 'cuda', or 'auto' for any machine"
        )
    if not isinstance(device, str | torch.device):
        raise TypeError(f"device: must be a name such as 'cuda', got {device!r}; {REMEDY}")
    kind, _, number = str(device).partition(":")
    if kind not in ("cpu", "cuda") or (number and not number.isdecimal()):
        raise ValueError(f"device: {str(device)!r} is not supported; {REMEDY}")
    if kind == "cuda":
        _check_cuda(str(device), int(number or 0))
    return torch.device(device)


def _check_cuda(device: str, number: int) -> None:
    """Raise unless a tensor can be made on this GPU, with the reason in one line."""
    without = "use 'cpu', or 'auto' for any machine"
    if not torch.backends.cuda.is_built():  # type: ignore[no-untyped-call]
        raise ValueError(
            f"device: {device!r} needs a PyTorch that is built with CUDA, and this one is not; {without}"
        )
    if not torch.cuda.is_available():
        raise ValueError(f"device: {device!r} needs a GPU and its driver, and PyTorch finds none; {without}")
    count = torch.cuda.device_count()
    if number >= count:
        raise ValueError(
            f"device: {device!r} does not exist; the machine has {count} GPU(s), numbered from 0"
        )
    try:
        torch.empty(1, device=device)
    except RuntimeError as error:
        raise ValueError(
            f"device: {device!r} cannot be used here ({str(error).splitlines()[0]}); {without}"
        ) from None
