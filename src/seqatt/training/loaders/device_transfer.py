"""Copies batches from the host to the device without waiting.

For a GPU they pass through reused pinned memory on a separate CUDA stream, so that a batch is copied while the
previous one is computed on. They end up in the same device memory every time, as CUDA graphs require.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from seqatt.data.files.encoding.rows import EncodedRows

SLOTS = 4  # batches in flight


class DeviceBatch(NamedTuple):
    """``EncodedRows`` on the device, with codes and classes as 32-bit integers."""

    numbers: Tensor
    codes: Tensor
    target: Tensor
    weights: Tensor


class DeviceTransfer:
    """Copies batches to a device.

    On a GPU, batches of ``fixed_size`` rows (those of the first batch) always arrive in the same memory.
    """

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._fixed: _FixedSizeTransfer | None = None

    @property
    def fixed_size(self) -> int | None:
        return None if self._fixed is None else self._fixed.size

    def transfer(self, rows: EncodedRows) -> DeviceBatch:
        if self._device.type == "cuda" and rows.count and self._fixed is None:
            self._fixed = _FixedSizeTransfer(rows, self._device)
        if self._fixed is None or rows.count != self._fixed.size:
            return DeviceBatch(*(torch.from_numpy(v).to(self._device) for v in _values(rows)))
        return self._fixed.transfer(rows)


class _TransferSlot:
    """Buffers for one batch on the host and on the device, and the events after which each can be reused."""

    def __init__(self, words: int, device: torch.device) -> None:
        self.host = torch.empty(words, dtype=torch.int32, pin_memory=True)
        self.device = torch.empty(words, dtype=torch.int32, device=device)
        self.copied = torch.cuda.Event()  # type: ignore[no-untyped-call]
        self.consumed = torch.cuda.Event()  # type: ignore[no-untyped-call]


class _FixedSizeTransfer:
    """Copies batches of one size, all four arrays in one message: one copy costs no more than a small one."""

    def __init__(self, like: EncodedRows, device: torch.device) -> None:
        self.size = like.count
        values = _values(like)
        words = sum(v.size for v in values)
        self._slots = [_TransferSlot(words, device) for _ in range(SLOTS)]
        self._next = 0
        self._stream = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]
        self._destination = torch.empty(words, dtype=torch.int32, device=device)
        # The current stream may still use what was in this memory before.
        self._stream.wait_stream(torch.cuda.current_stream())
        parts = torch.split(self._destination, [v.size for v in values])
        self._batch = DeviceBatch(
            *(p.view(torch.from_numpy(v).dtype).view(v.shape) for p, v in zip(parts, values, strict=True))
        )

    def transfer(self, rows: EncodedRows) -> DeviceBatch:
        slot = self._slots[self._next]
        self._next = (self._next + 1) % SLOTS
        slot.copied.synchronize()
        host, start = slot.host.numpy(), 0
        for values in _values(rows):
            host[start : start + values.size] = values.reshape(-1).view(np.int32)
            start += values.size
        with torch.cuda.stream(self._stream):
            self._stream.wait_event(slot.consumed)
            slot.device.copy_(slot.host, non_blocking=True)
            slot.copied.record()
        torch.cuda.current_stream().wait_event(slot.copied)
        self._destination.copy_(slot.device, non_blocking=True)
        slot.consumed.record()
        return self._batch


def _values(rows: EncodedRows) -> tuple[NDArray[Any], ...]:
    """The four arrays, each with 32 bits per value."""
    target = rows.target if rows.target.dtype == np.float32 else rows.target.astype(np.int32)
    arrays = rows.numbers, rows.codes, target, rows.weights
    return tuple(np.ascontiguousarray(values) for values in arrays)
