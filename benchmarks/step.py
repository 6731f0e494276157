"""A training step at MNIST's shape, against the matrix products it cannot avoid.

256 rows, 784 features, 67 hidden units, 10 classes. Steps and bare products take turns in one run, each on
rows of a table larger than the caches. On a CPU the bare products are those of ``x @ W.T`` on rows as they
lie; on a GPU they are replayed from a graph, as the steps are.
"""

from __future__ import annotations

import statistics
from typing import Any

import numpy as np
import torch
from common import Work, in_turns, ratio

from seqatt.data.tables.table_data import TableData, read_table_data
from seqatt.training.backend.threads import training_threads
from seqatt.training.build import largest_product, make_attention, make_trial_groups
from seqatt.training.loader import CHUNK_STEPS
from seqatt.training.loop import TrialGroup
from seqatt.training.masks import SoftmaxMask
from seqatt.training.options import AttentionOptions
from seqatt.training.schedule import Phase

ROWS, BATCH, FEATURES, HIDDEN, CLASSES = 20_000, 256, 784, 67, 10
OPTIONS = AttentionOptions(batch_size=BATCH, hidden=(HIDDEN,))


def table() -> TableData:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(ROWS, FEATURES)).astype(np.float32)
    return read_table_data(X, rng.integers(CLASSES, size=ROWS), task="multiclass")


def attending_lanes(source: TableData, trials: int, device: torch.device) -> list[TrialGroup]:
    def make_gate(body: Any, members: Any) -> Any:
        return make_attention(len(members), source.features, SoftmaxMask(), 3e-3, device)

    lanes = make_trial_groups(source, range(trials), OPTIONS, device, make_gate, decay=1e-4)
    for lane in lanes:
        lane.enter(Phase(CHUNK_STEPS, take=1))
    return lanes


def bare_products(trials: int, device: torch.device) -> Work:
    """Forward and weight gradients of both layers, and the gradient of the hidden layer; a stretch."""
    rows = torch.randn(ROWS, FEATURES, device=device)
    first, second = (torch.randn(trials, *s, device=device) for s in ((HIDDEN, FEATURES), (CLASSES, HIDDEN)))
    hidden, out = (torch.randn(trials, BATCH, width, device=device) for width in (HIDDEN, CLASSES))
    sizes = (BATCH, HIDDEN), (BATCH, CLASSES), (CLASSES, HIDDEN)
    rooms = [torch.empty(trials, *size, device=device) for size in sizes]
    back = torch.empty(trials, BATCH, HIDDEN, device=device)
    outer = torch.empty(trials, HIDDEN, FEATURES, device=device)

    def products_alone(t: int, x: torch.Tensor) -> None:
        torch.mm(x, first[t].T, out=rooms[0][t])
        torch.mm(hidden[t], second[t].T, out=rooms[1][t])
        torch.mm(out[t].T, hidden[t], out=rooms[2][t])
        torch.mm(out[t], second[t], out=back[t])
        torch.mm(hidden[t].T, x, out=outer[t])

    def products(x: torch.Tensor) -> None:
        torch.bmm(x, first.mT, out=rooms[0])
        torch.bmm(hidden, second.mT, out=rooms[1])
        torch.bmm(out.mT, hidden, out=rooms[2])
        torch.bmm(out, second, out=back)
        torch.bmm(hidden.mT, x, out=outer)

    def run() -> None:
        for i in range(CHUNK_STEPS):
            if device.type == "cpu":
                for t in range(trials):
                    start = (i * trials + t) * BATCH % (ROWS - BATCH)
                    products_alone(t, rows[start : start + BATCH])
            else:
                start = i * trials * BATCH % (ROWS - trials * BATCH)
                x = rows[start : start + trials * BATCH].view(trials, BATCH, FEATURES)
                products(x)

    if device.type != "cuda":
        return run
    run()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        run()

    def replay() -> None:
        graph.replay()

    replay.memory = run  # type: ignore[attr-defined]  # what the graph works on lives as long as it does
    return replay


@torch.no_grad()
def measure(source: TableData, trials: int, device: torch.device, rounds: int = 15) -> dict[str, Any]:
    lanes = attending_lanes(source, trials, device)

    def chunk_steps() -> None:
        for lane in lanes:
            lane.crews[0].advance(CHUNK_STEPS)

    with training_threads(largest_product(source, OPTIONS), device):
        steps, products = in_turns([chunk_steps, bare_products(trials, device)], rounds, repeats=1)
    return {
        "workload": f"step, T={trials}",
        "milliseconds": 1e3 * statistics.median(steps) / CHUNK_STEPS,
        "floor": "bare matrix products",
        "floor_milliseconds": 1e3 * statistics.median(products) / CHUNK_STEPS,
        "ratio": ratio(steps, products),
    }


def all_steps(device: torch.device, rounds: int = 15) -> list[dict[str, Any]]:
    source = table()
    trials = (1, 5) if device.type == "cpu" else (1, 5, 50)
    return [measure(source, count, device, rounds) for count in trials]


if __name__ == "__main__":
    for row in all_steps(torch.device("cuda" if torch.cuda.is_available() else "cpu")):
        print(row)
