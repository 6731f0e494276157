"""A GPU and its compiler take most of a second to wake up: better while the table is read."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import torch

_started: dict[torch.device, Future[Any]] = {}


def start_device(device: torch.device) -> Future[Any]:
    """The module of fused kernels where it can run, else None, as soon as the device is up.

    The first call for a device starts the work; whoever needs the answer waits for it. What failed, for
    want of memory perhaps, is tried again.
    """
    known = _started.get(device)
    if known is None or (known.done() and known.exception() is not None):
        known = _started[device] = _start(device)
    return known


def _start(device: torch.device) -> Future[Any]:
    if device.type != "cuda":
        never: Future[Any] = Future()
        never.set_result(None)
        return never
    worker = ThreadPoolExecutor(1, thread_name_prefix="seqatt-waking")
    started = worker.submit(_start_cuda, device)
    worker.shutdown(wait=False)
    return started


def _start_cuda(device: torch.device) -> Any:
    torch.zeros(1, device=device)
    try:
        from seqatt.training.triton import fused
    except ImportError:
        return None  # no Triton: plain operations do without it
    with torch.cuda.device(device):
        fused.gate_works(device)
    return fused
