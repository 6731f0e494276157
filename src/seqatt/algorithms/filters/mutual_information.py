"""Mutual information of each feature alone with the target, as scikit-learn estimates it."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from seqatt.algorithms.filters.discrete import varying_outputs
from seqatt.algorithms.filters.ranking import max_over_columns, rank_features
from seqatt.algorithms.filters.rows_and_cores import check_equal_weights, threads_for_table
from seqatt.algorithms.registry import Plan, SelectionRequest, register
from seqatt.data.tables.table_data import SparseColumns, TableData
from seqatt.data.tables.target import MAX_CLASSES, SURE_CLASSES
from seqatt.options import RUNNING, Options, option
from seqatt.progress import Advance
from seqatt.selection import Trace
from seqatt.validation import integer, n_jobs


@dataclass(frozen=True)
class MutualInformationOptions(Options):
    """Options of the nearest-neighbour estimate of mutual information."""

    n_neighbors: int = option(
        3, integer(1), "Neighbours of a row by which information in numbers is estimated."
    )
    n_jobs: int | None = option(None, n_jobs, "Threads; -1 for every core.", group=RUNNING)


@register(
    "mutual_information",
    title="Mutual information",
    summary="information about the target, each feature alone",
    options=MutualInformationOptions,
)
def mutual_information(request: SelectionRequest, plan: Plan, advance: Advance) -> list[Trace]:
    """The k features with the most information about the target, each alone, averaged over several targets.

    A group has the most of its columns. The seed draws the small noise by which scikit-learn separates equal numbers.
    """
    data, options = request.data, request.options
    check_equal_weights(data, "mutual_information")
    if isinstance(data.columns, SparseColumns):
        raise ValueError("X: mutual_information cannot open a sparse table of this size; use cmim or f_test")
    if data.rows <= options.n_neighbors:
        raise ValueError(
            f"n_neighbors: {options.n_neighbors} neighbours need more than the {data.rows} rows there are"
        )
    from joblib import parallel_config
    from sklearn.feature_selection import mutual_info_classif, mutual_info_regression

    outputs = varying_outputs(data)
    values, discrete, feature_of = _describe(data, data.columns)
    estimate = mutual_info_regression if data.target.task == "regression" else mutual_info_classif
    settings = {
        "n_neighbors": options.n_neighbors,
        "n_jobs": threads_for_table(values.shape, options.n_jobs),
        "discrete_features": discrete,
    }
    traces = []
    for seed in request.seeds:
        started = time.perf_counter()
        with parallel_config(backend="threading"):  # most of the work releases Python's lock
            estimates = [estimate(values, y, random_state=seed, **settings) for y in outputs]
        scores = max_over_columns(feature_of, np.mean(estimates, axis=0), data.features)
        traces.append(rank_features(data, scores, request.k, time.perf_counter() - started))
        advance(1)
    return traces


def _describe(data: TableData, columns: NDArray[np.float32]) -> tuple[Any, Any, NDArray[np.int64]]:
    """A category as one column of codes, each other column as it is; which are discrete, and whose."""
    positions = data.encoder.input_of
    kept: list[int] = []
    codes: dict[int, NDArray[Any]] = {}
    for c, position in enumerate(positions):
        first = c == 0 or positions[c - 1] != position
        if position in data.encoder.levels:
            if not first:
                continue
            hot = columns[:, positions == position] > 0
            codes[len(kept)] = np.where(hot.any(1), 1 + hot.argmax(1), 0)
        elif not first or _is_discrete(data, columns[:, c], int(position)):
            codes[len(kept)] = np.unique(columns[:, c], return_inverse=True)[1]
        kept.append(c)
    values = columns[:, kept] if codes else columns
    for place, column in codes.items():
        values[:, place] = column
    return values, np.isin(np.arange(len(kept)), list(codes)), data.feature_of[kept]


def _is_discrete(data: TableData, column: NDArray[np.float32], position: int) -> bool:
    """Whole numbers of few distinct values, by the rule that tells classes in a target.

    Gaps, which were filled with the mean, are a value of their own.
    """
    distinct = np.unique(column)
    if len(distinct) > MAX_CLASSES or (len(distinct) > SURE_CLASSES and data.rows < 10 * len(distinct)):
        return False
    place = data.encoder.numeric.index(position)
    scale, shift = data.encoder.scale[place], data.encoder.shift[place]
    original = distinct[distinct != 0].astype(np.float64) * scale + shift
    whole = np.round(original)
    # Columns are float32: what was whole comes back with an error of its seventh digit.
    near = np.abs(original - whole) <= 1e-5 * np.maximum(1.0, np.abs(whole))
    return bool(near.all() and len(np.unique(whole)) == len(whole))
