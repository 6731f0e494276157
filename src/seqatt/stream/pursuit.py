"""Orthogonal Matching Pursuit from files: one pass gathers a Gram matrix, which is all it needs.

A category's most frequent values have a column each; the others share the row of zeros.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from seqatt.linear.gram import Gram
from seqatt.linear.inputs import read_blocks
from seqatt.linear.methods import make_trace
from seqatt.linear.pursuit import Pursuit
from seqatt.linear.threads import Floats, calm
from seqatt.selection import Trace
from seqatt.stream.ahead import AHEAD, read_ahead
from seqatt.stream.options import PursuitOnFiles
from seqatt.stream.rows import Rows
from seqatt.stream.source import Stream


def choose(
    stream: Stream, k: int, options: PursuitOnFiles, advance: Callable[[int], None]
) -> tuple[Trace, dict[str, Any]]:
    started = time.perf_counter()
    gram = gather(stream, options, advance)
    owner = _owner(stream, options)
    blocks = read_blocks(owner, len(owner))
    normal, column = gram.columns(centre=True)
    # A feature's columns together have variance 1, as in memory.
    total = np.bincount(owner, normal.square / gram.weight, blocks.count)
    unit = np.sqrt(np.where(stream.constant | (total <= 0), 1.0, total))[owner]
    seen: list[Floats] = []
    pursuit = Pursuit(
        normal.cross / unit[:, None], normal.energy, blocks, exact=normal.square / unit**2, seen=seen
    )
    with calm():
        path = pursuit.run(
            min(k, int((~stream.constant).sum())), lambda j: (column(j) / (unit * unit[j]), 0)
        ).path(flat=False)
    size = np.sqrt(path.null_loss * gram.weight)
    trace = make_trace(stream.constant, path, [s / size for s in seen], k, time.perf_counter() - started)
    trace.settings["rows"] = gram.rows
    explained = 1 - float(path.losses[-1] / path.null_loss) if len(path.losses) else 0.0
    return trace, options.record() | {"stopped": path.stopped, "explained": explained}


def gather(stream: Stream, options: PursuitOnFiles, advance: Callable[[int], None]) -> Gram:
    """Sums over all rows, read ahead; their order does not matter."""
    gram = Gram()
    columns = [category.frequent(options.max_categories) for category in stream.categories]
    blocks = (rows for part in stream.files.parts for rows, _ in stream.read(part))
    for rows in read_ahead(blocks, AHEAD):
        gram.update(_open(rows, columns), _targets(rows, stream), rows.weights)
        advance(rows.count)
    return gram


def _owner(stream: Stream, options: PursuitOnFiles) -> NDArray[np.int64]:
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
