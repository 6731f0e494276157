"""Least squares from files: one pass gathers a Gram matrix, which is all these methods need.

A category's most frequent values have a column each; the others share the row of zeros. The columns are never
written out (``crossing.py``).
"""

from __future__ import annotations

import time
from functools import reduce
from operator import add

import numpy as np
import torch
from numpy.typing import NDArray

from seqatt.algorithms.linear import RULES, make_trace
from seqatt.data.files.file_data import FileData
from seqatt.data.files.rows import EncodedRows
from seqatt.distributed.process_group import ProcessGroup
from seqatt.linear.gram import Gram, NormalEquations
from seqatt.linear.gram_pursuit import GramPursuit
from seqatt.linear.inputs import FeatureBlocks, read_blocks
from seqatt.linear.path import LinearPath
from seqatt.linear.residual import ResidualFromGram
from seqatt.linear.stepwise import select_stepwise
from seqatt.linear.threads import Floats, calm
from seqatt.selection import Trace
from seqatt.streaming.options import SumOptions
from seqatt.streaming.snapshot import Arrays
from seqatt.streaming.sums.category_products import category_products

_RULE_OF = {"linear_sequential_lasso": "sequential_lasso", "linear_attention": "linear_attention"}


class GramAccumulator:
    """A Gram of the columns that numbers and frequent categories are."""

    def __init__(self, stream: FileData, method: str, options: SumOptions) -> None:
        self._stream, self._method = stream, method
        self._softmax = getattr(options, "parameterisation", None) == "softmax"
        self._columns = [category.frequent(options.max_categories) for category in stream.categories]
        self._widths = [int(numbers.max()) + 1 for numbers in self._columns]
        self._feature_of = np.concatenate(
            [stream.numeric_feature, np.repeat(stream.categorical_feature, self._widths)]
        )
        self._gram = Gram()
        self._started = time.perf_counter()
        self.settings = options.record()

    def layout(self) -> list[list[float]]:
        return [self._feature_of.astype(float).tolist()]

    def add(self, rows: EncodedRows) -> None:
        weights = rows.weights.astype(np.float64)
        if not weights.any():
            return
        slots = [numbers[rows.places[:, j]] for j, numbers in enumerate(self._columns)]
        targets = _targets(rows, self._stream)
        with calm():  # so that the number of threads changes no digit
            found = category_products(rows.numbers, slots, self._widths, targets, weights)
        self._gram.join(rows.count, *found, targets.shape[1])

    def held(self) -> Arrays:
        return self._gram.arrays()

    def load_state_dict(self, arrays: Arrays) -> None:
        gram = Gram.from_arrays(arrays)
        if gram.rows and gram.features != len(self._feature_of):
            raise ValueError("there are other columns")
        self._gram = gram

    def join(self, team: ProcessGroup) -> None:
        if team.size == 1:
            return
        if not self._gram.rows:  # of the shapes that everyone's have
            targets = _targets(self._stream.no_rows(), self._stream).shape[1]
            width = len(self._feature_of) + targets
            self._gram.join(0, 0.0, np.zeros(width), np.zeros((width, width)), targets)
        mine = self._gram.arrays()
        flat = torch.from_numpy(np.concatenate([np.ravel(mine[name]) for name in sorted(mine)]))
        # One at a time: all of them might not fit.
        self._gram = reduce(add, (_read(said.numpy(), mine) for said in team.in_turn(flat)))

    def choose(self, k: int) -> Trace:
        gram, constant = self._gram, self._stream.constant
        if not gram.weight:
            raise ValueError("sample_weight: no row weighs anything; there is nothing to fit")
        blocks = read_blocks(self._feature_of, len(self._feature_of))
        most = min(k, int((~constant).sum()))
        seen: list[Floats] = []
        with calm():
            if self._method == "linear_omp":
                path = _pursue(gram, blocks, constant, most, seen)
            else:
                rule = RULES["softmax" if self._softmax else _RULE_OF[self._method]]
                path = select_stepwise(_problem(gram, blocks, constant), blocks, most, rule, False, seen)
        size = np.sqrt(path.null_loss * gram.weight)
        trace = make_trace(constant, path, [s / size for s in seen], k, time.perf_counter() - self._started)
        explained = 1 - float(path.losses[-1] / path.null_loss) if len(path.losses) else 0.0
        trace.settings |= {"stopped": path.stopped, "explained": explained}
        return trace


def _read(flat: Floats, shapes: Arrays) -> Gram:
    """From everything in one row, by name."""
    arrays, start = {}, 0
    for name in sorted(shapes):
        stop = start + shapes[name].size
        arrays[name] = flat[start:stop].reshape(shapes[name].shape)
        start = stop
    return Gram.from_arrays(arrays)


def _pursue(
    gram: Gram, blocks: FeatureBlocks, constant: NDArray[np.bool_], most: int, seen: list[Floats]
) -> LinearPath:
    normal, column = gram.columns(centre=True)
    unit = _units(normal.square, gram, blocks, constant)
    pursuit = GramPursuit(
        normal.cross / unit[:, None], normal.energy, blocks, exact=normal.square / unit**2, seen=seen
    )
    return pursuit.run(most, lambda j: (column(j) / (unit * unit[j]), 0)).path(flat=False)


def _problem(gram: Gram, blocks: FeatureBlocks, constant: NDArray[np.bool_]) -> ResidualFromGram:
    normal = gram.normal(centre=True)
    unit = _units(np.diag(normal.square), gram, blocks, constant)
    square = normal.square / unit / unit[:, None]
    return ResidualFromGram(NormalEquations(square, normal.cross / unit[:, None], normal.energy))


def _units(norms: Floats, gram: Gram, blocks: FeatureBlocks, constant: NDArray[np.bool_]) -> Floats:
    """For every column its divisor: a feature's columns together have variance 1, as in memory."""
    total = np.bincount(blocks.feature_of, norms / gram.weight, blocks.count)
    return np.asarray(np.sqrt(np.where(constant | (total <= 0), 1.0, total))[blocks.feature_of])


def _targets(rows: EncodedRows, stream: FileData) -> Floats:
    if stream.target.task == "multiclass":
        return np.asarray(np.eye(stream.target.outputs)[rows.target])
    return rows.target.astype(np.float64)[:, None]
