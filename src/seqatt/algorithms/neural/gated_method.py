"""A rival of Sequential Attention as a method: a gate, a schedule and, for some, a penalty to choose.

Several strengths of a penalty share the budget of one training. They are variants of a trial, side by side:
each chooses its k features, then trains a new network on these alone, and the one whose network does best
on rows that none of them learns from gives the answer. One that diverges loses.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from seqatt.data.tables.table_data import TableData
from seqatt.selection import Trace
from seqatt.training.backend.threads import training_threads
from seqatt.training.build import GATE, Member, largest_product, make_trial_groups
from seqatt.training.defaults import (
    batch_size_for,
    default_decay,
    default_input_dropout,
    default_members,
    steps_for,
)
from seqatt.training.feature_columns import FeatureColumns
from seqatt.training.gates.gate import Gate
from seqatt.training.loop import Diverged, TrialGroup, train
from seqatt.training.models.model import Model
from seqatt.training.options import TrainingOptions
from seqatt.training.schedule import Schedule, at_once, penalty_trial

JUDGING = 0.25  # share of the steps that a strength's trial takes


class GateContext(NamedTuple):
    """What a gate is made of: the models it serves, their penalties (T,) and what they draw from."""

    model: Model
    feature_of: FeatureColumns
    scale: Tensor  # (d,): the root of the number of table columns a feature has
    penalty: Tensor
    generators: list[torch.Generator]
    options: Any


@dataclass(frozen=True)
class GatedMethod:
    """``strengths`` are those of the penalty to choose from, for k features; none where there is no penalty.

    One that ``decays`` has the weight decay that Sequential Attention has on the features not chosen: what
    keeps its network from knowing a small table by heart.
    """

    title: str
    make_gate: Callable[[GateContext], Gate]
    schedule: Callable[[int, int], Schedule] = at_once
    strengths: Callable[[int], Sequence[float]] = lambda k: ()
    decays: bool = False


@dataclass(frozen=True)
class GatedPlan:
    """What each model will do."""

    schedule: Schedule
    penalties: list[float]
    batch_size: int

    @property
    def variants(self) -> int:
        return max(1, len(self.penalties))


def plan(rival: GatedMethod, source: TableData, k: int, options: TrainingOptions) -> GatedPlan:
    """The steps of a trial's variants add up to the budget of a selection by Sequential Attention."""
    asked = getattr(options, "penalty", None)
    penalties = list(rival.strengths(k)) if asked is None else [asked]
    several = len(penalties) > 1
    batch = batch_size_for(source.rows, options.batch_size, default_members(source.rows) if several else 1)
    steps = steps_for(source.rows, batch, options.epochs, k) // max(1, len(penalties))
    judging = max(3, round(JUDGING * steps)) if several else 0
    schedule = rival.schedule(k, max(k, steps - judging))  # a choice needs a step, however short the training
    return GatedPlan(schedule + (penalty_trial(judging) if several else ()), penalties, batch)


def settings(source: TableData, options: TrainingOptions, plan: GatedPlan) -> dict[str, Any]:
    """The options as they were resolved for this table; each trial adds the penalty it chose."""
    steps = sum(phase.steps for phase in plan.schedule)
    tried = {"penalties": plan.penalties} if plan.penalties else {}
    return (
        options.record()
        | tried
        | {
            "batch_size": plan.batch_size,
            "input_dropout": _input_dropout(source, options),
            "steps": steps,
            "epochs": plan.variants * steps * plan.batch_size / source.rows,
        }
    )


def choose(
    rival: GatedMethod,
    source: TableData,
    seeds: Sequence[int],
    options: TrainingOptions,
    device: torch.device,
    plan: GatedPlan,
    advance: Callable[[int], None],
) -> list[Trace]:
    feature_of = FeatureColumns(torch.from_numpy(source.feature_of).to(device), source.features)
    scale = torch.tensor([len(columns) for columns in source.members], device=device).sqrt()

    def make_gate(model: Model, members: Sequence[Member]) -> Gate:
        penalty = [plan.penalties[m.variant] if plan.penalties else 0.0 for m in members]
        generators = [m.generator(GATE) for m in members]
        told = torch.tensor(penalty, device=device)
        return rival.make_gate(GateContext(model, feature_of, scale, told, generators, options))

    with training_threads(largest_product(source, options), device) as threads:
        groups = make_trial_groups(
            source,
            seeds,
            options,
            device,
            make_gate,
            decay=default_decay(source.rows) if rival.decays else 0.0,
            variants=plan.variants,
            dropout=_input_dropout(source, options),
        )
        traces = train(groups, plan.schedule, advance, threads, forgiving=plan.variants > 1)
        return _best(traces, groups, plan) if plan.penalties else traces


@torch.no_grad()
def _best(traces: list[Trace], groups: Sequence[TrialGroup], plan: GatedPlan) -> list[Trace]:
    """Of each trial's variants the one whose features served best on rows kept aside."""
    if plan.variants == 1:
        return [replace(trace, settings={"penalty": plan.penalties[0]}) for trace in traces]
    losses = torch.cat([trainer.validation_loss() for group in groups for trainer in group.trainers])
    sound = np.concatenate([group.sound for group in groups]) & np.isfinite(losses.cpu().numpy())
    table = np.where(sound, losses.double().cpu().numpy(), np.inf).reshape(-1, plan.variants)
    chosen = []
    for trial, row in enumerate(table):
        winner = int(row.argmin())
        trace = traces[trial * plan.variants + winner]
        if np.isfinite(row[winner]):
            tried = [loss if np.isfinite(loss) else None for loss in row.tolist()]
            told = {"penalty": plan.penalties[winner], "penalty_losses": tried}
            chosen.append(replace(trace, settings=told))
        else:
            chosen.append(Trace([], trace.order + trace.rest))  # no strength was the best
    if not np.isfinite(table).any(1).all():
        raise Diverged(chosen)
    return chosen


def _input_dropout(source: TableData, options: TrainingOptions) -> float:
    if options.input_dropout is not None:
        return options.input_dropout
    return default_input_dropout(source.rows, len(source.feature_of))
