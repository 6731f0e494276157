"""Least squares from files: one pass gathers a Gram matrix, which is all these methods need.

A category's most frequent values have a column each; the others share the row of zeros.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from seqatt.linear.gram import Gram, Normal
from seqatt.linear.inputs import Blocks, read_blocks
from seqatt.linear.methods import RULES, make_trace
from seqatt.linear.path import Path
from seqatt.linear.pursuit import Pursuit
from seqatt.linear.remainder import FromGram
from seqatt.linear.steps import choose_in_steps
from seqatt.linear.threads import Floats, calm
from seqatt.selection import Trace
from seqatt.stream.ahead import AHEAD, read_ahead
from seqatt.stream.options import GatheringOnFiles
from seqatt.stream.rows import Rows
from seqatt.stream.source import Stream

CELLS, FEWEST = 1 << 22, 1 << 8  # numbers, and rows at least, that are opened at a time
_RULE_OF = {"linear_sequential_lasso": "sequential_lasso", "linear_attention": "linear_attention"}


def choose(
    stream: Stream, k: int, method: str, options: GatheringOnFiles, advance: Callable[[int], None]
) -> tuple[Trace, dict[str, Any]]:
    started = time.perf_counter()
    gram, rows = gather(stream, options, advance)
    owner = _owner(stream, options)
    blocks = read_blocks(owner, len(owner))
    most = min(k, int((~stream.constant).sum()))
    seen: list[Floats] = []
    with calm():
        if method == "linear_omp":
            path = _pursue(gram, blocks, stream.constant, most, seen)
        else:
            softmax = getattr(options, "parameterisation", None) == "softmax"
            rule = RULES["softmax" if softmax else _RULE_OF[method]]
            problem = _problem(gram, blocks, stream.constant)
            path = choose_in_steps(problem, blocks, most, rule, False, seen)
    size = np.sqrt(path.null_loss * gram.weight)
    trace = make_trace(stream.constant, path, [s / size for s in seen], k, time.perf_counter() - started)
    trace.settings["rows"] = rows
    explained = 1 - float(path.losses[-1] / path.null_loss) if len(path.losses) else 0.0
    return trace, options.record() | {"stopped": path.stopped, "explained": explained}


def _pursue(gram: Gram, blocks: Blocks, constant: NDArray[np.bool_], most: int, seen: list[Floats]) -> Path:
    normal, column = gram.columns(centre=True)
    unit = _units(normal.square, gram, blocks, constant)
    pursuit = Pursuit(
        normal.cross / unit[:, None], normal.energy, blocks, exact=normal.square / unit**2, seen=seen
    )
    return pursuit.run(most, lambda j: (column(j) / (unit * unit[j]), 0)).path(flat=False)


def _problem(gram: Gram, blocks: Blocks, constant: NDArray[np.bool_]) -> FromGram:
    normal = gram.normal(centre=True)
    unit = _units(np.diag(normal.square), gram, blocks, constant)
    square = normal.square / unit / unit[:, None]
    return FromGram(Normal(square, normal.cross / unit[:, None], normal.energy))


def _units(norms: Floats, gram: Gram, blocks: Blocks, constant: NDArray[np.bool_]) -> Floats:
    """For every column its divisor: a feature's columns together have variance 1, as in memory."""
    total = np.bincount(blocks.owner, norms / gram.weight, blocks.count)
    return np.asarray(np.sqrt(np.where(constant | (total <= 0), 1.0, total))[blocks.owner])


def gather(stream: Stream, options: GatheringOnFiles, advance: Callable[[int], None]) -> tuple[Gram, int]:
    """Sums over all rows, read ahead, and how many there were; their order does not matter."""
    gram, count = Gram(), 0
    columns = [category.frequent(options.max_categories) for category in stream.categories]
    at_once = max(FEWEST, CELLS // len(_owner(stream, options)))
    blocks = (rows for part in stream.files.parts for rows, _ in stream.read(part))
    for rows in read_ahead(blocks, AHEAD):
        for start in range(0, rows.count, at_once):
            some = rows.take(slice(start, start + at_once))
            gram.update(_open(some, columns), _targets(some, stream), some.weights)
        count += rows.count  # a Gram does not count rows that weigh nothing
        advance(rows.count)
    return gram, count


def _owner(stream: Stream, options: GatheringOnFiles) -> NDArray[np.int64]:
    widths = [int(category.frequent(options.max_categories).max()) + 1 for category in stream.categories]
    return np.concatenate([stream.number_owner, np.repeat(stream.category_owner, widths)])


def _open(rows: Rows, columns: list[NDArray[np.int64]]) -> Floats:
    widths = [int(slots.max()) + 1 for slots in columns]
    start = rows.numbers.shape[1]
    out = np.zeros((rows.count, start + sum(widths)))
    out[:, :start] = rows.numbers
    for j, slots in enumerate(columns):
        slot = slots[rows.places[:, j]]
        which = np.flatnonzero(slot >= 0)
        out[which, start + slot[which]] = 1.0
        start += widths[j]
    return out


def _targets(rows: Rows, stream: Stream) -> Floats:
    if stream.target.task == "multiclass":
        return np.asarray(np.eye(stream.target.outputs)[rows.target])
    return rows.target.astype(np.float64)[:, None]
