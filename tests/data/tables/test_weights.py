"""How much the rows of unequal classes say, and what depends on it."""

import numpy as np
import pytest

import seqatt
from seqatt.data.tables.table_data import read_table_data
from seqatt.data.tables.weights import balanced_share


def share(y, **options):
    return balanced_share(
        read_table_data(np.random.default_rng(0).normal(size=(len(y), 2)), y, **options).target
    )


def test_the_share_of_balanced_rows_is_one_for_equal_classes_and_falls_with_the_rarer_one():
    assert share(np.arange(100) % 2) == pytest.approx(1)
    assert share(np.arange(90) % 3) == pytest.approx(1)
    assert all(
        share(np.arange(400) % classes, task="classification") <= 1 for classes in range(2, 40)
    )  # also where it is rounded
    assert share(np.arange(100) < 10) == pytest.approx(4 * 0.1 * 0.9)
    assert share(np.linspace(0, 1, 100)) == 1
    assert share(np.arange(100) % 3, task="ordinal") == 1


def test_it_is_the_effective_sample_size_of_balanced_weights():
    y = np.arange(1000) < 30
    X = np.random.default_rng(0).normal(size=(1000, 2))
    weighted = read_table_data(X, y, class_weight="balanced")
    assert weighted.effective_rows == pytest.approx(1000 * share(y))


def rare(positive, rows=12_000):
    X = np.random.default_rng(0).normal(size=(rows, 4))
    y = np.zeros(rows, dtype=int)
    y[np.argsort(-X[:, 0])[:positive]] = 1
    return X, y


def test_more_rows_are_held_out_for_measuring_where_few_are_positive():
    for positive, rows in ((6000, 2048), (2000, 2048), (200, 9600)):
        selection = seqatt.select(*rare(positive), 1, exchanges=0, epochs=2, device="cpu")
        assert selection.importance["rows"] == rows


@pytest.mark.parametrize("classes", [20, 21])
def test_as_many_rows_as_ever_where_classes_are_equal(classes):
    X = np.random.default_rng(0).normal(size=(classes * 150, 4))
    selection = seqatt.select(
        X, np.arange(len(X)) % classes, 1, exchanges=0, epochs=1, device="cpu", task="classification"
    )
    assert selection.importance["rows"] == 2048


def test_a_few_positive_rows_are_too_few_for_exchanges():
    assert seqatt.select(*rare(40), 1, epochs=2, device="cpu").settings["exchanges"] == 0
    assert seqatt.select(*rare(60), 1, epochs=2, device="cpu").settings["exchanges"] == 4
