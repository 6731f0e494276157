"""Training on files that are read batch by batch: on any number of threads, and on a GPU."""

from __future__ import annotations

import pytest
import torch

import seqatt
from seqatt.datasets.synthetic import click_log

OPTIONS = {
    "target": "click",
    "k": 2,
    "hidden": (64, 32),
    "log1p": True,
    "schema_rows": 2_000,
    "memory": 0,
    "epochs": 1,
}


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    return click_log(tmp_path_factory.mktemp("clicks"), 12_000, rows_per_file=6_000).files


@pytest.mark.parametrize("ensemble", [1, 2])
def test_the_number_of_threads_does_not_change_the_result(files, ensemble):
    def trained(threads: int) -> seqatt.Selection:
        before = torch.get_num_threads()
        torch.set_num_threads(threads)
        try:
            return seqatt.select(files, batch_size=1_024, ensemble=ensemble, device="cpu", **OPTIONS)
        finally:
            torch.set_num_threads(before)

    one, three = trained(1), trained(3)
    assert one.scores.tolist() == three.scores.tolist()
    assert [entry["loss"] for entry in one.history] == [entry["loss"] for entry in three.history]


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_a_gpu_replays_the_steps_of_a_cpu(files):
    options = OPTIONS | {"batch_size": 512, "ensemble": 1, "input_dropout": 0.0}  # the last batch is smaller
    on_cpu, on_gpu = (seqatt.select(files, device=device, **options) for device in ("cpu", "cuda"))
    assert on_cpu.features[0] == on_gpu.features[0]  # later ones may depend on rounding
    for one, other in zip(on_cpu.history[:2], on_gpu.history[:2], strict=True):
        assert other["loss"] == pytest.approx(one["loss"], rel=2e-3)
