"""The option ``scaling``: columns from 0 to 1, or numbers as they are, from tables and from files alike."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from tests.support.problems import linear_problem

import seqatt
from seqatt.algorithms.registry import all_methods
from seqatt.data.files.file_data import FileData, read_file_data
from seqatt.data.files.options import FileOptions
from seqatt.data.tables import encoding
from seqatt.data.tables.scaling import scale_table
from seqatt.data.tables.table_data import TableData, read_table_data
from seqatt.options import names_of

ROWS = 200


def mixed_frame() -> pd.DataFrame:
    """Numbers of several scales, one with missing values, a constant, a flag and a category; and a target."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "large": 1e6 + 1e3 * rng.normal(size=ROWS),
            "small": 1e-4 * rng.exponential(size=ROWS),
            "missing": np.where(rng.random(ROWS) < 0.2, np.nan, rng.normal(size=ROWS) - 5),
            "constant": 7.0,
            "flag": rng.random(ROWS) < 0.3,
            "city": rng.choice(["Bonn", "Kiel", "Ulm"], size=ROWS),
        }
    )
    frame["y"] = rng.integers(0, 2, size=ROWS)
    return frame


def as_table(frame: pd.DataFrame, **options) -> TableData:
    return read_table_data(frame, "y", missing_indicator=True, **options)


def as_files(frame: pd.DataFrame, folder: Path) -> FileData:
    frame.to_parquet(folder / "rows.parquet")
    return read_file_data(folder, "y", FileOptions(missing_indicator=True), 4096, one_hot=True)


def encoded(data: TableData | FileData, frame: pd.DataFrame) -> np.ndarray:
    if isinstance(data, TableData):
        return np.asarray(data.columns)
    import pyarrow as pa

    return data.encode(pa.RecordBatch.from_pandas(frame)).numbers


@pytest.fixture(params=["table", "files"])
def read(request, tmp_path):
    """The scaled columns of a frame, read as a table or as files, and the name of the feature of each column."""

    def scaled(scaling: str, frame: pd.DataFrame) -> pd.DataFrame:
        if request.param == "table":
            data: TableData | FileData = scale_table(as_table(frame), scaling)
        else:
            data = as_files(frame, tmp_path).scaled(scaling)
        return pd.DataFrame(encoded(data, frame), columns=np.array(data.names)[data.feature_of])

    return scaled


def test_min_max_columns_span_the_range_from_0_to_1(read):
    columns = read("min-max", mixed_frame())
    for position, name in enumerate(columns.columns):
        values = columns.iloc[:, position].to_numpy()
        if name != "constant":
            assert (values.min(), values.max()) == (0, 1)
    expected = mixed_frame()["small"]
    expected = (expected - expected.min()) / (expected.max() - expected.min())
    np.testing.assert_allclose(columns["small"], expected, atol=1e-6)


@pytest.mark.parametrize("scaling", ["min-max", "none"])
def test_categories_flags_and_indicators_are_0_or_1(read, scaling):
    columns = read(scaling, mixed_frame())
    hot = columns["city"].to_numpy()
    assert set(np.unique(hot)) == {0, 1}
    assert (hot.sum(1) == 1).all()
    np.testing.assert_allclose(columns["flag"].to_numpy().ravel(), mixed_frame()["flag"], atol=1e-6)
    indicator = columns["missing"].to_numpy()[:, 1]
    assert indicator.tolist() == mixed_frame()["missing"].isna().astype(float).tolist()


@pytest.mark.parametrize("scaling", ["min-max", "none"])
def test_a_missing_number_is_the_mean_and_stays_inside_the_range(read, scaling):
    frame = mixed_frame()
    numbers = read(scaling, frame)["missing"].to_numpy()[:, 0]
    is_missing = frame["missing"].isna().to_numpy()
    np.testing.assert_allclose(numbers[is_missing], numbers[~is_missing].mean(), rtol=1e-5)
    assert numbers[~is_missing].min() < numbers[is_missing].min() < numbers[~is_missing].max()


def test_without_scaling_numbers_are_as_they_are(read):
    columns, frame = read("none", mixed_frame()), mixed_frame()
    for name in ("large", "small"):
        np.testing.assert_allclose(columns[name], frame[name], rtol=1e-5, atol=1e-9)


def test_standard_changes_nothing(tmp_path):
    table, files = as_table(mixed_frame()), as_files(mixed_frame(), tmp_path)
    assert scale_table(table, "standard") is table
    assert files.scaled("standard") is files


