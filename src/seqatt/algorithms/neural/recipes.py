"""Recipes: values by name for options of Sequential Attention that the user leaves out.

``recipe="paper"`` is the algorithm of Yasuda et al. without the additions of seqatt. Options that are given have
precedence over the recipe. Options that no recipe mentions have the same default in all of them.
"""

from __future__ import annotations

from typing import Any

# The paper's one-pass form (appendix B.2.4): one model trains once, each phase selects one feature, none is dropped.
# The warm-up is part of it: a small fraction of the training, here and in the published code a tenth.
_PAPER: dict[str, Any] = {
    "one_pass": True,
    "features_per_phase": 1,
    "ensemble": 1,
    "surplus": 1.0,
    "replacement": 0,
    "input_dropout": 0.0,
    "weight_decay": 0.0,
    "univariate_test": 0.0,
    "asinh_inputs": False,
}

RECIPES: dict[str, dict[str, Any]] = {
    "default": {"one_pass": True},
    "paper": _PAPER,
    # As printed: for each of the k selections a new model is trained, and there is no warm-up.
    "algorithm_1": {**_PAPER, "one_pass": False},
}
