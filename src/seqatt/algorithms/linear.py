"""The linear algorithms as methods: from a source to a trace.

Features own columns. A feature's columns together have variance 1, whether it is a number, a category or a
declared group, and it is judged by the length of all its columns' correlations with the residual. That is
what the group LASSO lets in first, with the usual weight for a group's size, so the three still agree.
Classes are one-hot targets for least squares.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from seqatt.data.tables.table_data import SparseColumns, TableData
from seqatt.linear.attention import choose_by_attention
from seqatt.linear.design_matrix import DesignMatrix
from seqatt.linear.inputs import FeatureBlocks, read_blocks
from seqatt.linear.omp import pursue_rows
from seqatt.linear.path import LinearPath
from seqatt.linear.residual import problem_of
from seqatt.linear.sequential_lasso import choose_by_lasso
from seqatt.linear.softmax_attention import choose_by_softmax
from seqatt.linear.stepwise import select_stepwise
from seqatt.linear.threads import Floats
from seqatt.selection import PhaseRecord, Trace

RULES = {
    "sequential_lasso": choose_by_lasso,
    "linear_attention": choose_by_attention,
    "softmax": choose_by_softmax,
}


@dataclass(frozen=True)
class LinearAttentionOptions:
    """Definition 3.1's weights, or the softmax of Lemma 3.2."""

    parameterisation: str = "linear"

    def __post_init__(self) -> None:
        if self.parameterisation not in ("linear", "softmax"):
            raise ValueError(
                f"parameterisation: unknown {self.parameterisation!r}; use one of linear, softmax"
            )


def choose_linearly(source: TableData, k: int, name: str, options: Any) -> tuple[Trace, dict[str, Any]]:
    """``k`` features; those that least squares has no use for fill up what an early stop leaves."""
    started = time.perf_counter()
    blocks = read_blocks(source.feature_of, len(source.feature_of))
    design, targets = _prepare(source, blocks)
    most = min(k, int((~source.constant).sum()))
    seen: list[Floats] = []
    if name == "omp":
        path = pursue_rows(design, targets, most, blocks, seen).path(flat=False)
    else:
        softmax = getattr(options, "parameterisation", None) == "softmax"
        rule = RULES["softmax" if softmax else name]
        path = select_stepwise(problem_of(design, targets), blocks, most, rule, False, seen)
    unit = np.sqrt(path.null_loss * _total(source))
    trace = make_trace(
        source.constant, path, [scores / unit for scores in seen], k, time.perf_counter() - started
    )
    settings = dict(vars(options))
    return trace, settings | {"stopped": path.stopped, "explained": 1 - _share(path, -1)}


def _prepare(source: TableData, blocks: FeatureBlocks) -> tuple[DesignMatrix, Floats]:
    values = source.target.values
    if source.target.task == "multiclass":
        values = np.eye(source.target.outputs)[values]
    targets = np.asarray(values, dtype=np.float64)
    weights = np.ones(source.rows) if source.weights is None else source.weights.astype(np.float64)
    data = _Rows(source.columns) if isinstance(source.columns, SparseColumns) else source.columns
    rows = DesignMatrix(data, ((0, source.rows),))
    mean = rows.products(np.empty(0, dtype=np.intp), weights[:, None])[0] / weights.sum()
    root = None if source.weights is None else np.sqrt(weights)
    total = np.bincount(
        blocks.feature_of,
        DesignMatrix(data, rows.spans, mean, None, root).norms() / weights.sum(),
        blocks.count,
    )
    scale = np.sqrt(np.where(source.constant, 1.0, np.where(total > 0, total, 1.0)))[blocks.feature_of]
    targets = targets - weights @ targets / weights.sum()
    return DesignMatrix(data, rows.spans, mean, scale, root), targets if root is None else targets * root[
        :, None
    ]


@dataclass(frozen=True)
class _Rows:
    """A sparse table that is opened some rows at a time."""

    columns: SparseColumns

    @property
    def shape(self) -> tuple[int, int]:
        return self.columns.shape

    def __getitem__(self, rows: slice) -> NDArray[np.float32]:
        return self.columns.open(np.arange(*rows.indices(self.shape[0])))


def _total(source: TableData) -> float:
    return float(source.rows if source.weights is None else source.weights.sum(dtype=np.float64))


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
