"""The F-test of each feature alone, as scikit-learn computes it: analysis of variance, or correlation."""

from __future__ import annotations

import time
import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from seqatt.algorithms.filters.discrete import each_block, varying_outputs
from seqatt.algorithms.filters.options import insist_on_even_rows
from seqatt.algorithms.filters.ranking import Floats, max_over_columns, rank_features
from seqatt.data.tables.table_data import TableData
from seqatt.selection import Trace

LARGEST = np.finfo(np.float64).max


def choose_by_f_test(source: TableData, k: int) -> Trace:
    """The k features with the largest F; of several targets, the mean.

    A category or a group is worth what its best column is. Nothing is drawn.
    """
    insist_on_even_rows(source, "f_test")
    started = time.perf_counter()
    outputs = varying_outputs(source)
    found = [
        np.sum([_statistics(block, y, source.target.task == "regression") / len(outputs) for y in outputs], 0)
        for block in each_block(source)
    ]
    scores = max_over_columns(source.feature_of, np.concatenate(found), source.features)
    return rank_features(source, scores, k, time.perf_counter() - started)


def _statistics(block: NDArray[Any], y: NDArray[Any], numeric: bool) -> Floats:
    """F of every row of ``block``: 0 where it is constant, the largest number where nothing is left over."""
    from sklearn.feature_selection import f_classif, f_regression

    found = np.zeros(len(block))
    varying = (block != block[:, :1]).any(1)
    if not varying.any():
        return found
    columns = block[varying].T.astype(np.float64)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore", UserWarning)  # of columns that are constant within each class
        statistics = (f_regression if numeric else f_classif)(columns, y)[0]
    # A rest of nothing can round to less than nothing.
    found[varying] = np.nan_to_num(np.where(statistics < 0, np.inf, statistics), nan=0.0, posinf=LARGEST)
    return found
