"""CMIM from files: one pass counts how often values of two features and the target meet.

Numbers are binned and categories coded by what the first look saw, so given these codes the answer is exact.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from seqatt.algorithms.filters.binning import bin_edges
from seqatt.algorithms.filters.cmim import CMIMSearch, default_bins, trace_of
from seqatt.algorithms.filters.joint_counts import mutual_information_of
from seqatt.data.files.file_data import FileData, read_schema_sample
from seqatt.data.files.rows import EncodedRows
from seqatt.distributed.process_group import ProcessGroup
from seqatt.selection import Trace
from seqatt.streaming.options import CMIMSumOptions
from seqatt.streaming.snapshot import Arrays

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]
MOST_CELLS = 1 << 26  # of all joint tables together, eight bytes each


class PairCounts:
    """How often values meet, of what the first look said values are."""

    def __init__(self, stream: FileData, options: CMIMSumOptions) -> None:
        self._stream, self._lazy = stream, options.lazy
        self._coder = RowCoder(stream, options)
        self._joint = JointTables(self._coder.widths, self._coder.classes)
        self.settings = options.record() | {"bins": self._coder.bins}

    def layout(self) -> list[list[float]]:
        return [list(map(float, self._coder.widths)), *(edges.tolist() for edges in self._coder.edges)]

    def add(self, rows: EncodedRows) -> None:
        if rows.count:
            self._joint.add(self._coder.codes(rows), self._coder.labels(rows), rows.weights)

    def held(self) -> Arrays:
        return {"cells": self._joint.cells.copy()}

    def load_state_dict(self, arrays: Arrays) -> None:
        if arrays["cells"].shape != self._joint.cells.shape:
            raise ValueError("cells is of another shape")
        self._joint.cells[:] = arrays["cells"]

    def join(self, team: ProcessGroup) -> None:
        team.add_up([torch.from_numpy(self._joint.cells)])

    def choose(self, k: int) -> Trace:
        if not self._joint.cells.any():
            raise ValueError("sample_weight: no row weighs anything; there is nothing to count")
        constant = self._stream.constant
        search = CMIMSearch(self._joint, np.arange(self._stream.features), constant, self._lazy)
        return trace_of(search, constant, k, lambda _: None)


class RowCoder:
    """Rows as small whole numbers, one a feature: ``widths[f]`` is how many there can be."""

    def __init__(self, stream: FileData, options: CMIMSumOptions) -> None:
        self.numeric = stream.target.task == "regression"
        classes = None if self.numeric else max(2, stream.target.outputs)
        self.bins = options.bins or default_bins(int(stream.expected), classes)
        look = read_schema_sample(stream, options)
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

    @property
    def edges(self) -> list[Floats]:
        """Of the bins of all numbers, and of the target where it is one."""
        return [edges for _, _, edges, _ in self._numbers] + ([] if self._labels is None else [self._labels])

    def codes(self, rows: EncodedRows) -> Codes:
        """(features, n)"""
        out = np.empty((len(self.widths), rows.count), dtype=np.int64)
        for feature, column, edges, gaps in self._numbers:
            out[feature] = np.searchsorted(edges, rows.numbers[:, column], side="right")
            if gaps:
                out[feature][rows.numbers[:, column + 1] > 0] = len(edges) + 1
        for feature, place, slots in self._categories:
            out[feature] = slots[rows.places[:, place]]
        return out

    def labels(self, rows: EncodedRows) -> Codes:
        if self._labels is not None:
            return np.searchsorted(self._labels, rows.target, side="right")
        return rows.target.astype(np.int64)


class JointTables:
    """The joint table of every two variables and the target, gathered block by block."""

    def __init__(self, widths: list[int], classes: int) -> None:
        cells = classes * (sum(widths) ** 2 - sum(w * w for w in widths)) // 2
        if cells > MOST_CELLS:
            raise ValueError(
                f"X: cmim on files counts pairs of values, and {len(widths)} features have {cells:,} of them "
                f"(at most {MOST_CELLS:,}); use fewer bins, a smaller max_categories, or ignore some columns"
            )
        self.widths, self.classes = widths, classes
        self.cells = np.zeros(cells + classes * sum(widths))  # all tables, one after another
        tables = _cut(self.cells, classes, widths)
        self._alone = [next(tables) for _ in widths]
        self._pairs = [[next(tables) for _ in widths[u + 1 :]] for u in range(len(widths))]

    def add(self, codes: Codes, labels: Codes, weights: NDArray[Any]) -> None:
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
        return np.array([mutual_information_of(table)])


def _count(table: Floats, cells: Codes, weights: Floats | None, unit: float) -> None:
    found = np.bincount(cells, weights, table.size)
    table += (found if unit == 1.0 else found * unit).reshape(table.shape)


def _cut(cells: Floats, classes: int, widths: list[int]) -> Iterator[Floats]:
    """The tables of single variables, then those of pairs."""
    shapes = [(1, classes, w) for w in widths]
    shapes += [(w, classes, other) for u, w in enumerate(widths) for other in widths[u + 1 :]]
    start = 0
    for shape in shapes:
        stop = start + shape[0] * shape[1] * shape[2]
        yield cells[start:stop].reshape(shape)
        start = stop
