"""Methods that are a gate and a schedule, and for some a penalty whose strength is chosen.

Several strengths of a penalty are variants of a trial that train side by side, each with the budget of one training:
each selects its k features, then trains a new network on these alone, and the variant whose network has the lowest loss
on rows that none of them trains on gives the result. A variant that diverges cannot win.

A method of this kind is one function that makes its gate::

    @register_gated("cancel_out", penalties=...)
    def make_gate(context: GateContext) -> Gate:
        return CancelOutGate(context.columns.features, context.penalty, context.options.learning_rate)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from seqatt.algorithms.registry import Plan, register
from seqatt.algorithms.request import SelectionRequest
from seqatt.data.tables.table_data import TableData
from seqatt.progress import Advance
from seqatt.trace import Trace
from seqatt.training.backend.threads import training_threads
from seqatt.training.defaults import (
    ENSEMBLE_SIZE,
    default_input_dropout,
    default_weight_decay,
    resolve_batch_size,
    resolve_steps,
    resolve_stream_budget,
)
from seqatt.training.ensemble import GATE, Member
from seqatt.training.feature_columns import FeatureColumns
from seqatt.training.gates.gate import Gate
from seqatt.training.group_factory import TrainingSetup, make_trial_groups
from seqatt.training.loop import Diverged, train
from seqatt.training.model_factory import largest_product, make_feature_columns
from seqatt.training.models.model import Model
from seqatt.training.reducer import Reducer
from seqatt.training.schedule import Schedule, at_once, retraining
from seqatt.training.trial_group import TrialGroup

# Steps that train on the selected features only, to compare the strengths of a penalty, per step of the selection.
VALIDATION_SHARE = 0.25


@dataclass(frozen=True)
class GateContext:
    """The arguments of a gate's constructor: T models, their penalties (T,) and their random generators.

    The gate trains for ``steps`` steps on ``rows`` rows, to select ``k`` features.
    ``scale`` (d,) is the square root of the number of input columns of each feature. ``embedded`` (d,) is 1 for the
    features that have an embedding, whose size is not fixed as that of scaled columns is; None if there are none.
    """

    model: Model
    columns: FeatureColumns
    scale: Tensor
    penalty: Tensor
    generators: list[torch.Generator]
    options: Any
    k: int
    steps: int
    rows: int
    embedded: Tensor | None
    reducer: Reducer


@dataclass(frozen=True)
class GatedPlan(Plan):
    """``penalties`` are the strengths to compare; none where the method has no penalty."""

    schedule: Schedule
    penalties: list[float]
    setup: TrainingSetup


def register_gated(
    name: str,
    *,
    schedule: Callable[[int, int], Schedule] = at_once,
    penalties: Callable[[int], Sequence[float]] = lambda k: (),
    weight_decay: bool = False,
) -> Callable[[Callable[[GateContext], Gate]], Callable[[GateContext], Gate]]:
    """Register a method by the function that makes its gate.

    Parameters
    ----------
    schedule : function of k and the number of steps.
    penalties : function of k, the strengths of the penalty to choose from.
    weight_decay : whether the first-layer weights of unselected features decay as in Sequential Attention, which keeps
        a network from memorising a small table.
    """

    def decorate(make_gate: Callable[[GateContext], Gate]) -> Callable[[GateContext], Gate]:
        plan = partial(make_plan, schedule=schedule, penalties=penalties, weight_decay=weight_decay)
        select = partial(select_gated, make_gate=make_gate)
        register(name, plan=plan)(select)
        return make_gate

    return decorate


def make_plan(
    request: SelectionRequest,
    *,
    schedule: Callable[[int, int], Schedule],
    penalties: Callable[[int], Sequence[float]],
    weight_decay: bool,
) -> GatedPlan:
    """Every variant of a trial has the budget of a selection by Sequential Attention.

    The network that compares the variants trains in addition. On files one part of the rows is held out for all.
    """
    data, k, options = request.data, request.k, request.options
    requested = getattr(options, "penalty", None)
    strengths = list(penalties(k)) if requested is None else [requested]
    variants = max(1, len(strengths))
    compared, rows = len(strengths) > 1, request.rows
    parts = ENSEMBLE_SIZE if compared else 1
    batch_size, passes = resolve_batch_size(rows, options.batch_size, parts), 1
    steps = resolve_steps(rows, batch_size, options.epochs, k)
    validation = max(3, round(VALIDATION_SHARE * steps)) if compared else 0
    if not isinstance(data, TableData):
        budget, share = steps + validation, validation / (steps + validation)
        batch_size, passes, total = resolve_stream_budget(rows, budget, 1, options.batch_size, k + 3)
        validation = max(3, round(share * total)) if compared else 0
        steps = total - validation
    phases = schedule(k, max(k, steps))  # every phase needs a step
    if compared:
        *trained, last = retraining(validation)
        phases += (*trained, replace(last, measures=True))
    total = sum(phase.steps for phase in phases)
    input_dropout = options.input_dropout
    if input_dropout is None:
        # A dropped input is 0, the mean of a standardised column; another value distorts the sums of the first layer.
        standardised = options.scaling == "standard"
        input_dropout = default_input_dropout(rows, data.encoded_columns) if standardised else 0.0
    settings = options.to_settings() | ({"penalties": strengths} if strengths else {})
    settings |= {
        "batch_size": batch_size,
        "input_dropout": input_dropout,
        "steps": total,
        "epochs": total * batch_size / rows,
    }
    return GatedPlan(
        settings=settings,
        steps=total,
        schedule=phases,
        penalties=strengths,
        setup=TrainingSetup(
            batch_size=batch_size,
            steps=total,
            passes=passes,
            weight_decay=default_weight_decay(rows) if weight_decay else 0.0,
            variants=variants,
            hold_outs=parts,
            quotas=request.quotas,
            input_dropout=input_dropout,
        ),
    )


def select_gated(
    request: SelectionRequest,
    plan: GatedPlan,
    advance: Advance,
    *,
    make_gate: Callable[[GateContext], Gate],
) -> list[Trace]:
    data, options, device = request.data, request.options, request.device
    work = largest_product(data, options, plan.setup.batch_size)
    with training_threads(work, device, own_model=options.model is not None) as threads:
        columns = make_feature_columns(data, options, device)
        scale = torch.tensor([len(inputs) for inputs in data.input_columns], device=device).sqrt()
        embedded = None
        if data.code_counts:
            embedded = torch.zeros(data.features, device=device)
            embedded[torch.from_numpy(data.coded_features).to(device)] = 1.0
        steps = sum(phase.steps for phase in plan.schedule if phase.sees == "attended")
        reducer = Reducer() if request.source is None else request.source.reducer

        def make_gate_of(model: Model, members: Sequence[Member]) -> Gate:
            strengths = [plan.penalties[m.variant] if plan.penalties else 0.0 for m in members]
            penalty = torch.tensor(strengths, device=device)
            generators = [m.generator(GATE) for m in members]
            return make_gate(
                GateContext(
                    model,
                    columns,
                    scale,
                    penalty,
                    generators,
                    options,
                    request.k,
                    steps,
                    request.rows,
                    embedded,
                    reducer,
                )
            )

        groups = make_trial_groups(
            data,
            request.seeds,
            options,
            device,
            plan.setup,
            make_gate_of,
            subsets=request.subsets,
            source=request.source,
        )
        return train(
            groups,
            plan.schedule,
            request.hook,
            threads,
            skip_diverged=plan.setup.variants > 1,
            finish=partial(_best_variants, plan=plan) if plan.penalties else TrialGroup.traces,
        )


@torch.no_grad()
def _best_variants(group: TrialGroup, plan: GatedPlan) -> list[Trace]:
    """Of each trial's variants, the one with the lowest validation loss; its penalty goes into the settings."""
    traces, variants = group.traces(), plan.setup.variants
    if variants == 1:
        return [replace(trace, settings=trace.settings | {"penalty": plan.penalties[0]}) for trace in traces]
    losses = torch.cat([trainer.validation_loss() for trainer in group.trainers])
    finite = group.finite & np.isfinite(losses.cpu().numpy())
    table = np.where(finite, losses.double().cpu().numpy(), np.inf).reshape(-1, variants)
    best = []
    for trial, row in enumerate(table):
        winner = int(row.argmin())
        trace = traces[trial * variants + winner]
        if np.isfinite(row[winner]):
            finite_losses = [loss if np.isfinite(loss) else None for loss in row.tolist()]
            settings = {"penalty": plan.penalties[winner], "penalty_losses": finite_losses}
            best.append(replace(trace, settings=trace.settings | settings))
        else:
            best.append(Trace([], trace.order + trace.rest))  # every strength diverged
    if not np.isfinite(table).any(1).all():
        raise Diverged(best)
    return best
