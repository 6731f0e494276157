"""Profile of training steps: microseconds per kernel (GPU) or operation (CPU), and the idle share."""

from __future__ import annotations

import time
from typing import Any

import torch
from step import BATCH, OPTIONS, attending_groups
from timing import synchronize
from torch.profiler import ProfilerActivity, profile

from seqatt.data.tables.table_data import TableData
from seqatt.training.backend.threads import training_threads
from seqatt.training.loaders.in_memory import CHUNK_STEPS
from seqatt.training.model_factory import largest_product

CHUNKS = 20  # chunks of CHUNK_STEPS steps per measurement


@torch.no_grad()
def profile_steps(data: TableData, trials: int, device: torch.device) -> dict[str, Any]:
    """Microseconds per step of each kernel (or operation), and on a GPU the share of time without a kernel."""
    on_gpu = device.type == "cuda"
    trainer = attending_groups(data, trials, device)[0].trainers[0]
    steps = CHUNK_STEPS * CHUNKS
    with training_threads(largest_product(data, OPTIONS, BATCH), device):
        for _ in range(3):
            trainer.train_chunk(CHUNK_STEPS)
        synchronize()
        started = time.perf_counter()
        for _ in range(CHUNKS):
            trainer.train_chunk(CHUNK_STEPS)
        synchronize()
        seconds = time.perf_counter() - started
        with profile(activities=[ProfilerActivity.CUDA if on_gpu else ProfilerActivity.CPU]) as profiled:
            for _ in range(CHUNKS):
                trainer.train_chunk(CHUNK_STEPS)
            synchronize()
    spent: dict[str, tuple[float, int]] = {}
    for event in profiled.key_averages():
        microseconds = event.self_device_time_total if on_gpu else event.self_cpu_time_total
        if microseconds and not (on_gpu and event.key.startswith(("cuda", "Activity"))):
            spent[event.key[:60]] = (microseconds / steps, event.count)
    ranked = sorted(spent.items(), key=lambda item: -item[1][0])
    busy = sum(microseconds for microseconds, _ in spent.values())
    step = 1e6 * seconds / steps
    return {
        "workload": f"step, T={trials}",
        "microseconds": step,
        "idle_share": max(0.0, 1 - busy / step) if on_gpu else None,
        "parts": [
            {"name": name, "microseconds": microseconds, "calls": count / steps}
            for name, (microseconds, count) in ranked[:20]
        ],
    }
