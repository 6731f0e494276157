"""Gradient-boosted trees: how much of the loss the splits of each feature take away (total gain).

scikit-learn's histogram booster reports no importance. Its trees hold the gain of every split, in an
attribute that is not documented but that programs which convert its models read too. Permuting
columns instead would need predictions for every column, and on wide tables give most of them nothing.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from seqatt.algorithms.filters.discrete import varying_outputs
from seqatt.algorithms.filters.options import BoostingOptions, worth_sharing
from seqatt.algorithms.filters.ranking import Floats, rank_features, sum_over_columns
from seqatt.data.tables.table_data import SparseColumns, TableData
from seqatt.selection import Trace


def choose_by_boosting(source: TableData, k: int, seed: int, options: BoostingOptions) -> Trace:
    """The k features of greatest total gain: a feature's is the sum over its columns.

    Each target has a booster of its own, whose gains are shares of 1; the mean of them decides.
    """
    columns: Any = source.columns
    if isinstance(columns, SparseColumns):
        if options.library == "scikit-learn":
            raise ValueError(
                "X: scikit-learn's booster cannot open a sparse table of this size; "
                "use library='lightgbm' or 'xgboost', or the method forest"
            )
        columns = columns.data
    started = time.perf_counter()
    gain = {"scikit-learn": _scikit_learn, "lightgbm": _lightgbm, "xgboost": _xgboost}[options.library]
    numeric = source.target.task == "regression"
    shares = [
        _shares(gain(columns, y, numeric, source.weights, seed, options)) for y in varying_outputs(source)
    ]
    scores = sum_over_columns(source.feature_of, np.mean(shares, axis=0), source.features)
    return rank_features(source, scores, k, time.perf_counter() - started)


def _shares(gains: Any) -> Floats:
    """Of one total; where rows are too few for any split, nothing."""
    found: Floats = np.asarray(gains, dtype=np.float64)
    return found / max(float(found.sum()), np.finfo(np.float64).tiny)


def _scikit_learn(
    X: Any, y: NDArray[Any], numeric: bool, weights: Any, seed: int, options: BoostingOptions
) -> Floats:
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

    kind = HistGradientBoostingRegressor if numeric else HistGradientBoostingClassifier
    model = kind(max_iter=options.iterations, learning_rate=options.learning_rate, random_state=seed)
    with threadpool_limits(worth_sharing(X.shape, options.n_jobs), user_api="openmp"):
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
            "boosting: this version of scikit-learn keeps the trees of its booster elsewhere; "
            "use library='lightgbm' or 'xgboost'"
        )
    return trees


def _lightgbm(
    X: Any, y: NDArray[Any], numeric: bool, weights: Any, seed: int, options: BoostingOptions
) -> Any:
    import lightgbm

    kind = lightgbm.LGBMRegressor if numeric else lightgbm.LGBMClassifier
    model = kind(
        n_estimators=options.iterations,
        learning_rate=options.learning_rate,
        importance_type="gain",
        random_state=seed,
        n_jobs=worth_sharing(X.shape, options.n_jobs),
        deterministic=True,
        force_row_wise=True,
        verbose=-1,
    )
    return model.fit(X, y, sample_weight=weights).feature_importances_


def _xgboost(
    X: Any, y: NDArray[Any], numeric: bool, weights: Any, seed: int, options: BoostingOptions
) -> Any:
    import xgboost

    kind = xgboost.XGBRegressor if numeric else xgboost.XGBClassifier
    model = kind(
        n_estimators=options.iterations,
        learning_rate=options.learning_rate,
        importance_type="total_gain",
        random_state=seed,
        n_jobs=worth_sharing(X.shape, options.n_jobs),
    )
    return model.fit(X, y, sample_weight=weights).feature_importances_
