"""Copies come last in an order of features.

When a network spreads a signal over several copies, removing any one of them raises the loss, although another copy
carries the same information.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from seqatt.data.tables.table_data import SparseColumns
from seqatt.training.screening.row_sample import Floats, RowSample

PREDICTED = 0.99  # a feature is a copy if others predict this share of the variance of its columns
ROUNDING = 1e-9  # share of the variance of a column; an unexplained share below it is a rounding error


def copies_last(order: Sequence[int], sample: RowSample, kept: int = 0) -> list[int]:
    """The order with copies after all other features; the first ``kept`` features stay where they are.

    A feature is a copy if least squares on the features before it, without copies, explains more than 99 % of the
    variance of each of its columns (corrected for the number of columns that predict it).
    """
    feature_of = sample.data.feature_of
    columns_of = [np.flatnonzero(feature_of == feature) for feature in order]
    ends = np.cumsum([len(columns) for columns in columns_of]).tolist()
    left = _gram_matrix(sample, np.concatenate(columns_of))
    variance = left.diagonal().copy()
    originals, copies = list(order[:kept]), list[int]()
    predictors = 0
    for number, (feature, end) in enumerate(zip(order, ends, strict=True)):
        columns = range(end - len(columns_of[number]), end)
        degrees = sample.effective_rows - 1 - predictors
        share = left.diagonal()[columns] * (sample.effective_rows - 1) / max(degrees, 1.0)
        if number >= kept:
            is_copy = degrees > 0 and bool((share <= (1 - PREDICTED) * variance[columns]).all())
            (copies if is_copy else originals).append(feature)
            if is_copy:
                continue
        for column in columns:  # what the columns so far leave of each other: a step of Gaussian elimination
            if left[column, column] > ROUNDING * variance[column]:
                left -= np.outer(left[column], left[column] / left[column, column])
                predictors += 1
    return originals + copies


def _gram_matrix(sample: RowSample, columns: NDArray[np.int64]) -> Floats:
    """Sums of products of centred columns over the rows of the sample; those of sparse ones are not scaled."""
    table, weights = sample.data.columns, sample.weights
    if isinstance(table, SparseColumns):
        data = table.data[:, columns].astype(np.float64)
        sums = data.T @ weights
        products = (data.T @ data.multiply(weights[:, None])).toarray()
        return np.asarray(products - np.outer(sums, sums) / sample.effective_rows)
    return sample.gram_matrix(sample.centred_columns(columns))
