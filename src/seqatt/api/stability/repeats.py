"""Selections on halves of the rows: complementary pairs, which share no row (Shah and Samworth 2013)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from seqatt.algorithms.registry import Method
from seqatt.algorithms.request import SelectionRequest
from seqatt.api.stability.pooling import pool_repeats
from seqatt.data.tables.table_data import TableData, take_rows
from seqatt.progress import Advance
from seqatt.trace import Trace
from seqatt.training.loop import TrainingHook, TrainingInterrupted

BUDGET = 0.3  # steps of a repeat, as a share of those of one selection
MEMBERS = 2  # models per repeat, unless requested: what an ensemble is for, the repeats do
MANY, SURPLUS = 20, 1.25  # of more features, a repeat drops fewer: each is found by a pass over held-out rows
MIN_ROWS = 10  # of a half; with fewer, methods would fail
HALVES, SEEDS = 21, 22  # independent random streams of one seed


def check_table(data: Any) -> None:
    """Refuse data that cannot be divided into halves."""
    if not isinstance(data, TableData):
        raise ValueError(
            "repeats: needs a table; raise memory so that the files are read into one, or leave it out"
        )
    if data.rows < 2 * MIN_ROWS:
        raise ValueError(f"repeats: needs at least {2 * MIN_ROWS} rows, got {data.rows}; leave it out")


def select_repeatedly(
    method: Method, repeats: int, request: SelectionRequest, plan: Any, advance: Advance
) -> list[Trace]:
    """Select on halves of the rows, an even number of times, and pool what was selected.

    ``plan`` is that of a selection on all rows. Its request has one seed. Ctrl-C raises ``TrainingInterrupted`` with
    what is pooled of the pairs that were finished.
    """
    data, (seed,) = request.table, request.seeds
    rows = data.rows // 2
    seeds = np.random.SeedSequence([seed, SEEDS]).generate_state(repeats).tolist()
    advance(0, f"{method.title}, {repeats} repeats", repeats)
    traces: list[Trace] = []
    settings: dict[str, Any] = {}
    options = request.options
    try:
        for pair in range(repeats // 2):
            for half in divide(data, seed, pair):
                own = replace(
                    request, data=take_rows(data, half), seeds=[seeds[len(traces)]], hook=TrainingHook()
                )
                if not traces:
                    options = _options_of_repeat(method, own, plan.settings, data.rows)
                own = replace(own, options=options)
                own_plan = method.plan(own)
                settings = own_plan.settings
                traces += method.select(own, own_plan, own.hook.advance)
                advance(1)
    except KeyboardInterrupt:
        finished = traces[: len(traces) // 2 * 2]
        pooled = [pool_repeats(data, finished, request.k, rows)] if finished else []
        raise TrainingInterrupted(pooled) from None
    trace = pool_repeats(data, traces, request.k, rows)
    return [replace(trace, settings=settings | {"repeats": repeats} | _test_results(traces))]


def _options_of_repeat(
    method: Method, request: SelectionRequest, settings: dict[str, Any], all_rows: int
) -> Any:
    """The options of a repeat: fewer steps and models than a selection on all rows with these settings."""
    options, epochs = request.options, settings.get("epochs")
    if getattr(options, "ensemble", 1) is None and settings["ensemble"] > MEMBERS:
        options = replace(options, ensemble=MEMBERS)
    if request.k > MANY and settings.get("surplus", 0) > SURPLUS:
        options = replace(options, surplus=SURPLUS)
    if epochs:
        own = method.plan(replace(request, options=options)).settings
        batches = all_rows / settings.get("batch_size", 1)
        own_batches = request.data.rows / own.get("batch_size", 1)
        options = replace(options, epochs=BUDGET * epochs * batches / own_batches)
    return options


def divide(data: TableData, seed: int, pair: int) -> list[NDArray[np.int64]]:
    """Two halves of the rows, without the last of an odd number; every class is divided evenly."""
    shuffled = np.random.default_rng([seed, HALVES, pair]).permutation(data.rows)
    if data.target.task in ("binary", "multiclass"):
        classes = data.target.values.reshape(data.rows, -1)[:, 0]
        shuffled = shuffled[np.argsort(classes[shuffled], kind="stable")]
    return [np.sort(shuffled[start::2][: data.rows // 2]) for start in range(2)]


def _test_results(traces: list[Trace]) -> dict[str, float]:
    """The median over the repeats of the smallest q-value of the univariate test, where the method has one."""
    found = [trace.settings["min_q_value"] for trace in traces if "min_q_value" in trace.settings]
    return {"min_q_value": float(np.median(found))} if found else {}
