"""Selections on halves of the rows: complementary pairs, which share no row (Shah and Samworth 2013).

Where all trials of a table train in one tensor, so do the repeats: each is a trial that sees rows of its own. Elsewhere
they run one after another, each on a table of its half.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from seqatt.algorithms.registry import Method
from seqatt.algorithms.request import SelectionRequest
from seqatt.api.stability.pooling import pool_repeats
from seqatt.data.tables.table_data import TableData, take_rows
from seqatt.progress import Advance
from seqatt.trace import Trace
from seqatt.training.group_factory import TrainingSetup, share_a_tensor
from seqatt.training.loop import TrainingInterrupted
from seqatt.training.screening.row_sample import MIN_ROWS as MIN_SAMPLE

BUDGET = 0.3  # steps of a repeat, as a share of those of one selection
MEMBERS = 2  # models per repeat, unless requested: what an ensemble is for, the repeats do
MANY, SURPLUS = 20, 1.25  # of more features, a repeat drops fewer: each is found by a pass over held-out rows
AT_ONCE = 20  # repeats that train in one tensor, at most
# Their inputs of a batch, weights of first layers and samples of rows, at most: 2 GiB, and Adam's moments beside them.
MAX_CELLS = 1 << 29
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
    what is pooled of the pairs that were finished or, of repeats that train together, of what they had selected.
    """
    data, (seed,) = request.table, request.seeds
    rows = data.rows // 2
    seeds = np.random.SeedSequence([seed, SEEDS]).generate_state(repeats).tolist()
    advance(0, f"{method.title}, {repeats} repeats", repeats)
    traces: list[Trace] = []
    settings: dict[str, Any] = {}
    options = request.options
    halves, together = _halves(data, seed, repeats), _count_together(method, request, plan)
    try:
        while next_halves := tuple(islice(halves, together)):
            first, last = len(traces) + 1, len(traces) + len(next_halves)
            repeat = _on_halves(replace(request, seeds=seeds[first - 1 : last]), next_halves)
            if not traces:
                options = _options_of_repeat(method, repeat, plan.settings, data.rows)
            repeat = replace(repeat, options=options)
            repeat_plan = method.plan(repeat)
            settings = repeat_plan.settings
            name = f"repeat {first}" if first == last else f"repeats {first} to {last}"
            repeat = repeat.as_part(f"{name} of {repeats}", repeat_plan.steps, len(next_halves))
            selected = method.select(repeat, repeat_plan, repeat.hook.advance)
            traces += [_share_seconds(repeat.arrange(trace), len(next_halves)) for trace in selected]
            advance(len(next_halves))
    except KeyboardInterrupt as error:
        running = error.traces if isinstance(error, TrainingInterrupted) else []
        if len(running) != min(together, repeats):  # strengths of a penalty, none of which is chosen yet
            running = []
        raise TrainingInterrupted(_pool_partly(request, traces, running, rows)) from None
    trace = pool_repeats(request, traces, rows)
    return [replace(trace, settings=settings | {"repeats": repeats} | _test_results(traces))]


def _halves(data: TableData, seed: int, repeats: int) -> Iterator[NDArray[np.int64]]:
    for pair in range(repeats // 2):
        yield from divide(data, seed, pair)


def _count_together(method: Method, request: SelectionRequest, plan: Any) -> int:
    """How many repeats train at a time: an even number where models share a tensor, else 1."""
    options, columns = request.options, request.data.encoded_columns
    if not method.trains or not share_a_tensor(options, request.device):
        return 1
    setup: TrainingSetup = plan.setup
    cells = setup.members * setup.variants * columns * (setup.batch_size + max(options.hidden, default=1))
    cells += (
        3 * columns * min(request.rows // 2, MIN_SAMPLE)
    )  # rows, unit columns, and these again as one tensor
    return min(AT_ONCE, max(2, MAX_CELLS // cells // 2 * 2))


def _on_halves(request: SelectionRequest, halves: tuple[NDArray[np.int64], ...]) -> SelectionRequest:
    """The request for one selection per half: on a table of that half or, for several, with one trial per half."""
    if len(halves) == 1:
        return replace(request, data=take_rows(request.table, halves[0]))
    return replace(request, subsets=halves)


def _share_seconds(trace: Trace, trials: int) -> Trace:
    """The trace with the seconds of each phase divided by the number of trials that shared them."""
    if trials == 1:
        return trace
    phases = [replace(phase, seconds=phase.seconds / trials) for phase in trace.phases]
    return replace(trace, phases=phases)


def _pool_partly(
    request: SelectionRequest, finished: list[Trace], running: list[Trace], rows: int
) -> list[Trace]:
    """The traces at an interruption: those of the finished pairs, pooled, else those of the repeats in training."""
    if len(finished) >= 2:
        return [pool_repeats(request, finished[: len(finished) // 2 * 2], rows)]
    # Of a surplus that was not removed yet, the first features count.
    size = min([request.k, *(len(trace.order) for trace in running)])
    if len(running) < 2 or size <= len(request.kept):
        return []
    return [pool_repeats(replace(request, k=size), [trace.first(size) for trace in running], rows)]


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
        half = method.plan(replace(request, options=options)).settings
        batches = all_rows / settings.get("batch_size", 1)
        half_batches = request.rows / half.get("batch_size", 1)
        options = replace(options, epochs=BUDGET * epochs * batches / half_batches)
    return options


def divide(data: TableData, seed: int, pair: int) -> list[NDArray[np.int64]]:
    """Two halves of the rows, without the last of an odd number; every class is divided evenly."""
    rng = np.random.default_rng([seed, HALVES, pair])
    if data.units is not None:
        return data.units.halves(rng)
    shuffled = rng.permutation(data.rows)
    codes = data.target.codes
    if codes is not None:
        shuffled = shuffled[np.argsort(codes[shuffled], kind="stable")]
    return [np.sort(shuffled[start::2][: data.rows // 2]) for start in range(2)]


def _test_results(traces: list[Trace]) -> dict[str, float]:
    """The median over the repeats of the smallest q-value of the univariate test, where the method has one."""
    q_values = [trace.settings["min_q_value"] for trace in traces if "min_q_value" in trace.settings]
    return {"min_q_value": float(np.median(q_values))} if q_values else {}
