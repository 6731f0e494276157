"""A number of epochs that ruins the selection is warned about, with a number that would do."""

from __future__ import annotations

import re
import warnings

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer

import seqatt
from seqatt.api.phase_steps import ENOUGH_STEPS


def leaked() -> tuple[np.ndarray, np.ndarray]:
    """569 rows; the last feature is a copy of the target."""
    X, y = load_breast_cancer(return_X_y=True)
    return np.column_stack([X, y]), y


def warning_of(*arguments, **options) -> str | None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        seqatt.select(*arguments, **options)
    texts = [str(each.message) for each in caught if "too few to tell features apart" in str(each.message)]
    return texts[0] if texts else None


def test_too_few_epochs_warn_and_the_suggested_number_finds_a_leaked_target():
    X, y = leaked()
    text = warning_of(X, y, 3, epochs=5)
    assert text is not None
    enough = float(re.search(r"use epochs=([\d.]+) for 20 steps", text).group(1))
    assert warning_of(X, y, 3, epochs=enough) is None
    selection = seqatt.select(X, y, 3, epochs=enough)
    assert 30 in selection.indices
    assert min(phase["steps"] for phase in selection.history if phase["taken"]) >= ENOUGH_STEPS


@pytest.mark.usefixtures("few_steps")
@pytest.mark.parametrize("k", [1, 8])
@pytest.mark.parametrize("method", ["sequential_attention", "omp", "group_lasso", "first_layer"])
def test_defaults_never_warn(method, k, problem):
    assert warning_of(*problem, k, method=method) is None


@pytest.mark.usefixtures("few_steps")
def test_a_large_k_is_not_asked_for_more_than_the_default_has():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(100, 20)), np.arange(100) % 2
    default = seqatt.select(X, y, 10)
    fewest = min(phase["steps"] for phase in default.history if phase["taken"])
    assert fewest < ENOUGH_STEPS
    assert warning_of(X, y, 10, epochs=default.settings["epochs"]) is None
    assert f"for {fewest} steps" in warning_of(X, y, 10, epochs=40)


def test_methods_without_phases_do_not_warn(problem):
    assert warning_of(*problem, 2, method="greedy", epochs=1) is None
