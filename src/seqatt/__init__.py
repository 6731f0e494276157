"""seqatt: choose the features that matter to a neural network."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from seqatt.version import __version__

if TYPE_CHECKING:
    from seqatt import data, linear, ray
    from seqatt.choosing import TrainingDiverged, select, select_trials
    from seqatt.comparison.result import Comparison
    from seqatt.comparison.running import compare
    from seqatt.estimators import (
        LinearAttentionSelector,
        OMPSelector,
        SequentialAttentionSelector,
        SequentialLassoSelector,
    )
    from seqatt.feature_selector import FeatureSelector
    from seqatt.layer import SequentialAttention
    from seqatt.neural.evaluate import Evaluation, evaluate
    from seqatt.neural.marginal_gains import marginal_gains
    from seqatt.registry import methods
    from seqatt.selection import Selection
    from seqatt.stream.judging import evaluate_files

_ROOMS = {
    "Comparison": "comparison.result",
    "Evaluation": "neural.evaluate",
    "FeatureSelector": "feature_selector",
    "LinearAttentionSelector": "estimators",
    "OMPSelector": "estimators",
    "Selection": "selection",
    "SequentialAttention": "layer",
    "SequentialAttentionSelector": "estimators",
    "SequentialLassoSelector": "estimators",
    "TrainingDiverged": "choosing",
    "compare": "comparison.running",
    "evaluate": "neural.evaluate",
    "evaluate_files": "stream.judging",
    "marginal_gains": "neural.marginal_gains",
    "methods": "registry",
    "select": "choosing",
    "select_trials": "choosing",
}

__all__ = [
    "Comparison",
    "Evaluation",
    "FeatureSelector",
    "LinearAttentionSelector",
    "OMPSelector",
    "Selection",
    "SequentialAttention",
    "SequentialAttentionSelector",
    "SequentialLassoSelector",
    "TrainingDiverged",
    "__version__",
    "compare",
    "data",
    "evaluate",
    "evaluate_files",
    "linear",
    "marginal_gains",
    "methods",
    "ray",
    "select",
    "select_trials",
]


def __getattr__(name: str) -> Any:
    """Public names load what they need when they are first used, so that ``--help`` is quick."""
    if name in ("data", "linear", "ray"):
        return import_module(f"seqatt.{name}")
    if name not in _ROOMS:
        raise AttributeError(f"module 'seqatt' has no attribute {name!r}")
    value = getattr(import_module(f"seqatt.{_ROOMS[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
