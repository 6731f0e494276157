"""Methods whose training step is their own (LassoNet, the concrete autoencoder).

They share the loader, the losses, the optimizer and the graph recorder with the training loop.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import zip_longest

import torch

from seqatt.algorithms.registry import Plan, register
from seqatt.algorithms.request import SelectionRequest
from seqatt.data.tables.table_data import TableData
from seqatt.progress import Advance
from seqatt.trace import Trace
from seqatt.training.backend.threads import run_concurrently, training_threads
from seqatt.training.defaults import resolve_batch_size, resolve_steps
from seqatt.training.ensemble import NOISE, ORDER, Member
from seqatt.training.loaders.batch import DeviceTable
from seqatt.training.loaders.in_memory import InMemoryLoader, MemberData
from seqatt.training.loop import Diverged, NonFiniteLoss
from seqatt.training.options import NetworkOptions


class CustomTrainer(ABC):
    """Trials that train in one step."""

    @abstractmethod
    def __init__(
        self,
        data: TableData,
        table: DeviceTable,
        k: int,
        batch_size: int,
        steps: int,
        seeds: Sequence[int],
        options: NetworkOptions,
        device: torch.device,
    ) -> None: ...

    @abstractmethod
    def train(self) -> Iterator[int]:
        """Train; yields the number of steps of each chunk."""

    @abstractmethod
    def traces(self) -> list[Trace]:
        """One trace per trial."""

    @abstractmethod
    def is_thread_invariant(self) -> bool:
        """Whether the results do not depend on the number of threads."""


def register_custom(name: str, trainer: type[CustomTrainer]) -> None:
    """Register a method by its trainer class."""
    select = partial(select_custom, trainer=trainer)
    register(name, plan=make_plan)(select)


def make_plan(request: SelectionRequest) -> Plan:
    """One model per trial, which trains on all rows, with as many steps as every other method."""
    rows, options = request.table.rows, request.options
    batch_size = resolve_batch_size(rows, options.batch_size)
    steps = resolve_steps(rows, batch_size, options.epochs, request.k)
    resolved = {"batch_size": batch_size, "steps": steps, "epochs": steps * batch_size / rows}
    return Plan(options.to_settings() | resolved, steps)


def select_custom(
    request: SelectionRequest, plan: Plan, advance: Advance, *, trainer: type[CustomTrainer]
) -> list[Trace]:
    """Train all trials together on a GPU. On a CPU each trial trains alone, on one thread.

    The products are small, and threads that wait for each other would cost more than they save.
    """
    data, device, batch_size = request.table, request.device, plan.settings["batch_size"]
    table = DeviceTable.of_data(data, device)
    groups = [[seed] for seed in request.seeds] if device.type == "cpu" else [request.seeds]
    with training_threads(0, device) as threads, torch.no_grad():
        trainers = [
            trainer(data, table, request.k, batch_size, plan.steps, seeds, request.options, device)
            for seeds in groups
        ]
        workers = min(len(trainers), threads) if all(t.is_thread_invariant() for t in trainers) else 1
        try:
            if workers > 1:
                run_concurrently([t.train() for t in trainers], workers, advance)
            else:
                for steps in zip_longest(*(t.train() for t in trainers)):
                    advance(steps[0] or 0)
        except NonFiniteLoss:
            # A training that did not finish has selected nothing.
            rankings = [trace.order + trace.rest for t in trainers for trace in t.traces()]
            raise Diverged([Trace([], ranking) for ranking in rankings]) from None
        return [trace for t in trainers for trace in t.traces()]


def make_loader(table: DeviceTable, batch_size: int, seeds: Sequence[int]) -> InMemoryLoader:
    """Batches for one model per trial, which trains on all rows."""
    members = [Member(seed, 0) for seed in seeds]
    member_data = [MemberData(member.generator(ORDER), member.generator(NOISE)) for member in members]
    return InMemoryLoader(table, batch_size, member_data)
