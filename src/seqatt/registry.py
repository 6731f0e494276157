"""METHODS: every way to choose features, by name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from seqatt.classic.random import random_features
from seqatt.linear.methods import LinearAttentionOptions, choose_linearly
from seqatt.neural import autoencoder, greedy, lassonet, walks
from seqatt.neural.attention import plan, sequential_attention, settings
from seqatt.neural.engine import Diverged
from seqatt.neural.options import AttentionOptions, AutoencoderOptions, GreedyOptions, LassoNetOptions
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


def _run_lassonet(job: Job) -> tuple[list[Trace], dict[str, Any]]:
    resolved = walks.settings(job.source, job.k, job.options)
    return _run_rival(job, "LassoNet", lassonet.choose_by_lassonet, resolved, resolved["steps"])


def _run_autoencoder(job: Job) -> tuple[list[Trace], dict[str, Any]]:
    resolved = walks.settings(job.source, job.k, job.options)
    return _run_rival(
        job, "Concrete autoencoder", autoencoder.choose_by_autoencoder, resolved, resolved["steps"]
    )


def _run_greedy(job: Job) -> tuple[list[Trace], dict[str, Any]]:
    resolved = greedy.settings(job.source, job.k, job.options)
    models = greedy.models_of(job.source, job.k, len(job.seeds))
    return _run_rival(job, "Greedy selection", greedy.choose_greedily, resolved, models)


def _run_rival(
    job: Job, title: str, choose: Callable[..., list[Trace]], resolved: dict[str, Any], total: int
) -> tuple[list[Trace], dict[str, Any]]:
    with progress_bar(title, total, shown=job.progress) as advance:
        try:
            traces = choose(job.source, job.k, job.seeds, job.options, job.device, advance)
        except Diverged as error:
            error.settings = resolved
            raise
    return traces, resolved


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
    "concrete_autoencoder": Method(AutoencoderOptions, _run_autoencoder),
    "greedy": Method(GreedyOptions, _run_greedy),
    "lassonet": Method(LassoNetOptions, _run_lassonet),
    "linear_omp": Method(NoOptions, _run_linear("omp")),
    "linear_sequential_lasso": Method(NoOptions, _run_linear("sequential_lasso")),
    "linear_attention": Method(LinearAttentionOptions, _run_linear("linear_attention")),
    "random": Method(NoOptions, _run_random),
}


def methods() -> list[str]:
    """The names that ``select`` takes as ``method``."""
    return list(METHODS)
