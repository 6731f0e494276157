"""CMIM from files: one pass counts how often values of two features and the target meet.

Numbers are binned and categories coded by what the first look saw, so given these codes the answer is exact.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from seqatt.classic.bins import bin_edges
from seqatt.classic.cmim import Search, default_bins, trace_of
from seqatt.classic.counts import information_in
from seqatt.selection import Trace
from seqatt.stream.ahead import AHEAD, read_ahead
from seqatt.stream.options import CMIMOnFiles
from seqatt.stream.rows import Rows
from seqatt.stream.source import Stream, look_again

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]
MOST_CELLS = 1 << 26  # of all joint tables together, eight bytes each


def choose(
    stream: Stream, k: int, options: CMIMOnFiles, advance: Callable[[int], None]
) -> tuple[Trace, dict[str, Any]]:
    coder = Coder(stream, options)
    joint = Joint(coder.widths, coder.classes)
    for rows in read_ahead(_each(stream), AHEAD):
        joint.add(coder.codes(rows), coder.labels(rows), rows.weights)
        advance(rows.count)
    search = Search(joint, np.arange(stream.features), stream.constant, options.lazy)
    trace = trace_of(search, stream.constant, k, lambda _: None)
    trace.settings["rows"] = joint.rows
    return trace, options.record() | {"bins": coder.bins}


class Coder:
    """Rows as small whole numbers, one a feature: ``widths[f]`` is how many there can be."""

    def __init__(self, stream: Stream, options: CMIMOnFiles) -> None:
        self.numeric = stream.target.task == "regression"
        classes = None if self.numeric else max(2, stream.target.outputs)
        self.bins = options.bins or default_bins(int(stream.expected), classes)
        look = look_again(stream, options.look)
        self._labels = bin_edges(look.target, self.bins, look.weights) if self.numeric else None
        self.classes = self.bins if self.numeric else classes or 2
        self.widths = [1] * stream.features
        self._numbers = []  # feature, its column, edges of its bins, whether a column beside it marks gaps
        column = 0
        for number in stream.numbers:
            feature = stream.names.index(number.name)
            edges = bin_edges(look.numbers[:, column], self.bins, look.weights)
            self._numbers.append((feature, column, edges, number.indicator))
            self.widths[feature] = len(edges) + 1 + number.indicator
            column += number.width
        self._categories = []
        for place, category in enumerate(stream.categories):
            feature = stream.names.index(category.name)
            slots = category.frequent(options.max_categories) + 1
            self._categories.append((feature, place, slots))
            self.widths[feature] = int(slots.max()) + 1

    def codes(self, rows: Rows) -> Codes:
        """(features, n)"""
        out = np.empty((len(self.widths), rows.count), dtype=np.int64)
        for feature, column, edges, gaps in self._numbers:
            out[feature] = np.searchsorted(edges, rows.numbers[:, column], side="right")
            if gaps:
                out[feature][rows.numbers[:, column + 1] > 0] = len(edges) + 1
        for feature, place, slots in self._categories:
            out[feature] = slots[rows.places[:, place]]
        return out

    def labels(self, rows: Rows) -> Codes:
        if self._labels is not None:
            return np.searchsorted(self._labels, rows.target, side="right")
        return rows.target.astype(np.int64)


class Joint:
    """The joint table of every two variables and the target, gathered block by block."""

    def __init__(self, widths: list[int], classes: int) -> None:
        cells = classes * (sum(widths) ** 2 - sum(w * w for w in widths)) // 2
        if cells > MOST_CELLS:
            raise ValueError(
                f"X: cmim on files counts pairs of values, and {len(widths)} features have {cells:,} of them "
                f"(at most {MOST_CELLS:,}); use fewer bins, a smaller max_categories, or ignore some columns"
            )
        self.widths, self.classes = widths, classes
        self.rows = 0
        self._alone = [np.zeros((1, classes, w)) for w in widths]
        self._pairs = [
            [np.zeros((w, classes, other)) for other in widths[u + 1 :]] for u, w in enumerate(widths)
        ]

    def add(self, codes: Codes, labels: Codes, weights: NDArray[Any]) -> None:
        self.rows += len(labels)
        even = None if (weights == weights[:1]).all() else weights.astype(np.float64)
        unit = 1.0 if even is not None else float(weights[0])
        for u, mine in enumerate(self._pairs):
            _count(self._alone[u], labels * self.widths[u] + codes[u], even, unit)
            cell = codes[u] * self.classes + labels
            for v, table in enumerate(mine, u + 1):
                _count(table, cell * self.widths[v] + codes[v], even, unit)

    def information(self, variable: int, given: int | None = None) -> Floats:
        """``I(Y; X)`` or ``I(Y; X | Z)`` in nats."""
        if given is None:
            table = self._alone[variable]
        elif given < variable:
            table = self._pairs[given][variable - given - 1]
        else:
            table = self._pairs[variable][given - variable - 1].transpose(2, 1, 0)
        return np.array([information_in(table)])


def _count(table: Floats, cells: Codes, weights: Floats | None, unit: float) -> None:
    found = np.bincount(cells, weights, table.size)
    table += (found if unit == 1.0 else found * unit).reshape(table.shape)


def _each(stream: Stream) -> Iterator[Rows]:
    for part in stream.files.parts:
        for rows, _ in stream.read(part):
            yield rows
