"""The linear methods: OMP, Sequential LASSO and linear attention by least squares.

The columns of a feature are scaled to a total variance of 1, whether it is a number, a category or a declared group.
The score of a feature is the norm of the correlations of its columns with the residual. It is also the penalty at
which the group LASSO, with the usual weight for a group's size, lets the feature enter, so the three methods agree.
The targets of a classification are one-hot.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from seqatt.algorithms.registry import Plan, register
from seqatt.algorithms.request import SelectionRequest
from seqatt.data.tables.table_data import SparseColumns, TableData
from seqatt.linear.attention import choose_by_attention
from seqatt.linear.design_matrix import DesignMatrix
from seqatt.linear.inputs import FeatureBlocks, read_blocks
from seqatt.linear.omp import pursue_rows
from seqatt.linear.path import LinearPath
from seqatt.linear.sequential_lasso import choose_by_lasso
from seqatt.linear.softmax_attention import choose_by_softmax
from seqatt.linear.stepwise import Rule, make_problem, select_stepwise
from seqatt.linear.threads import Floats
from seqatt.progress import Advance
from seqatt.trace import PhaseRecord, Trace

LINEAR_METHODS = ("linear_omp", "linear_sequential_lasso", "linear_attention")


def rule_of(method: str, options: Any) -> Rule | None:
    """How a linear method chooses its next feature; None: the one most correlated with the residual (OMP)."""
    if method == "linear_attention":
        return choose_by_softmax if options.parameterisation == "softmax" else choose_by_attention
    return choose_by_lasso if method == "linear_sequential_lasso" else None


def select_linear(request: SelectionRequest, plan: Plan, advance: Advance, *, method: str) -> list[Trace]:
    """Select k features; after an early stop, the features with the highest last scores fill up the selection.

    There is no randomness: every seed has the same result.
    """
    started = time.perf_counter()
    data, rule = request.table, rule_of(method, request.options)
    blocks = read_blocks(data.feature_of, len(data.feature_of))
    design, targets = _prepare(data, blocks)
    count = min(request.k, int((~data.constant).sum()))
    step_scores: list[Floats] = []
    if rule is None:
        path = pursue_rows(design, targets, count, blocks, False, step_scores)
    else:
        path = select_stepwise(make_problem(design, targets), blocks, count, rule, False, step_scores)
    weight = float(data.rows if data.weights is None else data.weights.sum(dtype=np.float64))
    trace = make_trace(path, step_scores, data.constant, weight, request.k, time.perf_counter() - started)
    return [trace] * len(request.seeds)


for _name in LINEAR_METHODS:
    register(_name)(partial(select_linear, method=_name))


def _prepare(data: TableData, blocks: FeatureBlocks) -> tuple[DesignMatrix, Floats]:
    """The design matrix, centred and scaled per feature, and the centred targets (n, o), both with row weights."""
    values = data.target.as_numbers()
    if data.target.task == "multiclass":
        values = np.eye(data.target.outputs)[values]
    targets = np.asarray(values, dtype=np.float64)
    weights = np.ones(data.rows) if data.weights is None else data.weights.astype(np.float64)
    columns = _SparseRows(data.columns) if isinstance(data.columns, SparseColumns) else data.columns
    rows = DesignMatrix(columns)
    mean = rows.products(np.empty(0, dtype=np.intp), weights[:, None])[0] / weights.sum()
    root = None if data.weights is None else np.sqrt(weights)
    column_variance = DesignMatrix(columns, mean, None, root).squared_norms() / weights.sum()
    targets = targets - weights @ targets / weights.sum()
    design = DesignMatrix(columns, mean, column_scale(column_variance, blocks, data.constant), root)
    return design, targets if root is None else targets * root[:, None]


def column_scale(column_variance: Floats, blocks: FeatureBlocks, constant: NDArray[np.bool_]) -> Floats:
    """The divisor (c,) of each column, for which the columns of a feature have a total variance of 1."""
    variance = np.bincount(blocks.feature_of, column_variance, blocks.count)  # total per feature
    return np.asarray(np.sqrt(np.where(~constant & (variance > 0), variance, 1.0))[blocks.feature_of])


@dataclass(frozen=True)
class _SparseRows:
    """A sparse table whose rows are made dense when a slice of them is read."""

    columns: SparseColumns

    @property
    def shape(self) -> tuple[int, int]:
        return self.columns.shape

    def __getitem__(self, rows: slice) -> NDArray[np.float32]:
        return self.columns.to_dense(np.arange(*rows.indices(self.shape[0])))


def make_trace(
    path: LinearPath,
    step_scores: list[Floats],
    constant: NDArray[np.bool_],
    weight: float,
    k: int,
    seconds: float,
) -> Trace:
    """A path as a trace; features that are not on the path follow by their last scores, constant features last.

    ``step_scores`` has the correlations (d,) of all features with the residual at each step. ``weight`` is the sum of
    the row weights, by which they are normalised.
    """
    features, norm = len(constant), np.sqrt(path.null_loss * weight)
    step_scores = [scores / norm for scores in step_scores]
    last_scores = step_scores[-1] if step_scores else np.zeros(features)
    by_score = np.lexsort((np.arange(features), -last_scores, constant))
    selected = set(path.order)
    ranked = path.order + [int(f) for f in by_score if int(f) not in selected]
    unexplained = [float(loss / path.null_loss) for loss in path.losses]  # share of the sum of squares
    records = [
        PhaseRecord(1, "all", share, seconds / len(step_scores), [feature], scores=scores)
        for feature, share, scores in zip(path.order, unexplained, step_scores, strict=False)
    ]
    trace = Trace(ranked[:k], ranked[k:], records)
    trace.settings |= {"stopped": path.stopped, "explained": 1 - unexplained[-1] if unexplained else 0.0}
    return trace
