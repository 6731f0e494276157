"""A device that failed to wake up is tried again."""

import pytest
import torch

from seqatt.training.backend import device as room


def test_a_failure_is_not_remembered(monkeypatch):
    device, tries = torch.device("cuda", 7), []

    def wake(_device):
        tries.append(1)
        if len(tries) == 1:
            raise RuntimeError("out of memory")
        return "kernels"

    monkeypatch.setattr(room, "_wake", wake)
    monkeypatch.setattr(room, "_started", {})
    with pytest.raises(RuntimeError, match="out of memory"):
        room.start_device(device).result()
    assert room.start_device(device).result() == "kernels"
    assert room.start_device(device).result() == "kernels"
    assert len(tries) == 2


def test_a_cpu_needs_no_waking():
    assert room.start_device(torch.device("cpu")).result() is None
