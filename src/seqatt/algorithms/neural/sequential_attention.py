"""Sequential Attention (paper, Algorithm 1 and its one-pass form)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np
import torch

from seqatt.algorithms.neural.attention_plan import AttentionPlan, make_plan
from seqatt.algorithms.neural.exchange import exchange_features
from seqatt.algorithms.registry import register
from seqatt.algorithms.request import SelectionRequest
from seqatt.data.tables.table_data import TableData
from seqatt.progress import Advance
from seqatt.trace import Trace
from seqatt.training.backend.threads import training_threads
from seqatt.training.ensemble import Member
from seqatt.training.gates.attention import AttentionGate
from seqatt.training.gates.masks import Mask, make_mask
from seqatt.training.group_factory import make_trial_groups
from seqatt.training.kernels import start_device
from seqatt.training.loaders.batch import DeviceTable
from seqatt.training.loop import TrainingInterrupted, train
from seqatt.training.model_factory import largest_product
from seqatt.training.models.model import Model
from seqatt.training.screening.asinh import asinh_columns
from seqatt.training.screening.copies import copies_last
from seqatt.training.screening.score_penalty import Screening, screen


@register("sequential_attention", plan=make_plan)
def sequential_attention(request: SelectionRequest, plan: AttentionPlan, advance: Advance) -> list[Trace]:
    data, options, device = request.data, request.options, request.device
    if plan.asinh_inputs:
        data = asinh_columns(request.table)
    mask = make_mask(options.mask, options.temperature)
    screened = data
    if not isinstance(data, TableData) and plan.univariate_test:
        from seqatt.data.files.validation_rows import sample_table  # here, because only files need pyarrow

        screened = sample_table(data, request.context.file_options)

    def make_gate(model: Model, members: Sequence[Member]) -> AttentionGate:
        gate = make_attention_gate(len(members), data.features, mask, plan.logit_learning_rate, device)
        gate.keeps_logits = not options.reset_logits
        return gate

    request.hook.part.later_phases = int(plan.exchanges > 0)
    work = largest_product(data, options, plan.setup.batch_size)
    with training_threads(work, device, own_model=options.model is not None) as threads:
        table = DeviceTable.of_data(data, device) if isinstance(data, TableData) else None
        screenings = [Screening()] * len(request.seeds)
        if isinstance(screened, TableData) and (plan.univariate_test or plan.schedule[-1].orders):
            columns = None if table is None else table.x
            test = partial(screen, screened, plan.univariate_test, request.rows, device, columns)
            subsets = request.subsets
            screenings = [test()] * len(request.seeds) if subsets is None else [*map(test, subsets)]
        groups = make_trial_groups(
            data,
            request.seeds,
            options,
            device,
            plan.setup,
            make_gate,
            score_penalties=[screening.score_penalty for screening in screenings],
            subsets=request.subsets,
            source=request.source,
            table=table,
        )
        traces = train(groups, plan.schedule, request.hook, threads)

    if not plan.exchanges:
        return _finish(request, plan, traces, screenings)
    exchanged = request.hook.exchanged()
    if exchanged is None:
        explained = [screening.explained for screening in screenings]
        try:
            exchanged = exchange_features(request, traces, explained, plan.exchanges, advance)
        except TrainingInterrupted as error:
            raise TrainingInterrupted(_finish(request, plan, error.traces, screenings)) from None
        request.hook.finish_exchanges(exchanged)
    finished = _finish(request, plan, exchanged, screenings)
    _end_exchanges(request, finished, len(plan.schedule))
    return finished


def _finish(
    request: SelectionRequest, plan: AttentionPlan, traces: Sequence[Trace], screenings: Sequence[Screening]
) -> list[Trace]:
    """The traces with copies last, and with what the test of their rows says."""
    finished = []
    for trace, screening in zip(traces, screenings, strict=True):
        order = trace.order
        if plan.schedule[-1].orders and screening.sample is not None:
            order = copies_last(order, screening.sample, len(request.kept))
        finished.append(replace(trace, order=order, settings={**trace.settings, **screening.facts}))
    return finished


def _end_exchanges(request: SelectionRequest, traces: Sequence[Trace], phases: int) -> None:
    """Tell callbacks what is selected after exchanges, which count as one phase: of several trials the best one."""
    held_out = [np.inf if trace.importance is None else trace.importance["loss"] for trace in traces]
    best = int(np.argmin(held_out))
    trace, loss = traces[best], held_out[best]
    request.hook.part.end_phase(
        phases + 1, phases, trace.order, trace.phases[-1], loss if np.isfinite(loss) else None
    )


def make_attention_gate(
    models: int, features: int, mask: Mask, learning_rate: float, device: torch.device
) -> AttentionGate:
    """The gate in one Triton kernel where that works, else in plain operations."""
    kernels = start_device(device).result()
    supported = kernels and kernels.supports_gate(mask, features) and kernels.gate_works(device)
    make_gate = kernels.FusedAttention if kernels and supported else AttentionGate
    gate: AttentionGate = make_gate(models, features, mask, learning_rate, device)
    return gate