def test_tables_and_files_have_the_same_columns(tmp_path):
    frame = mixed_frame()
    table, files = (as_table(frame), as_files(frame, tmp_path))
    for scaling in ("min-max", "none"):
        one, other = scale_table(table, scaling), files.scaled(scaling)
        for name in one.names:
            columns = [
                encoded(data, frame)[:, np.array(data.names)[data.feature_of] == name]
                for data in (one, other)
            ]
            columns = [
                np.sort(values, axis=1) for values in columns
            ]  # the order of one-hot columns may differ
            np.testing.assert_allclose(*columns, rtol=1e-5, atol=1e-6)


def test_values_of_files_beyond_the_schema_sample_are_clipped_to_the_range(tmp_path):
    frame = mixed_frame()
    data = as_files(frame, tmp_path).scaled("min-max")
    beyond = frame.assign(small=[-1.0, 1.0] * (ROWS // 2))
    small = encoded(data, beyond)[:, np.array(data.names)[data.feature_of] == "small"]
    assert small.ravel().tolist() == [0.0, 1.0] * (ROWS // 2)


def test_rows_of_weight_zero_do_not_widen_the_range():
    X, y = linear_problem("binary", rows=60)
    weight = np.repeat([1.0, 0.0], 30)
    outliers = X.copy()
    outliers[30:] *= 100
    weighted, alone = (
        scale_table(data, "min-max").columns
        for data in (read_table_data(outliers, y, sample_weight=weight), read_table_data(X[:30], y[:30]))
    )
    np.testing.assert_allclose(weighted, alone, atol=1e-6)


@pytest.mark.parametrize("scaling", ["min-max", "none"])
def test_a_sparse_table_too_large_to_be_dense_is_scaled_alike(scaling, monkeypatch):
    X, y = linear_problem("binary", rows=60)
    X[np.abs(X) < 0.7] = 0
    dense = scale_table(read_table_data(X, y), scaling).columns
    monkeypatch.setattr(encoding, "DENSE_CELLS", 0)
    columns = scale_table(read_table_data(sp.csr_matrix(X), y), scaling).columns
    assert isinstance(columns, encoding.SparseColumns)
    np.testing.assert_allclose(columns.to_dense(np.arange(60)), dense, atol=1e-6)


TRAINED = [name for name, method in all_methods().items() if "scaling" in names_of(method.options)]


def test_every_method_that_trains_a_network_has_the_option():
    assert set(TRAINED) == {
        name for name, method in all_methods().items() if "hidden" in names_of(method.options)
    }


@pytest.mark.parametrize("method", TRAINED)
@pytest.mark.parametrize("scaling", ["min-max", "none"])
def test_the_scaling_is_in_the_settings_and_a_table_and_files_select_the_same(method, scaling, tmp_path):
    frame = mixed_frame()
    frame.to_parquet(tmp_path / "rows.parquet")
    options = {"epochs": 2, "hidden": (8,), "method": method, "scaling": scaling}
    if "penalty" in names_of(all_methods()[method].options):
        options["penalty"] = 0.01
    table, files = (seqatt.select(X, target="y", k=3, **options) for X in (frame, tmp_path))
    assert table.settings["scaling"] == files.settings["scaling"] == scaling
    assert table.features == files.features
    assert table.scores.tolist() == files.scores.tolist()


@pytest.mark.parametrize("method", ["group_lasso", "entry_prune"])
def test_files_read_batch_by_batch_are_scaled(method, tmp_path):
    """Raw values near a million would diverge: the first layer sums them."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(1e6 + rng.normal(size=(2_000, 6)), columns=list("abcdef"))
    frame["y"] = (frame["b"] + frame["e"] - 2e6 > 0).astype(int)
    frame.to_parquet(tmp_path / "rows.parquet", row_group_size=500)
    options = {"penalty": 0.01} if method == "group_lasso" else {}
    selection = seqatt.select(tmp_path, target="y", k=2, method=method, memory=0, **options)
    assert selection.settings["reading"] == "batches"
    assert selection.settings["scaling"] == "min-max"
    assert set(selection.features) == {"b", "e"}


def test_an_unknown_scaling_is_an_error():
    X, y = linear_problem("binary", rows=60)
    with pytest.raises(ValueError, match=r"scaling: .*min-max"):
        seqatt.select(X, y, 2, method="group_lasso", scaling="robust")


def test_asinh_is_for_standardised_numbers():
    X, y = linear_problem("binary", rows=60)
    with pytest.raises(ValueError, match="asinh_inputs: is for standardised numbers"):
        seqatt.select(X, y, 2, scaling="min-max", asinh_inputs=True, epochs=1)
