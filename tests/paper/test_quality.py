"""With its defaults, Sequential Attention selects better features than chance and than a univariate test.

The comparison with the univariate test is on average over these tables and sizes: with two of wine's features
the univariate selection is often better. These tests guard measured results against regressions; they are not
independent evidence.
"""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_digits, load_wine, make_classification
from sklearn.feature_selection import SelectKBest, f_classif
from sklearn.model_selection import train_test_split

import seqatt


def planted(seed: int) -> tuple[np.ndarray, np.ndarray]:
    return make_classification(
        n_samples=1000,
        n_features=30,
        n_informative=6,
        n_redundant=6,
        n_clusters_per_class=3,
        random_state=seed,
    )


PROBLEMS = {
    "digits": (lambda seed: load_digits(return_X_y=True), (8,)),
    "breast_cancer": (lambda seed: load_breast_cancer(return_X_y=True), (5,)),
    "wine": (lambda seed: load_wine(return_X_y=True), (3,)),
    "planted": (planted, (8,)),
}
SPLITS = 3


def accuracies(name: str) -> dict[str, float]:
    """Mean test accuracy of three methods over sizes and splits."""
    make, sizes = PROBLEMS[name]
    scores: dict[str, list[float]] = {"attention": [], "univariate": [], "random": []}
    for seed in range(SPLITS):
        X, y = make(seed)
        train, test, y_train, y_test = train_test_split(X, y, test_size=0.4, random_state=seed, stratify=y)
        for k in sizes:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # constant pixels have no F statistic
                univariate = SelectKBest(f_classif, k=k).fit(train, y_train).get_support(indices=True)
            selections = {
                "attention": seqatt.select(train, y_train, k, seed=seed),
                "univariate": univariate,
                "random": seqatt.select(train, y_train, k, seed=seed, method="random"),
            }
            for method, indices in selections.items():
                result = seqatt.evaluate(train, y_train, test, y_test, indices, seeds=[0])
                scores[method].append(result["accuracy"][0])
    return {method: float(np.mean(values)) for method, values in scores.items()}


@pytest.mark.slow
def test_better_than_random_everywhere_and_than_a_univariate_test_on_average():
    means = {name: accuracies(name) for name in PROBLEMS}
    for name, mean in means.items():
        assert mean["attention"] > mean["random"] + 0.02, name
    assert np.mean([m["attention"] - m["univariate"] for m in means.values()]) > 0.005, means


@pytest.mark.parametrize("seed", range(3))
def test_an_interaction_without_univariate_effects_is_found(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(2000, 20))
    y = (X[:, 3] > 0) ^ (X[:, 7] > 0)
    assert set(seqatt.select(X, y, 2, seed=seed).indices) == {3, 7}


@pytest.mark.parametrize("seed", range(3))
def test_redundant_copies_are_not_selected(seed):
    rng = np.random.default_rng(seed)
    sources = rng.normal(size=(1500, 4))
    y = sources @ [2, 1.5, 1, 0.8] + 0.3 * rng.normal(size=1500) > 0
    copies = sources[:, [0] * 5 + [1] * 5] + 0.05 * rng.normal(size=(1500, 10))
    X = np.concatenate([sources, copies, rng.normal(size=(1500, 10))], 1)
    origin = np.array([0, 1, 2, 3] + [0] * 5 + [1] * 5 + [-1] * 10)
    assert sorted(origin[seqatt.select(X, y, 4, seed=seed).indices]) == [0, 1, 2, 3]
