"""The F-test of each feature alone, as scikit-learn computes it: analysis of variance for classes, else correlation."""

from __future__ import annotations

import time
import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from seqatt.algorithms.filters.ranking import Floats, max_over_columns, rank_features
from seqatt.algorithms.filters.variables import column_blocks, refuse_row_weights, varying_outputs
from seqatt.algorithms.registry import Plan, register
from seqatt.algorithms.request import SelectionRequest
from seqatt.progress import Advance
from seqatt.trace import Trace

LARGEST = np.finfo(np.float64).max


@register("f_test")
def f_test(request: SelectionRequest, plan: Plan, advance: Advance) -> list[Trace]:
    """The k features with the largest F statistic, averaged over several targets.

    A category or a group has the largest F of its columns. There is no randomness: every seed has the same result.
    """
    data = request.table
    refuse_row_weights(data, "f_test")
    started = time.perf_counter()
    outputs = varying_outputs(data)
    statistics = [
        np.sum([_statistics(block, y, data.target.loss.numeric) / len(outputs) for y in outputs], 0)
        for block in column_blocks(data)
    ]
    scores = max_over_columns(data.feature_of, np.concatenate(statistics), data.features)
    trace = rank_features(data, scores, request.k, time.perf_counter() - started)
    return [trace] * len(request.seeds)


def _statistics(block: NDArray[Any], y: NDArray[Any], numeric: bool) -> Floats:
    """F of every row of ``block``: 0 for a constant row, the largest float64 where the residual is zero."""
    from sklearn.feature_selection import f_classif, f_regression

    statistics = np.zeros(len(block))
    varying = (block != block[:, :1]).any(1)
    if not varying.any():
        return statistics
    columns = block[varying].T.astype(np.float64)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore", UserWarning)  # about columns that are constant within each class
        f = (f_regression if numeric else f_classif)(columns, y)[0]
    # A residual of zero can be rounded to a negative number.
    statistics[varying] = np.nan_to_num(np.where(f < 0, np.inf, f), nan=0.0, posinf=LARGEST)
    return statistics
