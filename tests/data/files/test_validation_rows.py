"""Rows of files that are held out for validation, rare values, and files that are read once for several passes."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from seqatt.data.files.file_data import FileData, read_file_data
from seqatt.data.files.loader import make_loader
from seqatt.data.files.options import FileOptions
from seqatt.data.files.shards import ShardSlice
from seqatt.data.files.validation_rows import hold_out_rows, sample_table
from seqatt.data.tables.categories import MIN_CATEGORY_ROWS

ROWS = 3_000


@pytest.fixture
def data(tmp_path) -> FileData:
    """Three files; the number of a row is the value of column a."""
    frame = pd.DataFrame({"a": np.arange(ROWS, dtype=float), "y": np.arange(ROWS) % 2})
    frame["word"] = [f"common{i % 3}" if i % 10 else f"rare{i // 30}" for i in range(ROWS)]  # three rows each
    for number in range(3):
        part = frame.iloc[1_000 * number : 1_000 * (number + 1)]
        part.to_parquet(tmp_path / f"{number}.parquet", row_group_size=400)
    return read_file_data(tmp_path, "y", FileOptions(), 4096, share_rare=True)


def row_numbers(data: FileData, numbers: np.ndarray) -> list[int]:
    [a] = data.numbers
    return np.rint(numbers[:, 0] * a.scale + a.shift).astype(int).tolist()


def test_held_out_rows_have_weight_zero_in_training_and_no_other_row_has(data):
    held, validation = hold_out_rows(data, 200, FileOptions())
    assert validation is not None
    assert 150 <= validation.count <= 250
    assert (validation.weights == 1).all()
    without_weight, rows = [], 0
    for batch in make_loader(held, FileOptions(), 64, 0):
        rows += batch.rows.count
        without_weight += row_numbers(data, batch.rows.numbers[batch.rows.weights == 0])
    assert rows == ROWS
    assert sorted(without_weight) == sorted(row_numbers(data, validation.numbers))


@pytest.mark.parametrize("shards", [2, 3])
def test_the_same_rows_are_held_out_whatever_the_number_of_shards(data, shards):
    held, validation = hold_out_rows(data, 200, FileOptions())
    assert validation is not None
    loader = make_loader(held, FileOptions(), 60, 0, shards=shards, own_shards=range(shards))
    without_weight = [
        row for batch in loader for row in row_numbers(data, batch.rows.numbers[batch.rows.weights == 0])
    ]
    assert sorted(without_weight) == sorted(row_numbers(data, validation.numbers))


def test_at_most_a_fifth_of_few_rows_is_held_out(data):
    _, validation = hold_out_rows(data, 10**6, FileOptions())
    assert validation is not None
    assert ROWS / 10 <= validation.count <= ROWS / 5


def test_values_of_few_rows_share_one_code_for_a_network_and_have_their_own_for_sums(data, tmp_path):
    [word] = data.categories
    assert word.size == 1 + 3 + 1  # missing, the common values, all others
    [counted] = read_file_data(tmp_path, "y", FileOptions(), 4096).categories
    assert len(counted.known) == 3 + 100
    assert MIN_CATEGORY_ROWS > 3


def test_the_schema_sample_as_a_table_has_the_features_of_the_files(data):
    table = sample_table(data, FileOptions())
    assert table.names == data.names
    assert table.rows == ROWS
    assert table.constant.tolist() == data.constant.tolist()


def test_several_passes_over_small_files_read_them_once_and_give_the_same_batches(data, monkeypatch):
    def batches(bound: int) -> tuple[list[bytes], int]:
        calls = []
        monkeypatch.setattr("seqatt.data.files.loader.WINDOW_BYTES", bound)
        real = FileData.read_slice
        monkeypatch.setattr(FileData, "read_slice", lambda *given: calls.append(1) or real(*given))
        read = [
            b.rows.numbers.tobytes()
            for b in make_loader(data, FileOptions(shuffle_rows=256), 64, 0, passes=3)
        ]
        monkeypatch.setattr(FileData, "read_slice", real)
        return read, len(calls)

    once, calls_once = batches(1 << 26)
    again, calls_again = batches(256 * data.row_bytes)
    assert once == again
    assert calls_again == 3 * calls_once


def test_a_slice_has_the_same_rows_in_one_piece_and_in_several(data):
    group = data.files.row_groups[0]
    for one in (ShardSlice(group, 3, 200, 7), ShardSlice(group, 0, None, 1), ShardSlice(group, 5, 150, 1)):
        pieces = [one.row_numbers(first, 45) for first in range(0, 405, 45)]
        assert np.concatenate(pieces).tolist() == one.row_numbers(0, 405).tolist()
        assert np.flatnonzero(one.contains(np.arange(405))).tolist() == one.row_numbers(0, 405).tolist()
