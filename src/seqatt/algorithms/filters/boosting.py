"""Gradient-boosted trees: by how much the splits of each feature lower the loss (total gain).

scikit-learn's histogram booster has no feature importances. The gain of every split is in an undocumented attribute
of its trees, which converters of such models read as well. Permutation importance would need predictions for every
column, and on a wide table would be zero for most of them.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from seqatt.algorithms.filters.options import BoostingOptions
from seqatt.algorithms.filters.ranking import Floats, rank_features, sum_over_columns, threads_for_table
from seqatt.algorithms.filters.variables import varying_outputs
from seqatt.algorithms.registry import Plan, register
from seqatt.algorithms.request import SelectionRequest
from seqatt.data.tables.table_data import SparseColumns
from seqatt.progress import Advance
from seqatt.trace import Trace


@register("boosting")
def boosting(request: SelectionRequest, plan: Plan, advance: Advance) -> list[Trace]:
    """The k features of greatest total gain; that of a feature is the sum over its columns.

    Each target has a booster of its own; the gains of each are divided by their sum, then averaged over the targets.
    """
    data, options = request.table, request.options
    columns: Any = data.columns
    if isinstance(columns, SparseColumns):
        if options.library == "scikit-learn":
            raise ValueError(
                "X: scikit-learn's booster cannot use a sparse table of this size; "
                "use library='lightgbm' or 'xgboost', or the method forest"
            )
        columns = columns.data
    gains_of = {"scikit-learn": _scikit_learn, "lightgbm": _lightgbm, "xgboost": _xgboost}[options.library]
    numeric = data.target.loss.numeric
    traces = []
    for seed in request.seeds:
        started = time.perf_counter()
        shares = [
            _shares(gains_of(columns, y, numeric, data.weights, seed, options)) for y in varying_outputs(data)
        ]
        scores = sum_over_columns(data.feature_of, np.mean(shares, axis=0), data.features)
        traces.append(rank_features(data, scores, request.k, time.perf_counter() - started))
        advance(1)
    return traces


def _shares(gains: Any) -> Floats:
    """Gains divided by their sum; zeros where the rows are too few for any split."""
    values: Floats = np.asarray(gains, dtype=np.float64)
    return values / max(float(values.sum()), np.finfo(np.float64).tiny)


def _scikit_learn(
    X: Any, y: NDArray[Any], numeric: bool, weights: Any, seed: int, options: BoostingOptions
) -> Floats:
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

    model_class = HistGradientBoostingRegressor if numeric else HistGradientBoostingClassifier
    model = model_class(max_iter=options.max_iter, learning_rate=options.learning_rate, random_state=seed)
    with threadpool_limits(threads_for_table(X.shape, options.n_jobs), user_api="openmp"):
        model.fit(X, y, sample_weight=weights)
    gains = np.zeros(X.shape[1])
    for trees in _trees(model):
        for tree in trees:
            splits = tree.nodes[tree.nodes["is_leaf"] == 0]
            gains += np.bincount(splits["feature_idx"], splits["gain"], X.shape[1])
    return gains


def _trees(model: Any) -> Any:
    trees = getattr(model, "_predictors", None)
    if trees is None:
        raise RuntimeError(
            "boosting: this version of scikit-learn stores the trees of its booster elsewhere; "
            "use library='lightgbm' or 'xgboost'"
        )
    return trees


def _lightgbm(
    X: Any, y: NDArray[Any], numeric: bool, weights: Any, seed: int, options: BoostingOptions
) -> Any:
    import lightgbm

    model_class = lightgbm.LGBMRegressor if numeric else lightgbm.LGBMClassifier
    model = model_class(
        n_estimators=options.max_iter,
        learning_rate=options.learning_rate,
        importance_type="gain",
        random_state=seed,
        n_jobs=threads_for_table(X.shape, options.n_jobs),
        deterministic=True,
        force_row_wise=True,
        verbose=-1,
    )
    return model.fit(X, y, sample_weight=weights).feature_importances_


def _xgboost(
    X: Any, y: NDArray[Any], numeric: bool, weights: Any, seed: int, options: BoostingOptions
) -> Any:
    import xgboost

    model_class = xgboost.XGBRegressor if numeric else xgboost.XGBClassifier
    model = model_class(
        n_estimators=options.max_iter,
        learning_rate=options.learning_rate,
        importance_type="total_gain",
        random_state=seed,
        n_jobs=threads_for_table(X.shape, options.n_jobs),
    )
    return model.fit(X, y, sample_weight=weights).feature_importances_
