"""Post-selection measures on a table.

Feature importance on held-out rows, stand-ins, and a comparison with random features.
"""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

from seqatt.algorithms.registry import Method
from seqatt.algorithms.request import SelectionRequest
from seqatt.api.confidence.importance import add_stand_ins, measure_importance
from seqatt.api.confidence.loss_notes import note_harmful, note_unlearned
from seqatt.data.tables.table_data import SparseColumns, TableData
from seqatt.progress import Advance, Timings
from seqatt.trace import Trace
from seqatt.training.defaults import ENSEMBLE_SIZE, training_rows
from seqatt.training.loop import Diverged
from seqatt.training.screening.row_sample import draw_sample
from seqatt.training.screening.univariate_test import univariate_test

CERTAIN = 1e-3  # q-value of a feature that is not noise
# Cells of a table, at most, that is tested where the method does not; in larger ones, some feature is significant.
TESTED_CELLS = 1 << 20


def check_importance(data: Any, plan: Any) -> None:
    """Refuse to measure what each feature adds where neither the method nor new networks can hold out rows."""
    if any(phase.measures for phase in getattr(plan, "schedule", ())):
        return
    if not isinstance(data, TableData):
        raise ValueError(
            "importance: needs a table, or a method that holds out rows of files; raise memory so that the files are "
            "read into one, or leave it out"
        )
    if training_rows(data.rows, ENSEMBLE_SIZE) == data.rows:
        raise ValueError(f"importance: {data.rows} rows are too few to hold some out; leave it out")


def examine_traces(
    method: Method,
    request: SelectionRequest,
    traces: list[Trace],
    advance: Advance,
    timings: Timings,
    *,
    importance: bool,
    chance: bool,
) -> list[Trace]:
    """The traces with importance and stand-ins, compared with random features where none is significant alone."""
    data = request.table
    traces = examined = note_unlearned(request, traces)
    try:
        if importance:
            timings.end("select")
            examined = [
                trace
                if trace.importance or not trace.order
                else replace(trace, importance=measure_importance(data, trace.order, seed))
                for seed, trace in zip(request.seeds, traces, strict=True)
            ]
            timings.end("examine")
        add_stand_ins(data, examined, request.device)
        if (
            getattr(request.options, "loss", None) is None
        ):  # importance may be in the units of the user's loss
            examined = [note_harmful(data, trace, request.kept) for trace in examined]
        if not (chance and _may_be_noise(method, data, examined)):
            return examined
        from seqatt.api.confidence.random_baseline import (  # here, because it needs pyarrow
            compare_with_random,
            is_testable,
        )

        if not is_testable(data):
            return examined
        timings.end("select")
        results = compare_with_random(method, request, advance)
        timings.end("examine")
        return [replace(trace, chance=result) for trace, result in zip(examined, results, strict=True)]
    except Diverged as error:
        warnings.warn(
            f"the features are selected, but how sure that is could not be measured: {error}", stacklevel=2
        )
        return traces


def _may_be_noise(method: Method, data: TableData, traces: list[Trace]) -> bool:
    """Whether no feature is related to the target by itself, by the test that the default runs before training."""
    if method.name == "random" or not data.target.loss.has_univariate_test:
        return False
    q_values = [trace.settings["min_q_value"] for trace in traces if "min_q_value" in trace.settings]
    testable = (method.trains or method.nested) and not isinstance(data.columns, SparseColumns)
    if testable and not q_values and data.rows * data.encoded_columns <= TESTED_CELLS:
        q_values = [10.0 ** -univariate_test(draw_sample(data)).log_q.max()]
    return bool(q_values) and min(q_values) > CERTAIN
