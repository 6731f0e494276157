"""METHODS: every way to choose features, by name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch

from seqatt.algorithms.filters.boosting import choose_by_boosting
from seqatt.algorithms.filters.cmim import choose_by_cmim
from seqatt.algorithms.filters.f_test import choose_by_f_test
from seqatt.algorithms.filters.forest import choose_by_forest
from seqatt.algorithms.filters.mutual_information import choose_by_mutual_information
from seqatt.algorithms.filters.options import (
    BoostingOptions,
    CMIMOptions,
    ForestOptions,
    MutualInformationOptions,
)
from seqatt.algorithms.filters.random import random_features
from seqatt.algorithms.linear import LinearAttentionOptions, choose_linearly
from seqatt.algorithms.neural import concrete_autoencoder as autoencoder
from seqatt.algorithms.neural import gated_method as rival
from seqatt.algorithms.neural import greedy, lassonet
from seqatt.algorithms.neural.rivals import RIVALS
from seqatt.algorithms.neural.sequential_attention import plan, sequential_attention, settings
from seqatt.data.tables.table_data import TableData
from seqatt.progress import progress_bar
from seqatt.selection import Trace
from seqatt.training import custom_step as walks
from seqatt.training.loop import Diverged
from seqatt.training.options import (
    AttentionOptions,
    AutoencoderOptions,
    BatchAttentionOptions,
    GreedyOptions,
    LassoNetOptions,
    PenaltyOptions,
    StochasticGatesOptions,
    TrainingOptions,
)


@dataclass(frozen=True)
class NoOptions:
    """A method with nothing to set."""


@dataclass(frozen=True)
class SelectionRequest:
    """All a method needs to know."""

    source: TableData
    k: int
    seeds: list[int]
    options: Any
    device: torch.device
    progress: bool
    about_table: dict[str, Any]


Run = Callable[[SelectionRequest], tuple[list[Trace], dict[str, Any]]]


@dataclass(frozen=True)
class Method:
    """What a method can be told, and the function that runs it: traces and resolved settings.

    ``summary`` is one line for people.
    """

    options: type
    run: Run
    summary: str = ""


def _run_attention(job: SelectionRequest) -> tuple[list[Trace], dict[str, Any]]:
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


def _run_walks(title: str, kind: Callable[..., walks.CustomTrainer]) -> Run:
    def run(job: SelectionRequest) -> tuple[list[Trace], dict[str, Any]]:
        resolved = walks.settings(job.source, job.k, job.options)
        return _run_walk(job, title, partial(walks.train_custom, kind), resolved, resolved["steps"])

    return run


def _run_greedy(job: SelectionRequest) -> tuple[list[Trace], dict[str, Any]]:
    resolved = greedy.settings(job.source, job.options)
    models = greedy.models_of(job.source, job.k, len(job.seeds))
    return _run_walk(job, "Greedy selection", greedy.choose_greedily, resolved, models)


def _run_walk(
    job: SelectionRequest,
    title: str,
    choose: Callable[..., list[Trace]],
    resolved: dict[str, Any],
    total: int,
) -> tuple[list[Trace], dict[str, Any]]:
    with progress_bar(title, total, shown=job.progress) as advance:
        try:
            traces = choose(job.source, job.k, job.seeds, job.options, job.device, advance)
        except Diverged as error:
            error.settings = resolved
            raise
    return traces, resolved


def _run_rival(name: str) -> Run:
    its = RIVALS[name]

    def run(job: SelectionRequest) -> tuple[list[Trace], dict[str, Any]]:
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


def _run_random(job: SelectionRequest) -> tuple[list[Trace], dict[str, Any]]:
    traces = [random_features(job.source, seed) for seed in job.seeds]
    return [Trace(t.order[: job.k], t.order[job.k :]) for t in traces], {}


def _run_linear(name: str) -> Run:
    def run(job: SelectionRequest) -> tuple[list[Trace], dict[str, Any]]:
        trace, found = choose_linearly(job.source, job.k, name, job.options)
        return [trace] * len(job.seeds), found  # nothing is drawn: one answer for all seeds

    return run


def _run_cmim(job: SelectionRequest) -> tuple[list[Trace], dict[str, Any]]:
    with progress_bar("CMIM", job.k, shown=job.progress) as advance:
        trace, found = choose_by_cmim(job.source, job.k, job.options, advance)
    return [trace] * len(job.seeds), found


def _run_f_test(job: SelectionRequest) -> tuple[list[Trace], dict[str, Any]]:
    return [choose_by_f_test(job.source, job.k)] * len(job.seeds), {}


def _run_seeds(title: str, choose: Callable[..., Trace]) -> Run:
    def run(job: SelectionRequest) -> tuple[list[Trace], dict[str, Any]]:
        traces = []
        with progress_bar(title, len(job.seeds), shown=job.progress) as advance:
            for seed in job.seeds:
                traces.append(choose(job.source, job.k, seed, job.options))
                advance(1)
        return traces, dict(vars(job.options))

    return run


METHODS = {
    "sequential_attention": Method(
        AttentionOptions,
        _run_attention,
        "trains a network whose attention chooses one feature after another",
    ),
    "sequential_lasso": Method(
        PenaltyOptions,
        _run_rival("sequential_lasso"),
        "a group LASSO on the first layer, a feature let off at the end of each phase",
    ),
    "group_lasso": Method(
        PenaltyOptions,
        _run_rival("group_lasso"),
        "a group LASSO on the first layer; the longest weights at the end",
    ),
    "omp": Method(
        TrainingOptions,
        _run_rival("omp"),
        "the feature whose first-layer weights have the largest gradient, one by one",
    ),
    "batch_attention": Method(
        BatchAttentionOptions,
        _run_rival("batch_attention"),
        "a second network attends to features, averaged over the batch",
    ),
    "stochastic_gates": Method(
        StochasticGatesOptions,
        _run_rival("stochastic_gates"),
        "noisy gates between open and shut, with a penalty on open ones",
    ),
    "first_layer": Method(
        TrainingOptions,
        _run_rival("first_layer"),
        "what each feature gives to the first layer of a trained network",
    ),
    "cancel_out": Method(
        PenaltyOptions, _run_rival("cancel_out"), "sigmoid gates with a penalty that closes them"
    ),
    "deep_lasso": Method(
        PenaltyOptions,
        _run_rival("deep_lasso"),
        "a penalty on the gradient of the loss with respect to each feature",
    ),
    "concrete_autoencoder": Method(
        AutoencoderOptions,
        _run_walks("Concrete autoencoder", autoencoder.ConcreteAutoencoder),
        "k nodes that each learn to pass one feature on to a network",
    ),
    "greedy": Method(
        GreedyOptions,
        _run_greedy,
        "a small network for every candidate; the one that helps most is taken",
    ),
    "lassonet": Method(
        LassoNetOptions,
        _run_walks("LassoNet", lassonet.LassoNetPath),
        "a network with a skip connection, losing features as a penalty grows",
    ),
    "linear_omp": Method(
        NoOptions, _run_linear("omp"), "least squares: the feature most correlated with what is left"
    ),
    "linear_sequential_lasso": Method(
        NoOptions, _run_linear("sequential_lasso"), "least squares: the feature the LASSO lets in first"
    ),
    "linear_attention": Method(
        LinearAttentionOptions,
        _run_linear("linear_attention"),
        "least squares: Sequential Attention, solved exactly",
    ),
    "cmim": Method(
        CMIMOptions,
        _run_cmim,
        "information about the target that no single chosen feature has given already",
    ),
    "mutual_information": Method(
        MutualInformationOptions,
        _run_seeds("Mutual information", choose_by_mutual_information),
        "information about the target, each feature alone",
    ),
    "f_test": Method(NoOptions, _run_f_test, "analysis of variance or correlation, each feature alone"),
    "forest": Method(
        ForestOptions,
        _run_seeds("Random forest", choose_by_forest),
        "how much impurity a feature takes away in a random forest",
    ),
    "boosting": Method(
        BoostingOptions,
        _run_seeds("Boosted trees", choose_by_boosting),
        "how much loss a feature takes away in gradient-boosted trees",
    ),
    "random": Method(NoOptions, _run_random, "features drawn at random: the line every method must beat"),
}


def methods() -> list[str]:
    """The names that ``select`` takes as ``method``."""
    return list(METHODS)
