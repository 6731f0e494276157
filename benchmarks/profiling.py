"""Where the time of a run goes: kernels or operations, and the gaps between them."""

from __future__ import annotations

import time
from typing import Any

import torch
from common import wait
from step import OPTIONS, attending_lanes
from torch.profiler import ProfilerActivity, profile

from seqatt.data.tables.table_data import TableData
from seqatt.training.backend.threads import training_threads
from seqatt.training.build import largest_product
from seqatt.training.loader import CHUNK_STEPS

STRETCHES = 20


@torch.no_grad()
def profile_steps(source: TableData, trials: int, device: torch.device) -> dict[str, Any]:
    """Microseconds a step of each kernel (or operation), and the share of time none was running."""
    on_gpu = device.type == "cuda"
    crew = attending_lanes(source, trials, device)[0].crews[0]
    steps = CHUNK_STEPS * STRETCHES
    with training_threads(largest_product(source, OPTIONS), device):
        for _ in range(3):
            crew.advance(CHUNK_STEPS)
        wait()
        started = time.perf_counter()
        for _ in range(STRETCHES):
            crew.advance(CHUNK_STEPS)
        wait()
        seconds = time.perf_counter() - started
        with profile(activities=[ProfilerActivity.CUDA if on_gpu else ProfilerActivity.CPU]) as seen:
            for _ in range(STRETCHES):
                crew.advance(CHUNK_STEPS)
            wait()
    spent: dict[str, tuple[float, int]] = {}
    for event in seen.key_averages():
        micro = event.self_device_time_total if on_gpu else event.self_cpu_time_total
        if micro and not (on_gpu and event.key.startswith(("cuda", "Activity"))):
            spent[event.key[:60]] = (micro / steps, event.count)
    ranked = sorted(spent.items(), key=lambda item: -item[1][0])
    busy = sum(micro for micro, _ in spent.values())
    step = 1e6 * seconds / steps
    return {
        "workload": f"step, T={trials}",
        "microseconds": step,
        "idle_share": max(0.0, 1 - busy / step) if on_gpu else None,
        "parts": [
            {"name": name, "microseconds": micro, "calls": count / steps}
            for name, (micro, count) in ranked[:20]
        ],
    }
