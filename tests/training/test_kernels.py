"""Loading the GPU kernels in the background."""

import pytest
import torch

from seqatt.training import kernels
from seqatt.training.kernels import start_device


def test_a_failed_start_is_tried_again_and_a_successful_one_is_not(monkeypatch):
    device, calls = torch.device("cuda", 7), []

    def start_cuda(_device, _kernels):
        calls.append(1)
        if len(calls) == 1:
            raise RuntimeError("out of memory")
        return "kernels"

    monkeypatch.setattr(kernels, "_start_cuda", start_cuda)
    monkeypatch.setattr(kernels, "_started", {})
    with pytest.raises(RuntimeError, match="out of memory"):
        start_device(device).result()
    assert start_device(device).result() == "kernels"
    assert start_device(device).result() == "kernels"
    assert len(calls) == 2


def test_a_cpu_has_no_kernels():
    assert start_device(torch.device("cpu")).result() is None
