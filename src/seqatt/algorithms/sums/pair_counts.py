"""CMIM on files: one pass counts the joint values of every two features and the target.

Bins and categories come from the schema sample; given these, the result is exact.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from seqatt.algorithms.filters.cmim import CMIMSearch, default_bins, run_search
from seqatt.algorithms.filters.joint_counts import mutual_information_of
from seqatt.algorithms.filters.options import CMIMOptions
from seqatt.algorithms.filters.variables import bin_edges
from seqatt.data.files.encoding.rows import EncodedRows
from seqatt.data.files.file_data import FileData, read_schema_sample
from seqatt.data.files.options import FileOptions
from seqatt.distributed.process_group import ProcessGroup
from seqatt.trace import Trace
from seqatt.training.selection_state import Quotas
from seqatt.training.state import Arrays

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]
MAX_CELLS = 1 << 26  # cells of all joint tables together, 8 bytes each


class PairCounts:
    """Accumulates the joint counts of values, in the bins and categories of the schema sample."""

    def __init__(
        self,
        data: FileData,
        options: CMIMOptions,
        file_options: FileOptions,
        kept: Sequence[int] = (),
        quotas: Quotas | None = None,
    ) -> None:
        self._data, self._lazy, self._kept, self._quotas = data, options.lazy, kept, quotas
        self._coder = RowCoder(data, options.bins, file_options)
        self._tables = JointTables(self._coder.widths, self._coder.classes)
        self.settings: dict[str, Any] = {"bins": self._coder.bins}

    def layout(self) -> list[list[float]]:
        return [list(map(float, self._coder.widths)), *(edges.tolist() for edges in self._coder.edges)]

    def add(self, rows: EncodedRows) -> None:
        if rows.count:
            self._tables.add(self._coder.codes(rows), self._coder.labels(rows), rows.weights)

    def state_dict(self) -> Arrays:
        return {"cells": self._tables.cells.copy()}

    def load_state_dict(self, arrays: Arrays) -> None:
        if arrays["cells"].shape != self._tables.cells.shape:
            raise ValueError("cells has another shape")
        self._tables.cells[:] = arrays["cells"]

    def allreduce(self, group: ProcessGroup) -> None:
        group.allreduce([torch.from_numpy(self._tables.cells)])

    def select(self, k: int) -> Trace:
        """Select ``k`` features from the accumulated counts."""
        if not self._tables.cells.any():
            raise ValueError("sample_weight: all weights are 0; at least one row needs a positive weight")
        constant = self._data.constant
        features = np.array([self._data.feature_of_column[name] for name in self._coder.columns])
        search = CMIMSearch(self._tables, features, constant, self._lazy)
        return run_search(search, constant, k, lambda _: None, self._kept, self._quotas)


class RowCoder:
    """Encodes rows as one small integer per input column, 0 to ``widths[c]`` - 1."""

    def __init__(self, data: FileData, bins: int | None, options: FileOptions) -> None:
        self.numeric = data.target.loss.numeric
        classes = None if self.numeric else max(2, data.target.outputs)
        self.bins = bins or default_bins(int(data.expected_rows), classes)
        sample = read_schema_sample(data, options)
        self._target = data.target
        numbers = self._numeric_target(sample)
        self._target_edges = bin_edges(numbers, self.bins, sample.weights) if self.numeric else None
        self.classes = self.bins if self.numeric else classes or 2
        self.columns = sorted(data.feature_of_column)  # one variable each
        self.widths = [1] * len(self.columns)
        self._numbers = []  # feature, column, bin edges, whether the next column marks missing values
        column = 0
        for number in data.numbers:
            feature = self.columns.index(number.name)
            edges = bin_edges(sample.numbers[:, column], self.bins, sample.weights)
            self._numbers.append((feature, column, edges, number.indicator))
            self.widths[feature] = len(edges) + 1 + number.indicator
            column += number.width
        self._categories = []  # feature, column, the integer of each code: 0 for all infrequent ones
        for column, category in enumerate(data.categories):
            feature = self.columns.index(category.name)
            integers = category.frequency_ranks(options.max_categories) + 1
            self._categories.append((feature, column, integers))
            self.widths[feature] = int(integers.max()) + 1

    @property
    def edges(self) -> list[Floats]:
        """The bin edges of all numbers, and of a numeric target."""
        target = [] if self._target_edges is None else [self._target_edges]
        return [edges for _, _, edges, _ in self._numbers] + target

    def codes(self, rows: EncodedRows) -> Codes:
        """The integers (features, n) of n rows."""
        out = np.empty((len(self.widths), rows.count), dtype=np.int64)
        for feature, column, edges, indicator in self._numbers:
            out[feature] = np.searchsorted(edges, rows.numbers[:, column], side="right")
            if indicator:
                out[feature][rows.numbers[:, column + 1] > 0] = len(edges) + 1
        for feature, column, integers in self._categories:
            out[feature] = integers[rows.codes[:, column]]
        return out

    def labels(self, rows: EncodedRows) -> Codes:
        """The class (n,) of each row, or the bin of a numeric target."""
        if self._target_edges is not None:
            return np.searchsorted(self._target_edges, self._numeric_target(rows), side="right")
        return rows.target.astype(np.int64)

    def _numeric_target(self, rows: EncodedRows) -> NDArray[Any]:
        return self._target.loss.as_numbers(rows.target, self._target.values)


class JointTables:
    """The contingency tables of every single variable and of every two, each with the target."""

    def __init__(self, widths: list[int], classes: int) -> None:
        cells = classes * (sum(widths) ** 2 - sum(w * w for w in widths)) // 2
        if cells > MAX_CELLS:
            raise ValueError(
                f"X: cmim on files counts pairs of values, and {len(widths)} features have {cells:,} of them "
                f"(at most {MAX_CELLS:,}); use fewer bins, a smaller max_categories, or ignore some columns"
            )
        self.widths, self.classes = widths, classes
        self.cells = np.zeros(cells + classes * sum(widths))  # all tables in one array
        tables = _split_tables(self.cells, classes, widths)
        self._singles = [next(tables) for _ in widths]
        self._pairs = [[next(tables) for _ in widths[u + 1 :]] for u in range(len(widths))]

    def add(self, codes: Codes, labels: Codes, weights: NDArray[Any]) -> None:
        """Add rows with codes (features, n), labels (n,) and weights (n,)."""
        equal = (weights == weights[:1]).all()  # counting without weights is faster
        row_weights = None if equal else weights.astype(np.float64)
        factor = float(weights[0]) if equal else 1.0
        for u, pairs in enumerate(self._pairs):
            _count(self._singles[u], labels * self.widths[u] + codes[u], row_weights, factor)
            cell = codes[u] * self.classes + labels
            for v, table in enumerate(pairs, u + 1):
                _count(table, cell * self.widths[v] + codes[v], row_weights, factor)

    def information(self, variable: int, given: int | None = None) -> Floats:
        """``I(Y; X)`` or ``I(Y; X | Z)`` in nats."""
        if given is None:
            table = self._singles[variable]
        elif given < variable:
            table = self._pairs[given][variable - given - 1]
        else:
            table = self._pairs[variable][given - variable - 1].transpose(2, 1, 0)
        return np.array([mutual_information_of(table)])


def _count(table: Floats, cells: Codes, weights: Floats | None, factor: float) -> None:
    """Add the counts of ``cells``, weighted per row or all by one factor, to ``table`` in place."""
    counts = np.bincount(cells, weights, table.size)
    table += (counts if factor == 1.0 else counts * factor).reshape(table.shape)


def _split_tables(cells: Floats, classes: int, widths: list[int]) -> Iterator[Floats]:
    """Views of ``cells``: (1, classes, w) per variable, then (w, classes, v) per pair of variables."""
    shapes = [(1, classes, w) for w in widths]
    shapes += [(w, classes, v) for u, w in enumerate(widths) for v in widths[u + 1 :]]
    start = 0
    for shape in shapes:
        stop = start + shape[0] * shape[1] * shape[2]
        yield cells[start:stop].reshape(shape)
        start = stop
