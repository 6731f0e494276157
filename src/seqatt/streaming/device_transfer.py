"""From rows on the host to tensors on the device, without waiting.

An accelerator's rows come through pinned memory that is used again and again, on a stream of their own, so
that they arrive while it still works on others. They end up in the same place every time, which is where a
recorded step looks for them.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from seqatt.data.files.rows import EncodedRows

SLOTS = 4  # batches under way


class DeviceBatch(NamedTuple):
    """A batch on the device: what ``EncodedRows`` holds, with places and classes as whole numbers of 32 bits."""

    numbers: Tensor
    places: Tensor
    target: Tensor
    weights: Tensor


class DeviceTransfer:
    """``recorded`` is the size of batch that always arrives in one place: the first one."""

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._lane: _FixedSizeTransfer | None = None

    @property
    def recorded(self) -> int | None:
        return None if self._lane is None else self._lane.size

    def bring(self, rows: EncodedRows) -> DeviceBatch:
        if self._device.type == "cuda" and rows.count and self._lane is None:
            self._lane = _FixedSizeTransfer(rows, self._device)
        if self._lane is None or rows.count != self._lane.size:
            return DeviceBatch(*(torch.from_numpy(v).to(self._device) for v in _values(rows)))
        return self._lane.bring(rows)


class _TransferSlot:
    """Room for a batch on the host and on the device, and when each may be written again."""

    def __init__(self, words: int, device: torch.device) -> None:
        self.host = torch.empty(words, dtype=torch.int32, pin_memory=True)
        self.device = torch.empty(words, dtype=torch.int32, device=device)
        self.left = torch.cuda.Event()  # type: ignore[no-untyped-call]
        self.used = torch.cuda.Event()  # type: ignore[no-untyped-call]


class _FixedSizeTransfer:
    """Batches of one size, each in one piece: a single copy costs what four small ones cost each."""

    def __init__(self, like: EncodedRows, device: torch.device) -> None:
        self.size = like.count
        values = _values(like)
        words = sum(v.size for v in values)
        self._slots = [_TransferSlot(words, device) for _ in range(SLOTS)]
        self._next = 0
        self._stream = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]
        self._place = torch.empty(words, dtype=torch.int32, device=device)
        self._stream.wait_stream(torch.cuda.current_stream())  # who may still use what this memory was before
        parts = torch.split(self._place, [v.size for v in values])
        self._arrived = DeviceBatch(
            *(p.view(torch.from_numpy(v).dtype).view(v.shape) for p, v in zip(parts, values, strict=True))
        )

    def bring(self, rows: EncodedRows) -> DeviceBatch:
        slot = self._slots[self._next]
        self._next = (self._next + 1) % SLOTS
        slot.left.synchronize()
        host, start = slot.host.numpy(), 0
        for values in _values(rows):
            host[start : start + values.size] = values.reshape(-1).view(np.int32)
            start += values.size
        with torch.cuda.stream(self._stream):
            self._stream.wait_event(slot.used)
            slot.device.copy_(slot.host, non_blocking=True)
            slot.left.record()
        here = torch.cuda.current_stream()
        here.wait_event(slot.left)
        self._place.copy_(slot.device, non_blocking=True)
        slot.used.record()
        return self._arrived


def _values(rows: EncodedRows) -> tuple[NDArray[Any], ...]:
    """All four, a word of 32 bits for each number."""
    target = rows.target if rows.target.dtype == np.float32 else rows.target.astype(np.int32)
    every = rows.numbers, rows.places, target, rows.weights
    return tuple(np.ascontiguousarray(values) for values in every)
