"""Random forests: how much each feature lowers impurity, over many trees."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from seqatt.algorithms.filters.discrete import varying_outputs
from seqatt.algorithms.filters.options import ForestOptions, cores
from seqatt.algorithms.filters.ranking import rank_features, sum_over_columns
from seqatt.data.tables.table_data import SparseColumns, TableData
from seqatt.selection import Trace


def choose_by_forest(source: TableData, k: int, seed: int, options: ForestOptions) -> Trace:
    """The k features of greatest importance: a feature's is the sum over its columns.

    With several targets a split lowers their mean impurity, so one forest serves them all.
    """
    from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

    started = time.perf_counter()
    outputs = varying_outputs(source)
    targets = outputs[0] if len(outputs) == 1 else np.stack(outputs, axis=1)
    # A tree only compares values, so a sparse table is as good as its standardised columns.
    columns: Any = source.columns
    columns = columns.data if isinstance(columns, SparseColumns) else columns
    kind = RandomForestRegressor if source.target.task == "regression" else RandomForestClassifier
    trees = kind(
        options.trees,
        random_state=seed,
        n_jobs=cores(options.n_jobs),
    )
    trees.fit(columns, targets, sample_weight=source.weights)
    scores = sum_over_columns(source.feature_of, trees.feature_importances_, source.features)
    return rank_features(source, scores, k, time.perf_counter() - started)
