"""The fused GPU kernels, loaded in the background.

Starting CUDA and Triton takes most of a second, so it happens while the table is read.
"""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import torch

_started: dict[torch.device, Future[Any]] = {}


def start_device(device: torch.device) -> Future[Any]:
    """A future of the module of fused kernels, or of None where these cannot run.

    The first call for a device starts the work, and later calls return the same future. A start that failed,
    for example for lack of memory, is tried again by the next call.
    """
    future = _started.get(device)
    if future is None or (future.done() and future.exception() is not None):
        future = _started[device] = _start(device)
    return future


def _start(device: torch.device) -> Future[Any]:
    if device.type != "cuda":
        no_kernels: Future[Any] = Future()
        no_kernels.set_result(None)
        return no_kernels
    executor = ThreadPoolExecutor(2, thread_name_prefix="seqatt-start-device")
    kernels = executor.submit(_import_kernels)
    future = executor.submit(_start_cuda, device, kernels)
    executor.shutdown(wait=False)
    return future


def _start_cuda(device: torch.device, kernels: Future[Any]) -> Any:
    """Start CUDA, which takes as long as the import of the kernels, and try them."""
    # The first product and the first sort of a type load their libraries.
    for dtype in (torch.float32, torch.float64):
        square = torch.ones(1, 8, 8, dtype=dtype, device=device)
        torch.bmm(square, square).sort()
    fused = kernels.result()
    if fused is not None:
        with torch.cuda.device(device):
            fused.gate_works(device)
    return fused


def _import_kernels() -> Any:
    """The module of fused kernels; None where Triton is not installed, and models use plain operations."""
    try:
        from seqatt.training.triton import fused
    except ImportError:
        return None
    # Triton finds kernels on disk by a hash of its own files, which takes half a second.
    with suppress(ImportError):
        from triton.runtime.cache import triton_key

        triton_key()
    return fused
