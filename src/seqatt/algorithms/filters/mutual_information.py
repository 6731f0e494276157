"""Mutual information of each feature alone with the target, as scikit-learn estimates it."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from seqatt.algorithms.filters.ranking import Floats, max_over_columns, rank_features, threads_for_table
from seqatt.algorithms.filters.variables import refuse_row_weights, varying_outputs
from seqatt.algorithms.registry import Plan, register
from seqatt.algorithms.request import SelectionRequest
from seqatt.data.tables.table_data import SparseColumns, TableData
from seqatt.progress import Advance
from seqatt.trace import Trace


@register("mutual_information")
def mutual_information(request: SelectionRequest, plan: Plan, advance: Advance) -> list[Trace]:
    """The k features with the most information about the target, each alone, averaged over several targets.

    A group has the highest value of its columns. The seed is that of the small noise by which scikit-learn breaks ties.
    """
    data, options = request.table, request.options
    refuse_row_weights(data, "mutual_information")
    if isinstance(data.columns, SparseColumns):
        raise ValueError("X: mutual_information cannot use a sparse table of this size; use cmim or f_test")
    if data.rows <= options.n_neighbors:
        raise ValueError(
            f"n_neighbors: {options.n_neighbors} neighbours need more than the {data.rows} rows of the table"
        )
    from joblib import parallel_config
    from sklearn.feature_selection import mutual_info_classif, mutual_info_regression

    outputs = varying_outputs(data)
    values, discrete, feature_of = _encode(data, data.columns)
    estimate = mutual_info_regression if data.target.loss.numeric else mutual_info_classif
    settings = {
        "n_neighbors": options.n_neighbors,
        "n_jobs": threads_for_table(values.shape, options.n_jobs),
    }
    traces = []
    for seed in request.seeds:
        started = time.perf_counter()
        with parallel_config(backend="threading"):  # most of the work releases Python's lock
            estimates = [_estimate(estimate, values, y, discrete, seed, settings) for y in outputs]
        scores = max_over_columns(feature_of, np.mean(estimates, axis=0), data.features)
        traces.append(rank_features(data, scores, request.k, time.perf_counter() - started))
        advance(1)
    return traces


def _estimate(
    estimate: Any, values: Any, y: Any, discrete: Any, seed: int, settings: dict[str, Any]
) -> Floats:
    """Information per column (m,); 0 if the column or the target is discrete and never repeats a value.

    Nothing can be estimated from values that never repeat.
    """
    classes = estimate.__name__ == "mutual_info_classif"
    known = discrete | _repeats(y) if classes else ~discrete
    if not classes:
        known[discrete] = [_repeats(column) for column in values[:, discrete].T]
    information = np.zeros(values.shape[1])
    if known.any():
        columns = values if known.all() else values[:, known]
        information[known] = estimate(
            columns, y, discrete_features=discrete[known], random_state=seed, **settings
        )
    return information


def _repeats(column: NDArray[Any]) -> bool:
    return len(np.unique(column)) < len(column)


def _encode(data: TableData, columns: NDArray[np.float32]) -> tuple[Any, Any, NDArray[np.int64]]:
    """The table for scikit-learn: columns (n, m), whether each is discrete (m,), and the feature of each (m,).

    A category becomes one column of codes; any other column stays one column.
    """
    input_of = data.encoder.input_of
    kept: list[int] = []
    codes: dict[int, NDArray[Any]] = {}
    for c, input_column in enumerate(input_of):
        first = c == 0 or input_of[c - 1] != input_column
        if input_column in data.encoder.levels:
            if not first:
                continue
            one_hot = columns[:, input_of == input_column] > 0
            codes[len(kept)] = np.where(one_hot.any(1), 1 + one_hot.argmax(1), 0)
        elif not first or _is_discrete(data, columns[:, c], int(input_column)):
            codes[len(kept)] = np.unique(columns[:, c], return_inverse=True)[1]
        kept.append(c)
    values = columns[:, kept] if codes else columns
    for i, column in codes.items():
        values[:, i] = column
    return values, np.isin(np.arange(len(kept)), list(codes)), data.feature_of[kept]


def _is_discrete(data: TableData, column: NDArray[np.float32], input_column: int) -> bool:
    """Whether a numeric column has integers of few distinct values: up to 20, or up to 100 with ten rows each.

    Missing values, which were replaced by the mean, are one more value.
    """
    distinct = np.unique(column)
    if len(distinct) > 100 or (len(distinct) > 20 and data.rows < 10 * len(distinct)):
        return False
    i = data.encoder.numeric.index(input_column)
    scale, shift = data.encoder.scale[i], data.encoder.shift[i]
    original = distinct[distinct != 0].astype(np.float64) * scale + shift
    rounded = np.round(original)
    # Columns are float32: an integer is restored with an error in its seventh digit.
    near = np.abs(original - rounded) <= 1e-5 * np.maximum(1.0, np.abs(rounded))
    return bool(near.all() and len(np.unique(rounded)) == len(rounded))
