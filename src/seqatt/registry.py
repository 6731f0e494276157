"""METHODS: every way to choose features, by name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from seqatt.classic.random import random_features
from seqatt.linear.methods import LinearAttentionOptions, choose_linearly
from seqatt.neural import rival
from seqatt.neural.attention import plan, sequential_attention, settings
from seqatt.neural.engine import Diverged
from seqatt.neural.options import (
    AttentionOptions,
    BatchAttentionOptions,
    PenaltyOptions,
    StochasticGatesOptions,
    Training,
)
from seqatt.neural.rivals import RIVALS
from seqatt.progress import progress_bar
from seqatt.selection import Trace
from seqatt.source import Source


@dataclass(frozen=True)
class NoOptions:
    """A method with nothing to set."""


@dataclass(frozen=True)
class Job:
    """All a method needs to know."""

    source: Source
    k: int
    seeds: list[int]
    options: Any
    device: torch.device
    progress: bool
    about_table: dict[str, Any]


@dataclass(frozen=True)
class Method:
    """What a method can be told, and the function that runs it: traces and resolved settings."""

    options: type
    run: Callable[[Job], tuple[list[Trace], dict[str, Any]]]


def _run_attention(job: Job) -> tuple[list[Trace], dict[str, Any]]:
    schedule = plan(job.source, job.k, job.options)
    resolved = settings(job.source, job.k, job.options, schedule)
    steps = sum(phase.steps for phase in schedule)
    with progress_bar("Sequential Attention", steps, shown=job.progress) as advance:
        try:
            traces = sequential_attention(
                job.source, job.k, job.seeds, job.options, job.device, schedule, advance
            )
        except Diverged as error:
            error.settings = resolved
            raise
    return traces, resolved


def _run_rival(name: str) -> Callable[[Job], tuple[list[Trace], dict[str, Any]]]:
    its = RIVALS[name]

    def run(job: Job) -> tuple[list[Trace], dict[str, Any]]:
        plan = rival.plan(its, job.source, job.k, job.options)
        resolved = rival.settings(job.source, job.options, plan)
        steps = sum(phase.steps for phase in plan.schedule)
        with progress_bar(its.title, steps, shown=job.progress) as advance:
            try:
                traces = rival.choose(its, job.source, job.seeds, job.options, job.device, plan, advance)
            except Diverged as error:
                error.settings = resolved
                raise
        return traces, resolved

    return run


def _run_random(job: Job) -> tuple[list[Trace], dict[str, Any]]:
    traces = [random_features(job.source, seed) for seed in job.seeds]
    return [Trace(t.order[: job.k], t.order[job.k :]) for t in traces], {}


def _run_linear(name: str) -> Callable[[Job], tuple[list[Trace], dict[str, Any]]]:
    def run(job: Job) -> tuple[list[Trace], dict[str, Any]]:
        trace, found = choose_linearly(job.source, job.k, name, job.options)
        return [trace] * len(job.seeds), found  # nothing is drawn: one answer for all seeds

    return run


METHODS = {
    "sequential_attention": Method(AttentionOptions, _run_attention),
    "sequential_lasso": Method(PenaltyOptions, _run_rival("sequential_lasso")),
    "group_lasso": Method(PenaltyOptions, _run_rival("group_lasso")),
    "omp": Method(Training, _run_rival("omp")),
    "batch_attention": Method(BatchAttentionOptions, _run_rival("batch_attention")),
    "stochastic_gates": Method(StochasticGatesOptions, _run_rival("stochastic_gates")),
    "first_layer": Method(Training, _run_rival("first_layer")),
    "cancel_out": Method(PenaltyOptions, _run_rival("cancel_out")),
    "deep_lasso": Method(PenaltyOptions, _run_rival("deep_lasso")),
    "linear_omp": Method(NoOptions, _run_linear("omp")),
    "linear_sequential_lasso": Method(NoOptions, _run_linear("sequential_lasso")),
    "linear_attention": Method(LinearAttentionOptions, _run_linear("linear_attention")),
    "random": Method(NoOptions, _run_random),
}


def methods() -> list[str]:
    """The names that ``select`` takes as ``method``."""
    return list(METHODS)
