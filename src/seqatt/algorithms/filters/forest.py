"""Random forests: by how much each feature lowers impurity, over many trees."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from seqatt.algorithms.filters.ranking import available_threads, rank_features, sum_over_columns
from seqatt.algorithms.filters.variables import varying_outputs
from seqatt.algorithms.registry import Plan, register
from seqatt.algorithms.request import SelectionRequest
from seqatt.data.tables.table_data import SparseColumns
from seqatt.progress import Advance
from seqatt.trace import Trace


@register("forest")
def random_forest(request: SelectionRequest, plan: Plan, advance: Advance) -> list[Trace]:
    """The k features of greatest importance; that of a feature is the sum over its columns.

    With several targets a split lowers their mean impurity, so one forest is trained for all of them.
    """
    from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

    data, options = request.table, request.options
    outputs = varying_outputs(data)
    targets = outputs[0] if len(outputs) == 1 else np.stack(outputs, axis=1)
    # Trees only compare values, so a sparse matrix need not be standardised.
    columns: Any = data.columns
    columns = columns.data if isinstance(columns, SparseColumns) else columns
    forest_class = RandomForestRegressor if data.target.loss.numeric else RandomForestClassifier
    traces = []
    for seed in request.seeds:
        started = time.perf_counter()
        forest = forest_class(
            options.n_estimators, random_state=seed, n_jobs=available_threads(options.n_jobs)
        )
        forest.fit(columns, targets, sample_weight=data.weights)
        scores = sum_over_columns(data.feature_of, forest.feature_importances_, data.features)
        traces.append(rank_features(data, scores, request.k, time.perf_counter() - started))
        advance(1)
    return traces
