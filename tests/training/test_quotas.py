"""Quotas: never violated, and exactly k features whenever that is possible."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from seqatt.training.selection_state import Quotas, SelectionState

FEATURES = 9


@st.composite
def problems(draw: Any) -> tuple[Quotas, list[int], list[int]]:
    """Quotas, features to keep and a ranking of all features; k need not be possible."""
    count = draw(st.integers(1, 3))
    quota_of = np.array(draw(st.lists(st.integers(0, count), min_size=FEATURES, max_size=FEATURES)))
    least = np.array([draw(st.integers(0, 3)) for _ in range(count)] + [0])
    most = least + np.array([draw(st.integers(0, 3)) for _ in range(count)] + [FEATURES])
    kept = draw(st.lists(st.integers(0, FEATURES - 1), max_size=3, unique=True))
    k = draw(st.integers(max(1, len(kept)), FEATURES))
    return Quotas(quota_of, least, most, k), kept, draw(st.permutations(range(FEATURES)))


def is_met(quotas: Quotas, features: tuple[int, ...] | list[int]) -> bool:
    counts = np.bincount(quotas.quota_of[list(features)], minlength=len(quotas.least))
    return bool((counts >= quotas.least).all() and (counts <= quotas.most).all())


def is_possible(quotas: Quotas, kept: list[int]) -> bool:
    """By trying every set of k features."""
    return any(
        set(kept) <= set(features) and is_met(quotas, features)
        for features in combinations(range(FEATURES), quotas.k)
    )


@settings(max_examples=200, deadline=None)
@given(problems())
def test_the_first_features_of_a_ranking_meet_the_quotas_whenever_that_is_possible(problem):
    quotas, kept, ranking = problem
    if not is_possible(quotas, kept):
        return
    first = quotas.first(ranking, kept)
    assert len(set(first)) == len(first) == quotas.k
    assert first[: len(kept)] == kept
    assert is_met(quotas, first)
    assert quotas.first(first + [f for f in ranking if f not in first], kept) == first


@settings(max_examples=150, deadline=None)
@given(problems(), st.integers(0, 4), st.integers(0, 2), st.integers(1, 3), st.integers(0, 1000))
def test_a_surplus_and_replacements_end_with_k_features_that_meet_the_quotas(
    problem, surplus, rounds, at_once, seed
):
    quotas, kept, _ = problem
    if not is_possible(quotas, kept):
        return
    rng, k = np.random.default_rng(seed), quotas.k
    state = SelectionState(2, rng.random(FEATURES) < 0.2, torch.device("cpu"), 1, kept, quotas)

    def take(count: int) -> None:
        while count:
            state.take(rng.normal(size=(2, FEATURES)), step := min(count, at_once))
            count -= step

    def drop(count: int) -> None:
        for _ in range(count):
            state.drop(rng.normal(size=(2, len(state.order[0]))))

    surplus = min(surplus, FEATURES - k)
    take(k - len(kept) + surplus)
    drop(surplus)
    for _ in range(rounds):
        assert all(is_met(quotas, order) for order in state.order)
        count = min(2, k - len(kept))
        drop(count)
        take(count)
    for order in state.order:
        assert len(set(order)) == len(order) == k
        assert set(order[: len(kept)]) == set(kept)
        assert is_met(quotas, order)


def test_features_of_a_full_quota_get_no_attention_and_only_needed_ones_do_at_the_end():
    quotas = Quotas(np.array([0, 0, 1, 1, 2]), np.array([0, 1, 0]), np.array([1, 2, 5]), 2)
    state = SelectionState(1, np.zeros(5, dtype=bool), torch.device("cpu"), quotas=quotas)
    assert torch.isinf(state.blocked).tolist() == [[False] * 5]
    state.take(np.array([[9.0, 8, 0, 1, 7]]), 1)
    assert state.order == [[0]]
    assert torch.isinf(state.blocked).tolist() == [[True, True, False, False, True]]
    assert state.take(np.array([[9.0, 8, 0, 1, 7]]), 1) == [[3]]
