"""A DataLoader, or any iterable of batches with a length, is data."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader, TensorDataset

from seqatt import select, select_trials
from seqatt.api.read_data import are_batches
from seqatt.data.files.file_data import read_file_data
from seqatt.data.files.loader import make_loader
from seqatt.data.files.options import FileOptions
from seqatt.data.files.streams import open_batches, read_batches

ROWS = 1_050


@pytest.fixture(scope="module")
def arrays() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(ROWS, 3)).astype(np.float32)
    return x, (x[:, 0] > 0).astype(np.int64), rng.random(ROWS).astype(np.float32)


def loader(*arrays: np.ndarray, **options) -> DataLoader:
    return DataLoader(TensorDataset(*map(torch.from_numpy, arrays)), batch_size=100, **options)


class Lists:
    """Batches of plain lists."""

    def __init__(self, batches):
        self.batches = batches

    def __len__(self):
        return len(self.batches)

    def __iter__(self):
        return iter(self.batches)


def test_a_data_loader_streams_like_files(arrays):
    x, y, weights = arrays
    files = open_batches(loader(*arrays))
    assert list(files.types) == ["x0", "x1", "x2", "y", "weights"]
    options = FileOptions(sample_weight="weights", shuffle_rows=400)
    data = read_file_data(files, "y", options, 64)
    assert data.names == ("x0", "x1", "x2")
    assert data.expected_rows == pytest.approx(ROWS, rel=0.05)
    for seed in (0, 0, 1):  # each loader iterates anew
        batches = list(make_loader(data, options, 64, seed, passes=2))
        rows = np.concatenate([batch.rows.numbers for batch in batches])
        assert len(rows) == 2 * ROWS
        assert batches[-1].expected_rows == ROWS
        expected = (x - x.mean(0)) / x.std(0)
        assert np.sort(rows[:ROWS], axis=0) == pytest.approx(np.sort(expected, axis=0), abs=1e-4)
        assert sum(batch.rows.target.sum() for batch in batches) == 2 * y.sum()
        total = sum(batch.rows.weights.sum() for batch in batches)
        assert total == pytest.approx(2 * ROWS * 1.0, rel=1e-4)
        assert weights.mean() == pytest.approx(data.target_column.mean_weight, rel=1e-5)


def test_the_arrays_of_all_batches_are_those_of_the_data_set(arrays):
    x, y, weights = read_batches(loader(*arrays))
    for found, given in zip((x, y, weights), arrays, strict=True):
        assert (found == given).all()
    x, y, weights = read_batches(loader(*arrays[:2]))
    assert weights is None
    assert x.dtype == np.float32
    x, y, _ = read_batches(Lists([([[1, 2], [3, 4]], [0, 1]), ([[5, 6]], [[1]])][:1]))
    assert x.tolist() == [[1, 2], [3, 4]]
    assert y.tolist() == [0, 1]
    half = Lists([(torch.ones(4, 2, dtype=torch.bfloat16, requires_grad=True), torch.zeros(4, 1))])
    assert read_batches(half)[0].dtype == np.float32
    assert read_batches(half)[1].shape == (4,)


X, Y = np.zeros((4, 2)), np.zeros(4)


@pytest.mark.parametrize(
    ("batches", "message"),
    [
        ([X], r"batch 0 must be \(X, y\) or \(X, y, weights\), got ndarray"),
        ([(X, Y, Y, Y)], "got 4 parts"),
        ([(np.zeros((4, 2, 2)), Y)], r"shape \(4, 2, 2\); reshape"),
        ([(np.array([["a"]] * 4), Y)], "features of batch 0 must be numbers"),
        ([(X, Y[:3])], r"targets of batch 0 must be one per row \(4\), got shape \(3,\)"),
        ([(X, Y, Y[:3])], r"weights of batch 0 must be one number per row \(4\)"),
        ([(X, Y), (X[:, :1], Y)], r"batch 1 has features of shape \(4, 1\)"),
        ([(X, Y, Y), (X, Y)], "batch 1 has no weights, unlike the first"),
        ([], "there are no batches"),
    ],
)
def test_batches_of_the_wrong_shape_are_refused(batches, message):
    with pytest.raises((TypeError, ValueError), match=message):
        read_batches(Lists(batches))
    options = FileOptions(task="regression")
    with pytest.raises((TypeError, ValueError), match=message):
        read_file_data(open_batches(Lists(batches)), "y", options, 64)


def test_what_can_be_read_only_once_or_has_no_length_is_refused():
    with pytest.raises(TypeError, match="generator can be read only once"):
        open_batches((X, Y) for _ in range(3))
    endless = DataLoader(_Endless(), batch_size=None)
    with pytest.raises(TypeError, match="DataLoader has no length"):
        read_batches(endless)
    with pytest.raises(ValueError, match="one target per row, got 2"):
        open_batches(Lists([(X, np.zeros((4, 2)))]))


class _Endless(torch.utils.data.IterableDataset):
    def __iter__(self):
        yield X, Y


def test_tables_paths_and_lists_are_no_batches(arrays):
    assert are_batches(loader(*arrays))
    assert are_batches(Lists([]))
    assert not any(map(are_batches, [X, torch.zeros(2, 2), "a.csv", [[1.0]], {"x": [1]}, None, 3]))


def test_seeds_that_select_one_by_one_read_batches_as_one_seed_does(arrays):
    """With repeats and weights; the target of batches has no name."""
    options = {"repeats": 2, "epochs": 5}
    trials = select_trials(loader(*arrays), k=1, seeds=2, **options)
    alone = select(loader(*arrays), k=1, seed=1, **options)
    assert "target" not in trials[1].settings
    assert trials[1].settings == alone.settings
    assert trials[1].scores.tolist() == alone.scores.tolist()
