"""How Sequential Attention trains on a table or on files: what its options leave open, resolved."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from seqatt.algorithms.neural.attention_options import AttentionOptions
from seqatt.algorithms.neural.attention_schedule import CLOSING_SHARE, MAX_PHASES, make_schedule
from seqatt.algorithms.neural.exchange import can_exchange
from seqatt.algorithms.registry import Plan
from seqatt.algorithms.request import SelectionRequest
from seqatt.data.tables.table_data import SparseColumns, TableData
from seqatt.data.tables.weights import balanced_share
from seqatt.training.defaults import (
    ENSEMBLE_SIZE,
    LOGIT_LEARNING_RATE,
    MAX_REPLACEMENT,
    SURPLUS,
    default_asinh_inputs,
    default_exchanges,
    default_replacement,
    default_stream_ensemble,
    default_univariate_test,
    default_weight_decay,
    default_working_set,
    resolve_batch_size,
    resolve_steps,
    resolve_stream_budget,
    training_rows,
)
from seqatt.training.group_factory import TrainingSetup
from seqatt.training.schedule import MAX_DROP_PHASES, Phase, Schedule, narrow_first_phase


@dataclass(frozen=True)
class AttentionPlan(Plan):
    """Everything that ``AttentionOptions`` left open, resolved for one table."""

    schedule: Schedule
    setup: TrainingSetup
    univariate_test: float
    asinh_inputs: bool
    logit_learning_rate: float
    exchanges: int


def make_plan(request: SelectionRequest) -> AttentionPlan:
    data, k, options = request.data, request.k, request.options
    rows, columns, one_pass = request.rows, data.encoded_columns, options.one_pass
    added = k - len(request.kept)
    own_model, streamed = options.model is not None, not isinstance(data, TableData)

    def resolve(requested: float | None, default: float, *, applies: bool = True) -> float:
        return requested if requested is not None else default * applies

    default_members = default_stream_ensemble(rows) if streamed else ENSEMBLE_SIZE
    members = int(resolve(options.ensemble, default_members if one_pass and not own_model else 1))
    batch_size, passes = resolve_batch_size(rows, options.batch_size, members), 1
    shared_steps = resolve_steps(rows, batch_size, options.epochs, k)
    steps = max(1, shared_steps // members)
    surplus, replacement = options.surplus, options.replacement
    if streamed:
        if not one_pass:
            raise ValueError(
                "one_pass: False (as in recipe='algorithm_1') trains one model per phase, which is for tables; "
                "raise memory so that the files are read into one"
            )
        budget = partial(resolve_stream_budget, rows, shared_steps, members, options.batch_size)
        if budget().passes == 1:
            # A surplus and replacements leave fewer rows for every phase, which costs more than they gain.
            surplus, replacement = surplus or 1.0, replacement or 0
        phases = round(min((surplus or SURPLUS) * added, MAX_PHASES)) + MAX_DROP_PHASES + MAX_REPLACEMENT
        batch_size, passes, steps = budget(phases)
    surplus = surplus or SURPLUS
    replacement = default_replacement(added) if replacement is None else replacement
    closing = 0
    if options.extended and one_pass and _holds_out_rows(request, members):
        closing = max(1, round(CLOSING_SHARE * steps))
    # Files are read in whole passes, so the steps of the closing phase are taken from the other phases.
    schedule = make_schedule(
        data, added, options, max(1, steps - closing * streamed), surplus, replacement, request.kept
    )
    epochs = members * (passes if streamed else sum(phase.steps for phase in schedule) * batch_size / rows)
    if closing:
        schedule += (Phase(closing, sees="selected", orders=True, measures=True),)
    working_set = _resolve_working_set(request, len(request.kept) + sum(phase.take for phase in schedule))
    if working_set:
        schedule = narrow_first_phase(schedule)
    steps = sum(phase.steps for phase in schedule)
    # None by default: where inputs are dropped, a copy of a selected feature is useful.
    input_dropout = options.input_dropout or 0.0
    testable = data.target.loss.has_univariate_test
    if options.univariate_test and not testable:
        raise ValueError(f"univariate_test: is not defined for task={data.target.task!r}; leave it out")
    default_test = default_univariate_test(rows, columns)
    threshold = resolve(options.univariate_test, default_test, applies=one_pass and testable)
    weight_decay = resolve(options.weight_decay, default_weight_decay(rows))
    asinh_inputs = _resolve_asinh(request)
    logit_learning_rate = _resolve_logit_learning_rate(options)
    exchanges = _resolve_exchanges(request, members)
    settings = options.to_settings() | {
        "batch_size": batch_size,
        "ensemble": members,
        "features_per_phase": max(phase.take for phase in schedule),
        "univariate_test": threshold,
        "input_dropout": input_dropout,
        "logit_learning_rate": logit_learning_rate,
        "asinh_inputs": asinh_inputs,
        "surplus": sum(phase.drop for phase in schedule if phase.steps) / added + 1,
        "replacement": sum(phase.drop > 0 and phase.steps == 0 for phase in schedule),
        "exchanges": exchanges,
        "weight_decay": weight_decay,
        "working_set": working_set,
        "steps": steps,
        "epochs": epochs,
    }
    setup = TrainingSetup(
        batch_size=batch_size,
        steps=steps,
        passes=passes,
        weight_decay=weight_decay,
        members=members,
        kept=request.kept,
        quotas=request.quotas,
        working_set=working_set,
        input_dropout=input_dropout,
        confirms_embeddings=options.extended and options.built_in and _holds_out_rows(request, members),
    )
    return AttentionPlan(
        settings=settings,
        steps=steps,
        schedule=schedule,
        setup=setup,
        univariate_test=threshold,
        asinh_inputs=asinh_inputs,
        logit_learning_rate=logit_learning_rate,
        exchanges=exchanges,
    )


def _holds_out_rows(request: SelectionRequest, members: int) -> bool:
    """Whether models have validation rows that they do not train on."""
    if isinstance(request.data, TableData):
        return training_rows(request.rows, members) < request.rows
    return request.source is not None and request.source.validation is not None


def _resolve_exchanges(request: SelectionRequest, members: int) -> int:
    """How many rounds of exchanges there may be."""
    data, options = request.data, request.options
    possible = isinstance(data, TableData) and options.built_in
    if options.exchanges and not possible:
        raise ValueError(
            "exchanges: are for tables and the built-in network; leave it out, or raise memory so that files are read "
            "into a table"
        )
    if not possible or not can_exchange(request):
        return 0
    if options.exchanges is not None:
        return int(options.exchanges)
    default = options.one_pass and members > 1
    rows = request.rows * balanced_share(data.target)
    return default_exchanges(request.k - len(request.kept), rows) if default else 0


def _resolve_logit_learning_rate(options: AttentionOptions) -> float:
    """The rate of the default recipe is for the softmax mask: the logits of the other masks are weights themselves."""
    if options.logit_learning_rate is not None:
        return options.logit_learning_rate
    competes = options.extended and options.mask == "softmax"
    return LOGIT_LEARNING_RATE if competes else options.learning_rate


def _resolve_working_set(request: SelectionRequest, selected: int) -> int:
    """The smallest number of features that train together; 0 if all do, as in the recipes of the paper.

    On a GPU a step on all features takes little longer than one on a few hundred.
    """
    data, options = request.data, request.options
    if not isinstance(data, TableData) or request.device.type != "cpu" or data.code_counts:
        return 0
    if not (options.extended and options.one_pass and options.reset_logits and options.hidden):
        return 0
    varying = int((~data.constant).sum())
    # The features that a quota needs may be outside of any working set.
    if not options.built_in or options.reset_model or request.quotas is not None:
        return 0
    copied_rows = 0 if isinstance(data.columns, SparseColumns) else data.rows
    return default_working_set(copied_rows, varying, selected)


def _resolve_asinh(request: SelectionRequest) -> bool:
    """Whether numbers are transformed by asinh.

    A user's own model gets the numbers as they are, and so does a model that is to be linear in them.
    """
    data, options = request.data, request.options
    if not isinstance(data, TableData):
        if options.asinh_inputs:
            raise ValueError(
                "asinh_inputs: is for tables; raise memory so that the files are read into one, or use log1p"
            )
        return False
    if options.scaling != "standard":
        if options.asinh_inputs:
            raise ValueError("asinh_inputs: is for standardised numbers; leave scaling at 'standard'")
        return False
    if options.asinh_inputs is not None:
        return bool(options.asinh_inputs)
    nonlinear = bool(options.one_pass) and options.model is None and bool(options.hidden)
    return nonlinear and default_asinh_inputs(request.rows, data.encoded_columns)
