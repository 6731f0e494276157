"""seqatt: feature selection with neural networks."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from seqatt.version import __version__

if TYPE_CHECKING:
    from seqatt import callbacks, datasets, linear, ray
    from seqatt.algorithms.registry import methods
    from seqatt.api.evaluation.evaluate import evaluate
    from seqatt.api.evaluation.result import Evaluation
    from seqatt.api.marginal_gains import marginal_gains
    from seqatt.api.select import select, select_trials
    from seqatt.callbacks.callback import Callback
    from seqatt.comparison.compare import compare
    from seqatt.comparison.comparison import Comparison
    from seqatt.estimators import SequentialAttentionSelector
    from seqatt.feature_selector import (
        FeatureSelector,
        LinearAttentionSelector,
        OMPSelector,
        SequentialLassoSelector,
    )
    from seqatt.layer import SequentialAttention
    from seqatt.prediction.predictors import SequentialAttentionClassifier, SequentialAttentionRegressor
    from seqatt.selection import Selection, SelectionInterrupted, TrainingDiverged

_MODULES = {
    "Callback": "callbacks.callback",
    "Comparison": "comparison.comparison",
    "Evaluation": "api.evaluation.result",
    "FeatureSelector": "feature_selector",
    "LinearAttentionSelector": "feature_selector",
    "OMPSelector": "feature_selector",
    "Selection": "selection",
    "SelectionInterrupted": "selection",
    "SequentialAttention": "layer",
    "SequentialAttentionClassifier": "prediction.predictors",
    "SequentialAttentionRegressor": "prediction.predictors",
    "SequentialAttentionSelector": "estimators",
    "SequentialLassoSelector": "feature_selector",
    "TrainingDiverged": "selection",
    "compare": "comparison.compare",
    "evaluate": "api.evaluation.evaluate",
    "marginal_gains": "api.marginal_gains",
    "methods": "algorithms.registry",
    "select": "api.select",
    "select_trials": "api.select",
}

__all__ = [
    "Callback",
    "Comparison",
    "Evaluation",
    "FeatureSelector",
    "LinearAttentionSelector",
    "OMPSelector",
    "Selection",
    "SelectionInterrupted",
    "SequentialAttention",
    "SequentialAttentionClassifier",
    "SequentialAttentionRegressor",
    "SequentialAttentionSelector",
    "SequentialLassoSelector",
    "TrainingDiverged",
    "__version__",
    "callbacks",
    "compare",
    "datasets",
    "evaluate",
    "linear",
    "marginal_gains",
    "methods",
    "ray",
    "select",
    "select_trials",
]


def __getattr__(name: str) -> Any:
    """Import a public name on first use, so that ``import seqatt`` and ``seqatt --help`` do not wait for torch."""
    if name in ("callbacks", "datasets", "linear", "ray"):
        return import_module(f"seqatt.{name}")
    if name not in _MODULES:
        raise AttributeError(f"module 'seqatt' has no attribute {name!r}")
    value = getattr(import_module(f"seqatt.{_MODULES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
