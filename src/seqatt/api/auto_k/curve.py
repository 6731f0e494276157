"""The number of features that a rule chooses from the scores of networks."""

from __future__ import annotations

from typing import Any

import numpy as np

from seqatt.algorithms.answer_options import BEST, ONE_STANDARD_ERROR

# Share of the gain of the best size that counts as nothing, where one standard error is even less.
MARGIN = 0.01
NOTHING = 2.0  # standard errors, corrected, by which the best size must beat no features, else none is chosen


def choose_size(curve: dict[str, Any], rule: str | float) -> int:
    """The number of features that the rule chooses; 0 if no size is clearly better than no features."""
    sizes, means, errors = curve["sizes"], np.array(curve["means"]), np.array(curve["standard_errors"])
    best = int(means.argmax())
    if means[best] - curve["no_features"] <= NOTHING * _fold_correction(curve["folds"]) * errors[best]:
        return 0
    if rule == BEST:
        return int(sizes[best])
    if rule == ONE_STANDARD_ERROR:
        enough = means[best] - max(errors[best], MARGIN * (means[best] - curve["no_features"]))
    else:
        share = float(rule)
        enough = curve["no_features"] + share * (curve["all_features"] - curve["no_features"])
    reaches = np.flatnonzero(means >= min(enough, means[best]))
    return int(sizes[reaches[0]])


def _fold_correction(folds: int) -> float:
    """How much larger the standard error of a mean over folds is, because they share most of their training rows.

    Nadeau and Bengio, "Inference for the Generalization Error", Machine Learning 52, 2003: the variance of a mean over
    J folds is multiplied by 1 + J n_test / n_train.
    """
    return float(np.sqrt(1 + folds / (folds - 1)))
