"""The linear methods: OMP, Sequential LASSO and linear attention by least squares.

The columns of a feature are scaled to a total variance of 1, whether it is a number, a category or a declared group.
The score of a feature is the norm of the correlations of its columns with the residual. It is also the penalty at
which the group LASSO, with the usual weight for a group's size, lets the feature enter, so the three methods agree.
The targets of a classification are one-hot.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

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
from seqatt.linear.stepwise import make_problem, select_stepwise
from seqatt.linear.threads import Floats
from seqatt.progress import Advance
from seqatt.trace import PhaseRecord, Trace

RULES = {
    "linear_sequential_lasso": choose_by_lasso,
    "linear_attention": choose_by_attention,
    "softmax": choose_by_softmax,
}


@register(
    "linear_omp",
)
def linear_omp(request: SelectionRequest, plan: Plan, advance: Advance) -> list[Trace]:
    return _select(request, "linear_omp")


@register(
    "linear_sequential_lasso",
)
def linear_sequential_lasso(request: SelectionRequest, plan: Plan, advance: Advance) -> list[Trace]:
    return _select(request, "linear_sequential_lasso")


@register(
    "linear_attention",
)
def linear_attention(request: SelectionRequest, plan: Plan, advance: Advance) -> list[Trace]:
    softmax = request.options.parameterisation == "softmax"
    return _select(request, "softmax" if softmax else "linear_attention")


def _select(request: SelectionRequest, rule: str) -> list[Trace]:
    """Select k features; after an early stop, the features with the highest last scores fill up the selection.

    There is no randomness: every seed has the same result.
    """
    started = time.perf_counter()
    data, k = request.table, request.k
    blocks = read_blocks(data.feature_of, len(data.feature_of))
    design, targets = _prepare(data, blocks)
    count = min(k, int((~data.constant).sum()))
    step_scores: list[Floats] = []
    if rule == "linear_omp":
        path = pursue_rows(design, targets, count, blocks, False, step_scores)
    else:
        problem = make_problem(design, targets)
        path = select_stepwise(problem, blocks, count, RULES[rule], False, step_scores)
    norm = np.sqrt(path.null_loss * _total_weight(data))
    seconds = time.perf_counter() - started
    trace = make_trace(data.constant, path, [scores / norm for scores in step_scores], k, seconds)
    trace.settings |= {"stopped": path.stopped, "explained": 1 - _unexplained(path, -1)}
    return [trace] * len(request.seeds)


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
    variance = np.bincount(blocks.feature_of, column_variance, blocks.count)  # total per feature
    scale = np.sqrt(np.where(data.constant, 1.0, np.where(variance > 0, variance, 1.0)))[blocks.feature_of]
    targets = targets - weights @ targets / weights.sum()
    design = DesignMatrix(columns, mean, scale, root)
    return design, targets if root is None else targets * root[:, None]


@dataclass(frozen=True)
class _SparseRows:
    """A sparse table, of which a slice of rows is made dense when it is read."""

    columns: SparseColumns

    @property
    def shape(self) -> tuple[int, int]:
        return self.columns.shape

    def __getitem__(self, rows: slice) -> NDArray[np.float32]:
        return self.columns.to_dense(np.arange(*rows.indices(self.shape[0])))


def _total_weight(data: TableData) -> float:
    return float(data.rows if data.weights is None else data.weights.sum(dtype=np.float64))


def _unexplained(path: LinearPath, step: int) -> float:
    """The residual sum of squares after a step, as a share of that without any feature."""
    return float(path.losses[step] / path.null_loss) if len(path.losses) else 1.0


def make_trace(
    constant: NDArray[np.bool_], path: LinearPath, step_scores: list[Floats], k: int, seconds: float
) -> Trace:
    """A path as a trace; features that are not on the path follow by their last scores, constant features last.

    ``step_scores`` has the scores (d,) of all features at each step.
    """
    features = len(constant)
    last_scores = step_scores[-1] if step_scores else np.zeros(features)
    by_score = np.lexsort((np.arange(features), -last_scores, constant))
    selected = set(path.order)
    ranked = path.order + [int(f) for f in by_score if int(f) not in selected]
    records = [
        PhaseRecord(
            1, "all", _unexplained(path, i), seconds / len(step_scores), [feature], scores=step_scores[i]
        )
        for i, feature in enumerate(path.order)
    ]
    return Trace(ranked[:k], ranked[k:], records)
