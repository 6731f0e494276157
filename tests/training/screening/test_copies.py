"""Copies come last in an order of features."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

import seqatt
from seqatt.data.tables.table_data import SparseColumns, read_table_data
from seqatt.training.screening.copies import copies_last
from seqatt.training.screening.row_sample import draw_sample


def sample_of(X, **options):
    y = np.arange(X.shape[0]) % 2
    return draw_sample(read_table_data(X, y, **options))


def numbers(rows=200, columns=6):
    return np.random.default_rng(0).normal(size=(rows, columns))


def test_exact_negated_and_summed_copies_follow_all_others_and_keep_their_order():
    X = numbers()
    X[:, 1], X[:, 2], X[:, 4] = X[:, 0], -X[:, 0], X[:, 0] + X[:, 3]
    assert copies_last([1, 0, 3, 4, 2, 5], sample_of(X)) == [1, 3, 5, 0, 4, 2]


def test_features_that_others_predict_in_part_stay_where_they_are():
    X = numbers()
    X[:, 1] = X[:, 0] + 0.3 * X[:, 1]
    assert copies_last([0, 1, 2, 3, 4, 5], sample_of(X)) == [0, 1, 2, 3, 4, 5]


def test_with_hardly_more_rows_than_features_chance_makes_no_copies():
    X = numbers(rows=14, columns=12)
    assert copies_last(list(range(12)), sample_of(X)) == list(range(12))


def test_features_that_are_kept_stay_first_even_if_they_are_copies():
    X = numbers()
    X[:, 1], X[:, 3] = X[:, 0], X[:, 0]
    assert copies_last([0, 1, 3, 2], sample_of(X), kept=2) == [0, 1, 2, 3]


def test_a_copy_of_a_category_is_one_too():
    city = np.array(["a", "b", "c", "d"])[np.random.default_rng(0).integers(4, size=300)]
    X = pd.DataFrame({"city": city, "town": np.char.upper(city), "size": numbers(300)[:, 0]})
    data = read_table_data(X, np.arange(300) % 2, categories="mixed")
    places = {name: position for position, name in enumerate(data.given_names)}
    order = [places["city"], places["town"], places["size"]]
    assert copies_last(order, draw_sample(data)) == [order[0], order[2], order[1]]


def test_a_sparse_table_has_the_order_of_the_dense_one(monkeypatch):
    X = numbers() * (np.random.default_rng(1).random((200, 6)) < 0.3)
    X[:, 1] = 2 * X[:, 0]
    dense = copies_last([0, 1, 2, 3, 4, 5], sample_of(X))
    monkeypatch.setattr("seqatt.data.tables.encoding.DENSE_CELLS", 0)
    sparse = sample_of(sp.csr_array(X))
    assert isinstance(sparse.data.columns, SparseColumns)
    assert copies_last([0, 1, 2, 3, 4, 5], sparse) == dense == [0, 2, 3, 4, 5, 1]


@pytest.mark.parametrize("seed", [0, 1])
def test_the_first_features_of_a_selection_of_signals_and_their_copies_are_the_signals(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(300, 12))
    X[:, 3:6] = X[:, :3]
    y = X[:, :3] @ [1.5, 1.0, 0.6] + 0.3 * rng.normal(size=300)
    selection = seqatt.select(X, y, 6, seed=seed)
    assert sorted(column % 3 for column in selection.indices[:3]) == [0, 1, 2]
    assert (selection.indices[:3] < 6).all()
