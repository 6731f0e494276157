"""Mutual information of each feature alone with the target, as scikit-learn estimates it."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from seqatt.algorithms.filters.discrete import varying_outputs
from seqatt.algorithms.filters.options import MutualInformationOptions, insist_on_even_rows, worth_sharing
from seqatt.algorithms.filters.ranking import max_over_columns, rank_features
from seqatt.data.tables.table_data import SparseColumns, TableData
from seqatt.data.tables.target import FEW, MANY
from seqatt.selection import Trace


def choose_by_mutual_information(
    source: TableData, k: int, seed: int, options: MutualInformationOptions
) -> Trace:
    """The k features that tell most, each alone; of several targets, the mean.

    A group is worth what its best column is. The seed draws the tiny noise that parts equal numbers.
    """
    insist_on_even_rows(source, "mutual_information")
    if isinstance(source.columns, SparseColumns):
        raise ValueError("X: mutual_information cannot open a sparse table of this size; use cmim or f_test")
    if source.rows <= options.neighbors:
        raise ValueError(
            f"neighbors: {options.neighbors} neighbours need more than the {source.rows} rows there are"
        )
    from joblib import parallel_config
    from sklearn.feature_selection import mutual_info_classif, mutual_info_regression

    started = time.perf_counter()
    outputs = varying_outputs(source)
    values, discrete, feature_of = _describe(source, source.columns)
    estimate = mutual_info_regression if source.target.task == "regression" else mutual_info_classif
    told = {"n_neighbors": options.neighbors, "n_jobs": worth_sharing(values.shape, options.n_jobs)}
    with parallel_config(backend="threading"):  # most of the work is done without Python's lock
        found = [estimate(values, y, discrete_features=discrete, random_state=seed, **told) for y in outputs]
    scores = max_over_columns(feature_of, np.mean(found, axis=0), source.features)
    return rank_features(source, scores, k, time.perf_counter() - started)


def _describe(source: TableData, columns: NDArray[np.float32]) -> tuple[Any, Any, NDArray[np.int64]]:
    """A category as one column of codes, each other column as it is; which are discrete, and whose."""
    positions = source.encoder.feature_of
    kept: list[int] = []
    codes: dict[int, NDArray[Any]] = {}
    for c, position in enumerate(positions):
        first = c == 0 or positions[c - 1] != position
        if position in source.encoder.levels:
            if not first:
                continue
            hot = columns[:, positions == position] > 0
            codes[len(kept)] = np.where(hot.any(1), 1 + hot.argmax(1), 0)
        elif not first or _is_discrete(source, columns[:, c], int(position)):
            codes[len(kept)] = np.unique(columns[:, c], return_inverse=True)[1]
        kept.append(c)
    values = columns[:, kept] if codes else columns
    for place, column in codes.items():
        values[:, place] = column
    return values, np.isin(np.arange(len(kept)), list(codes)), source.feature_of[kept]


def _is_discrete(source: TableData, column: NDArray[np.float32], position: int) -> bool:
    """Whole numbers of few distinct values, by the rule that tells classes in a target.

    Gaps, which were filled with the mean, are a value of their own.
    """
    distinct = np.unique(column)
    if len(distinct) > MANY or (len(distinct) > FEW and source.rows < 10 * len(distinct)):
        return False
    place = source.encoder.numeric.index(position)
    scale, shift = source.encoder.scale[place], source.encoder.shift[place]
    original = distinct[distinct != 0].astype(np.float64) * scale + shift
    whole = np.round(original)
    # Columns are float32: what was whole comes back with an error of its seventh digit.
    near = np.abs(original - whole) <= 1e-5 * np.maximum(1.0, np.abs(whole))
    return bool(near.all() and len(np.unique(whole)) == len(whole))
