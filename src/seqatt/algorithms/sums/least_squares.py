"""Least squares on files: one pass accumulates a Gram matrix, from which the linear methods select.

The most frequent values of a category have one indicator column each; all other values are zero in all of them.
These columns are never materialised (``category_products.py``).
"""

from __future__ import annotations

import time
from functools import reduce
from operator import add
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from seqatt.algorithms.linear import column_scale, make_trace
from seqatt.algorithms.sums.category_products import category_products
from seqatt.data.files.encoding.rows import EncodedRows
from seqatt.data.files.file_data import FileData
from seqatt.distributed.process_group import ProcessGroup
from seqatt.linear.gram import Gram
from seqatt.linear.inputs import FeatureBlocks, read_blocks
from seqatt.linear.residual_problem import ResidualFromGram
from seqatt.linear.stepwise import Rule, select_stepwise
from seqatt.linear.threads import Floats, single_blas_thread
from seqatt.trace import Trace
from seqatt.training.state import Arrays


class GramAccumulator:
    """Accumulates the Gram matrix of numbers, indicator columns of frequent categories, and targets."""

    def __init__(self, data: FileData, rule: Rule | None, max_categories: int) -> None:
        """``rule`` chooses the next feature; without one it is that of OMP."""
        self._data, self._rule = data, rule
        # Per category: the indicator column of each code, -1 for codes without one.
        self._columns = [category.frequency_ranks(max_categories) for category in data.categories]
        self._widths = [int(columns.max()) + 1 for columns in self._columns]
        self._feature_of = np.concatenate([data.feature_of, np.repeat(data.coded_features, self._widths)])
        self._gram = Gram()
        self._started = time.perf_counter()
        self.settings: dict[str, Any] = {}

    def layout(self) -> list[list[float]]:
        return [self._feature_of.astype(float).tolist()]

    def add(self, rows: EncodedRows) -> None:
        weights = rows.weights.astype(np.float64)
        if not weights.any():
            return
        indicators = [columns[rows.codes[:, j]] for j, columns in enumerate(self._columns)]
        targets = _targets(rows, self._data)
        with single_blas_thread():  # the result must not depend on the number of threads
            products = category_products(rows.numbers, indicators, self._widths, targets, weights)
        self._gram.join(rows.count, *products, targets.shape[1])

    def state_dict(self) -> Arrays:
        return self._gram.arrays()

    def load_state_dict(self, arrays: Arrays) -> None:
        gram = Gram.from_arrays(arrays)
        if gram.rows and gram.features != len(self._feature_of):
            raise ValueError("it has other columns")
        self._gram = gram

    def allreduce(self, group: ProcessGroup) -> None:
        if group.size == 1:
            return
        if not self._gram.rows:  # zeros in the shapes of the other ranks
            targets = _targets(self._data.empty_rows(), self._data).shape[1]
            width = len(self._feature_of) + targets
            self._gram.join(0, 0.0, np.zeros(width), np.zeros((width, width)), targets)
        arrays = self._gram.arrays()
        flat = torch.from_numpy(np.concatenate([np.ravel(arrays[name]) for name in sorted(arrays)]))
        # One rank at a time: the matrices of all ranks together might not fit in memory.
        self._gram = reduce(
            add, (_unflatten(received.numpy(), arrays) for received in group.broadcast_each(flat))
        )

    def select(self, k: int) -> Trace:
        """Select up to ``k`` features from the accumulated matrix."""
        gram, constant = self._gram, self._data.constant
        if not gram.weight:
            raise ValueError("sample_weight: all weights are 0; at least one row needs a positive weight")
        blocks = read_blocks(self._feature_of, len(self._feature_of))
        count = min(k, int((~constant).sum()))
        step_scores: list[Floats] = []
        with single_blas_thread():
            residual = _residual(gram, blocks, constant)
            path = select_stepwise(residual, blocks, count, self._rule, False, step_scores)
        seconds = time.perf_counter() - self._started
        return make_trace(path, step_scores, constant, gram.weight, k, seconds)


def _unflatten(flat: Floats, shapes: Arrays) -> Gram:
    """A Gram matrix from its arrays in one vector, concatenated in the order of their names."""
    arrays, start = {}, 0
    for name in sorted(shapes):
        stop = start + shapes[name].size
        arrays[name] = flat[start:stop].reshape(shapes[name].shape)
        start = stop
    return Gram.from_arrays(arrays)


def _residual(gram: Gram, blocks: FeatureBlocks, constant: NDArray[np.bool_]) -> ResidualFromGram:
    normal, column = gram.columns(centre=True)
    unit = column_scale(normal.square / gram.weight, blocks, constant)
    return ResidualFromGram(
        normal.cross / unit[:, None],
        normal.target_squares,
        lambda j: (column(j) / (unit * unit[j]), 0),
        normal.square / unit**2,
    )


def _targets(rows: EncodedRows, data: FileData) -> Floats:
    """Targets (n, outputs): one indicator column per class, or numbers."""
    if data.target.task == "multiclass":
        return np.asarray(np.eye(data.target.outputs)[rows.target])
    return data.target.loss.as_numbers(rows.target, data.target.values).astype(np.float64)[:, None]
