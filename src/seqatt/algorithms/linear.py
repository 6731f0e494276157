"""The linear algorithms as methods: from a data to a trace.

Features own columns. A feature's columns together have variance 1, whether it is a number, a category or a
declared group, and it is judged by the length of all its columns' correlations with the residual. That is
what the group LASSO lets in first, with the usual weight for a group's size, so the three still agree.
Classes are one-hot targets for least squares.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from seqatt.algorithms.registry import Plan, SelectionRequest, register
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
from seqatt.options import Options, option
from seqatt.progress import Advance
from seqatt.selection import PhaseRecord, Trace
from seqatt.validation import choice

RULES = {
    "linear_sequential_lasso": choose_by_lasso,
    "linear_attention": choose_by_attention,
    "softmax": choose_by_softmax,
}


@dataclass(frozen=True)
class LinearAttentionOptions(Options):
    """Options of linear attention."""

    parameterisation: str = option(
        "linear", choice(["linear", "softmax"]), "The weights of Definition 3.1, or the softmax of Lemma 3.2."
    )


@register("linear_omp", title="OMP", summary="least squares: the feature most correlated with what is left")
def linear_omp(request: SelectionRequest, plan: Plan, advance: Advance) -> list[Trace]:
    return _select(request, "linear_omp")


@register(
    "linear_sequential_lasso",
    title="Sequential LASSO",
    summary="least squares: the feature the LASSO lets in first",
)
def linear_sequential_lasso(request: SelectionRequest, plan: Plan, advance: Advance) -> list[Trace]:
    return _select(request, "linear_sequential_lasso")


@register(
    "linear_attention",
    title="Linear attention",
    summary="least squares: Sequential Attention, solved exactly",
    options=LinearAttentionOptions,
)
def linear_attention(request: SelectionRequest, plan: Plan, advance: Advance) -> list[Trace]:
    softmax = request.options.parameterisation == "softmax"
    return _select(request, "softmax" if softmax else "linear_attention")


def _select(request: SelectionRequest, rule: str) -> list[Trace]:
    """Select k features; after an early stop, features that least squares has no use for fill up the rest.

    There is no randomness: every seed has the same result.
    """
    started = time.perf_counter()
    data, k = request.data, request.k
    blocks = read_blocks(data.feature_of, len(data.feature_of))
    design, targets = _prepare(data, blocks)
    informative = min(k, int((~data.constant).sum()))
    scores: list[Floats] = []
    if rule == "linear_omp":
        path = pursue_rows(design, targets, informative, blocks, scores).path(flat=False)
    else:
        problem = make_problem(design, targets)
        path = select_stepwise(problem, blocks, informative, RULES[rule], False, scores)
    unit = np.sqrt(path.null_loss * _total(data))
    seconds = time.perf_counter() - started
    trace = make_trace(data.constant, path, [score / unit for score in scores], k, seconds)
    trace.settings |= {"stopped": path.stopped, "explained": 1 - _share(path, -1)}
    return [trace] * len(request.seeds)


def _prepare(data: TableData, blocks: FeatureBlocks) -> tuple[DesignMatrix, Floats]:
    values = data.target.values
    if data.target.task == "multiclass":
        values = np.eye(data.target.outputs)[values]
    targets = np.asarray(values, dtype=np.float64)
    weights = np.ones(data.rows) if data.weights is None else data.weights.astype(np.float64)
    columns = _SparseRows(data.columns) if isinstance(data.columns, SparseColumns) else data.columns
    rows = DesignMatrix(columns, ((0, data.rows),))
    mean = rows.products(np.empty(0, dtype=np.intp), weights[:, None])[0] / weights.sum()
    root = None if data.weights is None else np.sqrt(weights)
    total = np.bincount(
        blocks.feature_of,
        DesignMatrix(columns, rows.spans, mean, None, root).norms() / weights.sum(),
        blocks.count,
    )
    scale = np.sqrt(np.where(data.constant, 1.0, np.where(total > 0, total, 1.0)))[blocks.feature_of]
    targets = targets - weights @ targets / weights.sum()
    return DesignMatrix(columns, rows.spans, mean, scale, root), targets if root is None else targets * root[
        :, None
    ]


@dataclass(frozen=True)
class _SparseRows:
    """A sparse table whose rows are made dense some at a time."""

    columns: SparseColumns

    @property
    def shape(self) -> tuple[int, int]:
        return self.columns.shape

    def __getitem__(self, rows: slice) -> NDArray[np.float32]:
        return self.columns.to_dense(np.arange(*rows.indices(self.shape[0])))


def _total(data: TableData) -> float:
    return float(data.rows if data.weights is None else data.weights.sum(dtype=np.float64))


def _share(path: LinearPath, step: int) -> float:
    return float(path.losses[step] / path.null_loss) if len(path.losses) else 1.0


def make_trace(
    constant: NDArray[np.bool_], path: LinearPath, seen: list[Floats], k: int, seconds: float
) -> Trace:
    """A path as a trace: features it did not reach follow by their last scores, constant ones last."""
    features = len(constant)
    last = seen[-1] if seen else np.zeros(features)
    others = np.lexsort((np.arange(features), -last, constant))
    chosen = set(path.order)
    ranked = path.order + [int(f) for f in others if int(f) not in chosen]
    steps = [
        PhaseRecord(1, "all", _share(path, i), seconds / len(seen), [feature], scores=seen[i])
        for i, feature in enumerate(path.order)
    ]
    return Trace(ranked[:k], ranked[k:], steps)
