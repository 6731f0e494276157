"""A training step at MNIST's shape, against the matrix products that it cannot avoid.

256 rows, 784 features, 67 hidden units, 10 classes. Steps and bare products alternate in one run, each on
rows of a table larger than the caches. On a CPU the bare products are those of ``x @ W.T`` on contiguous
rows; on a GPU they are replayed from a CUDA graph, as the steps are.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from timing import Work, in_turns, median_ratio

from seqatt.algorithms.neural.attention_options import AttentionOptions
from seqatt.algorithms.neural.sequential_attention import make_attention_gate
from seqatt.data.tables.table_data import TableData, read_table_data
from seqatt.training.backend.threads import training_threads
from seqatt.training.ensemble import Member
from seqatt.training.gates.attention import AttentionGate
from seqatt.training.gates.masks import SoftmaxMask
from seqatt.training.group_factory import TrainingSetup, make_trial_groups
from seqatt.training.loaders.in_memory import CHUNK_STEPS
from seqatt.training.loop import TrialGroup
from seqatt.training.model_factory import largest_product
from seqatt.training.models.model import Model
from seqatt.training.schedule import Phase

ROWS, BATCH, FEATURES, HIDDEN, CLASSES = 20_000, 256, 784, 67, 10
OPTIONS = AttentionOptions(batch_size=BATCH, hidden=(HIDDEN,))
SETUP = TrainingSetup(BATCH, steps=1_000, weight_decay=1e-4)


def make_table() -> TableData:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(ROWS, FEATURES)).astype(np.float32)
    return read_table_data(X, rng.integers(CLASSES, size=ROWS), task="multiclass")


def attending_groups(data: TableData, trials: int, device: torch.device) -> list[TrialGroup]:
    """Trial groups that have started a phase with attention."""

    def make_gate(model: Model, members: Sequence[Member]) -> AttentionGate:
        return make_attention_gate(len(members), data.features, SoftmaxMask(), 3e-3, device)

    groups = list(make_trial_groups(data, range(trials), OPTIONS, device, SETUP, make_gate))
    for group in groups:
        group.start_phase(Phase(CHUNK_STEPS, take=1))
    return groups


def bare_products(trials: int, device: torch.device) -> Work:
    """One chunk of steps of bare products: both layers forward, their weight gradients, the hidden gradient."""
    rows = torch.randn(ROWS, FEATURES, device=device)
    first, second = (torch.randn(trials, *s, device=device) for s in ((HIDDEN, FEATURES), (CLASSES, HIDDEN)))
    hidden, out = (torch.randn(trials, BATCH, width, device=device) for width in (HIDDEN, CLASSES))
    sizes = (BATCH, HIDDEN), (BATCH, CLASSES), (CLASSES, HIDDEN)
    buffers = [torch.empty(trials, *size, device=device) for size in sizes]
    hidden_grad = torch.empty(trials, BATCH, HIDDEN, device=device)
    first_grad = torch.empty(trials, HIDDEN, FEATURES, device=device)

    def products_of_trial(t: int, x: torch.Tensor) -> None:
        torch.mm(x, first[t].T, out=buffers[0][t])
        torch.mm(hidden[t], second[t].T, out=buffers[1][t])
        torch.mm(out[t].T, hidden[t], out=buffers[2][t])
        torch.mm(out[t], second[t], out=hidden_grad[t])
        torch.mm(hidden[t].T, x, out=first_grad[t])

    def products_of_all(x: torch.Tensor) -> None:
        torch.bmm(x, first.mT, out=buffers[0])
        torch.bmm(hidden, second.mT, out=buffers[1])
        torch.bmm(out.mT, hidden, out=buffers[2])
        torch.bmm(out, second, out=hidden_grad)
        torch.bmm(hidden.mT, x, out=first_grad)

    def run() -> None:
        for i in range(CHUNK_STEPS):
            if device.type == "cpu":
                for t in range(trials):
                    start = (i * trials + t) * BATCH % (ROWS - BATCH)
                    products_of_trial(t, rows[start : start + BATCH])
            else:
                start = i * trials * BATCH % (ROWS - trials * BATCH)
                x = rows[start : start + trials * BATCH].view(trials, BATCH, FEATURES)
                products_of_all(x)

    if device.type != "cuda":
        return run
    run()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        run()

    def replay() -> None:
        graph.replay()

    replay.memory = run  # type: ignore[attr-defined]  # keeps the graph's tensors alive
    return replay


@torch.no_grad()
def measure(data: TableData, trials: int, device: torch.device, rounds: int = 15) -> dict[str, Any]:
    groups = attending_groups(data, trials, device)

    def train_chunk() -> None:
        for group in groups:
            group.trainers[0].train_chunk(CHUNK_STEPS)

    with training_threads(largest_product(data, OPTIONS, BATCH), device):
        steps, products = in_turns([train_chunk, bare_products(trials, device)], rounds, repeats=1)
    return {
        "workload": f"step, T={trials}",
        "milliseconds": 1e3 * statistics.median(steps) / CHUNK_STEPS,
        "floor": "bare matrix products",
        "floor_milliseconds": 1e3 * statistics.median(products) / CHUNK_STEPS,
        "ratio": median_ratio(steps, products),
    }


def measure_steps(device: torch.device, rounds: int = 15) -> list[dict[str, Any]]:
    data = make_table()
    trials = (1, 5) if device.type == "cpu" else (1, 5, 50)
    return [measure(data, count, device, rounds) for count in trials]


if __name__ == "__main__":
    for row in measure_steps(torch.device("cuda" if torch.cuda.is_available() else "cpu")):
        print(row)
