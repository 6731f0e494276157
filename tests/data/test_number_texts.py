"""Numbers that are written as text: one rule for text files, other files and data frames."""

from __future__ import annotations

import json
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.support.command import run

import seqatt
from seqatt.data.files.file_columns import open_columns
from seqatt.data.files.file_data import read_file_data
from seqatt.data.files.file_set import open_files
from seqatt.data.files.options import FileOptions
from seqatt.data.files.shards import ShardSlice
from seqatt.data.files.validation_rows import sample_table
from seqatt.data.number_texts import examine_texts, to_numbers
from seqatt.data.tables.table_data import read_table_data

ROWS = 2000
AS_NUMBERS, NEARLY = "text that is read as numbers", "because '.*' in '.*' is not a number"


def numbers_frame() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(ROWS, 6)).round(4), columns=[f"f{i}" for i in range(6)])
    return frame.assign(y=frame["f0"] + frame["f1"] + 0.3 * rng.normal(size=ROWS))


def with_placeholder(text: str) -> pd.DataFrame:
    """Every 50th value of f0 is missing; the text is also a category of ``kind``."""
    frame = numbers_frame()
    frame["f0"] = frame["f0"].astype(object)
    frame.loc[::50, "f0"] = text
    return frame.assign(kind=np.where(np.arange(ROWS) % 3, "plain", text))


def numeric_names(data) -> list[str]:
    return [data.names[position] for position in data.encoder.numeric]


@pytest.mark.parametrize(
    ("texts", "contents", "example"),
    [
        (["1.5", "-2", " 3 ", ".5", "1e5", "+4"], "numbers", None),
        (["1.5", "2", "?", "None", ""], "numbers", "?"),
        (["none", "-"], "text", None),
        (["1", "-"], "text", None),  # a single number beside a placeholder: a flag
        (["1"], "text", None),
        (["a", "b", "1"], "text", None),
        (["00123", "02139", "94103"], "codes", "00123"),
        (["0", "0.5", "00.5"], "numbers", None),
        ([*map(str, range(40)), "65+"], "nearly", "65+"),
        ([*map(str, range(40)), "007"], "nearly", "007"),
        ([], "text", None),
    ],
)
def test_a_text_column_is_what_its_values_are(texts, contents, example):
    for type_ in (pa.string(), pa.large_string()):
        assert examine_texts(pa.array(texts, type_)) == (contents, example)


def test_whole_numbers_that_repeat_are_categories_unless_a_placeholder_explains_the_text():
    whole, mixed = pa.array(["1", "2", "-3"]), pa.array(["1", "2", "-3", "?"])
    assert examine_texts(whole, rows_per_value=10).contents == "text"
    assert examine_texts(whole, rows_per_value=9).contents == "numbers"
    assert examine_texts(mixed, rows_per_value=10).contents == "numbers"
    assert examine_texts(pa.array(["1", "2.5"]), rows_per_value=10).contents == "numbers"


def test_placeholders_become_missing_and_other_text_is_named():
    column = pa.array(["1.5", "?", None, " 2 ", "none", ""])
    for each in (column, column.dictionary_encode(), pa.chunked_array([column])):
        assert to_numbers(each)[0].to_pylist() == [1.5, None, None, 2.0, None, None]
    assert to_numbers(pa.array(["1", "many"])) == (None, "many")


@pytest.mark.parametrize("text", ["?", "-", "none", "None", " ", " ?", "N/A"])
def test_numbers_of_a_csv_file_may_have_placeholders_and_categories_keep_them(tmp_path, text):
    frame = with_placeholder(text)
    frame.to_csv(tmp_path / "data.csv", index=False)
    plain = text == "N/A"  # a missing value of Arrow's own, in text too
    for memory in (None, 0):
        options = {"method": "linear_omp", "memory": memory, "target": "y", "k": 2}
        if plain:
            selection = seqatt.select(tmp_path / "data.csv", **options)
        else:
            with pytest.warns(UserWarning, match=f"f0: {AS_NUMBERS}, and .* column_types={{'f0': 'cat"):
                selection = seqatt.select(tmp_path / "data.csv", **options)
            seqatt.select(tmp_path / "data.csv", column_types={"f0": "categorical"}, **options)  # no warning
        assert sorted(selection.features) == ["f0", "f1"]
    columns = open_columns(open_files(tmp_path / "data.csv"), "y", FileOptions())
    X, _ = columns.read_table(FileOptions())
    assert X["f0"].null_count == ROWS // 50
    expected = [None if plain and each == text else each for each in frame["kind"]]
    assert X["kind"].to_pylist() == expected


def test_a_placeholder_after_the_first_block_is_missing_too(tmp_path, monkeypatch):
    monkeypatch.setattr("seqatt.data.files.formats.delimited.BLOCK_BYTES", 1000)
    frame = with_placeholder("?")
    frame.loc[: ROWS // 2, ["f0", "kind"]] = [0.5, "plain"]
    frame.to_csv(tmp_path / "data.csv", index=False)
    X, _ = open_columns(tmp_path / "data.csv", "y", FileOptions()).read_table(FileOptions())
    assert X["f0"].null_count == sum(frame["f0"] == "?") > 0
    assert X["kind"].to_pylist() == frame["kind"].tolist()


def test_dates_of_a_csv_file_may_have_placeholders(tmp_path):
    days = pd.date_range("2020-01-01", periods=ROWS).strftime("%Y-%m-%d").to_series().reset_index(drop=True)
    numbers_frame().assign(day=days.where(days.index % 9 > 0, "-")).to_csv(tmp_path / "data.csv", index=False)
    with pytest.warns(UserWarning, match=f"day: {AS_NUMBERS}"):
        X, _ = open_columns(tmp_path / "data.csv", "y", FileOptions()).read_table(FileOptions())
    assert X["day"].null_count == -(-ROWS // 9)


@pytest.mark.parametrize("convert", [lambda frame: frame, pl.from_pandas, pa.Table.from_pandas])
def test_numbers_as_text_in_a_frame_are_numbers_with_one_warning(convert):
    frame = numbers_frame()
    expected = read_table_data(frame, "y")
    texts = frame.drop(columns="y").astype(str).assign(y=frame["y"])
    with pytest.warns(UserWarning, match=AS_NUMBERS) as caught:
        data = read_table_data(convert(texts), "y")
    assert len(caught) == 1
    for said in ("f0, f1, f2, f3, f4, f5", "convert 'f0' to a categorical dtype"):
        assert said in str(caught[0].message)
    np.testing.assert_array_equal(data.columns, expected.columns)
    np.testing.assert_array_equal(data.encode(convert(texts)).columns, expected.columns)


def test_a_placeholder_in_an_object_column_is_missing():
    frame = with_placeholder("?")
    with pytest.warns(UserWarning, match=f"X: f0: {AS_NUMBERS}, and '\\?' as missing"):
        data = read_table_data(frame, "y", missing_indicator=True)
    assert data.encoder.missing_shares.max() == pytest.approx(1 / 50)
    assert data.feature_of.tolist().count(data.names.index("f0")) == 2  # the number and its indicator


def test_codes_categories_and_booleans_stay_what_they_are():
    zips = np.char.zfill((np.arange(ROWS) % 20).astype(str), 5)
    frame = numbers_frame()[["f0", "y"]].assign(
        zip=zips,
        few=pd.Series(np.arange(ROWS) % 7).astype(str),
        decimals=pd.Series(np.arange(ROWS) % 20 / 4).astype(str).astype("category"),
        flag=pd.Series(np.arange(ROWS) % 2 == 0, dtype=object),
    )
    data = read_table_data(frame, "y", categories="one_hot", max_categories=9)
    widths = [data.feature_of.tolist().count(feature) for feature in range(data.features)]
    assert dict(zip(data.names, widths, strict=True)) == {
        "f0": 1,
        "zip": 9,
        "few": 7,
        "decimals": 9,
        "flag": 1,
    }


def test_codes_of_a_csv_file_are_text_with_a_warning(tmp_path):
    frame = numbers_frame().assign(zip=np.char.zfill((np.arange(ROWS) % 90).astype(str), 5))
    frame.to_csv(tmp_path / "data.csv", index=False)
    with pytest.warns(UserWarning, match=r"zip: read as text, because '00000' .*={'zip': 'numeric'}"):
        columns = open_columns(tmp_path / "data.csv", "y", FileOptions())
    assert columns.kinds["zip"] == "categorical"
    assert columns.read_table(FileOptions())[0]["zip"].to_pylist()[:2] == ["00000", "00001"]
    options = FileOptions(column_types={"zip": "numeric"})
    X, _ = open_columns(tmp_path / "data.csv", "y", options).read_table(FileOptions())  # no warning
    assert X["zip"].to_pylist()[:2] == [0, 1]


def test_text_that_is_nearly_all_numbers_stays_text_with_an_example(tmp_path):
    frame = numbers_frame()
    frame["f0"] = frame["f0"].astype(str)
    frame.loc[7, "f0"] = "1.2.3"
    with pytest.warns(UserWarning, match=f"X: f0: read as text, {NEARLY.replace('.*', '1.2.3', 1)}"):
        data = read_table_data(frame, "y")
    assert "f0" not in numeric_names(data)
    frame.to_csv(tmp_path / "data.csv", index=False)
    pq.write_table(pa.Table.from_pandas(frame), tmp_path / "data.parquet")
    for name in ("data.csv", "data.parquet"):
        for memory in (None, 0):
            with pytest.warns(UserWarning, match=f"{name}: f0: read as text, {NEARLY}") as caught:
                seqatt.select(tmp_path / name, target="y", k=1, method="linear_omp", memory=memory)
            assert len(caught) == 1


def test_column_types_decide_about_text(tmp_path):
    frame = numbers_frame()
    frame["f0"] = frame["f0"].astype(str)
    assert "f0" not in numeric_names(read_table_data(frame, "y", column_types={"f0": "categorical"}))
    frame["f0"] = pd.Series(np.arange(ROWS) % 7).astype(str)
    assert "f0" in numeric_names(read_table_data(frame, "y", column_types={"f0": "numeric"}))
    frame.loc[3, "f0"] = "many"
    with pytest.raises(ValueError, match="X: column 'f0' holds 'many', which is not a number"):
        read_table_data(frame, "y", column_types={"f0": "numeric"})
    pq.write_table(pa.Table.from_pandas(frame), tmp_path / "data.parquet")
    with pytest.raises(ValueError, match=r"data\.parquet: column 'f0' holds 'many'"):
        open_columns(tmp_path / "data.parquet", "y", FileOptions(column_types={"f0": "numeric"})).read_table(
            FileOptions()
        )


def test_text_of_parquet_files_is_read_alike_in_memory_and_in_batches(tmp_path):
    frame = numbers_frame()
    frame["f0"] = frame["f0"].astype(str)
    frame.loc[::50, "f0"] = "?"
    frame["id"] = (np.arange(ROWS) % 40).astype(str)
    pq.write_table(pa.Table.from_pandas(frame), tmp_path / "data.parquet", row_group_size=300)
    with pytest.warns(UserWarning, match=f"f0: {AS_NUMBERS}, and '\\?' as missing"):
        data = read_file_data(tmp_path / "data.parquet", "y", FileOptions(schema_rows=500), 64)
    assert data.kinds == dict.fromkeys((f"f{i}" for i in range(6)), "numeric") | {"id": "categorical"}
    assert (
        sum(
            len(rows.target)
            for group in data.files.row_groups
            for rows, _ in data.read_slice(ShardSlice(group), 0)
        )
        == ROWS
    )
    for memory in (None, 0):
        options = {"target": "y", "k": 2, "method": "linear_omp", "memory": memory}
        with pytest.warns(UserWarning, match=f"f0: {AS_NUMBERS}"):
            selection = seqatt.select(tmp_path / "data.parquet", **options)
        assert sorted(selection.features) == ["f0", "f1"]
    frame.loc[ROWS - 1, "f0"] = "many"
    pq.write_table(pa.Table.from_pandas(frame), tmp_path / "data.parquet", row_group_size=300)
    with pytest.warns(UserWarning, match=f"f0: {AS_NUMBERS}"):
        data = read_file_data(tmp_path / "data.parquet", "y", FileOptions(schema_rows=8), 64)
    with pytest.raises(ValueError, match=r"'f0' holds 'many', which is not a number; .*column_types"):
        list(data.read_slice(ShardSlice(data.files.row_groups[-1]), 0))


@pytest.mark.parametrize(
    "make", [seqatt.SequentialAttentionSelector, seqatt.OMPSelector, seqatt.FeatureSelector]
)
def test_selectors_name_a_remedy_that_they_have(make):
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(ROWS, 3)), columns=list("abc")).assign(a=lambda X: X.a.astype(str))
    y = rng.integers(2, size=ROWS)
    for wrong, message in (
        (None, "text that is read as numbers"),
        ("many", "because 'many' in 'a' is not a number"),
    ):
        X["a"] = X["a"] if wrong is None else [*X["a"][:-1], wrong]
        with pytest.warns(UserWarning, match=message) as caught:
            make(1).fit(X, y)
        assert "convert 'a' to a categorical dtype" in str(caught[0].message)
        assert "column_types" not in str(caught[0].message)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            make(1).fit(X.astype({"a": "category"}), y)
    with pytest.raises(ValueError, match=r"log1p: 'a' is not a numeric feature; .* convert it to numbers"):
        seqatt.select(X.astype({"a": "category"}), y, 1, log1p=["a"])


def test_identifiers_repeat_in_all_files_even_if_not_in_the_schema_sample(tmp_path):
    ids = np.random.default_rng(0).integers(1000, size=20_000).astype(str)
    table = pa.table({"id": ids, "x": np.arange(20_000.0), "y": np.arange(20_000) % 2})
    pq.write_table(table, tmp_path / "data.parquet")
    data = read_file_data(tmp_path / "data.parquet", "y", FileOptions(schema_rows=600), 64)
    assert data.kinds["id"] == "categorical"


def test_the_schema_sample_as_a_table_has_the_kinds_of_the_files(tmp_path):
    table = pa.table({"x": np.arange(3000.0), "n": np.arange(3000), "y": np.arange(3000) % 2})
    pq.write_table(table, tmp_path / "data.parquet")
    options = FileOptions(column_types={"n": "categorical"})
    data = read_file_data(tmp_path / "data.parquet", "y", options, 64)
    assert numeric_names(sample_table(data, options)) == ["x"]  # no warning about n, which is text there


def test_test_rows_are_read_as_the_training_rows_were(tmp_path):
    frame = with_placeholder("?")
    kinds = np.where(np.arange(ROWS) % 2, "1.5", "other").astype(object)
    frame["kind"] = kinds
    train, test = frame.iloc[::2].copy(), frame.iloc[1::2].copy()
    test["f0"] = [str(value) if value != "?" else "-" for value in test["f0"]]
    train.loc[2::40, "kind"] = "1.5"
    train.loc[4::40, "kind"] = "2.5"
    assert set(test["kind"]) == {"1.5"}
    columns = ["f0", "f1", "kind"]
    options = {"epochs": 20, "seeds": [0]}
    with pytest.warns(UserWarning, match=AS_NUMBERS) as caught:
        result = seqatt.evaluate(train, "y", test, "y", columns, **options)
    assert len(caught) == 1
    assert result["r2"][0] > 0.5
    bad = test.assign(f0="many")
    with pytest.warns(UserWarning, match=AS_NUMBERS), pytest.raises(ValueError, match=r"X_test: .*'many'"):
        seqatt.evaluate(train, "y", bad, "y", columns, **options)
    for name, part in (("train", train), ("test", test)):
        part.to_csv(tmp_path / f"{name}.csv", index=False)
        pq.write_table(pa.Table.from_pandas(part.astype({"f0": str})), tmp_path / f"{name}.parquet")
    for ending in ("csv", "parquet"):
        for memory in (None, 0):
            paths = tmp_path / f"train.{ending}", "y", tmp_path / f"test.{ending}"
            with pytest.warns(UserWarning, match=AS_NUMBERS):
                result = seqatt.evaluate(*paths, indices=columns, memory=memory, **options)
            assert result["r2"][0] > 0.5


def test_an_estimator_predicts_from_text_as_it_was_fitted():
    frame = numbers_frame()
    X, y = frame[["f0", "f1", "f2"]], frame["y"]
    texts = X.astype(str)
    texts.loc[::50, "f0"] = "?"
    with pytest.warns(UserWarning, match=AS_NUMBERS) as caught:
        model = seqatt.SequentialAttentionRegressor(2, epochs=20).fit(texts, y)
    assert sum(AS_NUMBERS in str(each.message) for each in caught) == 1
    assert sorted(model.get_feature_names_out()) == ["f0", "f1"]
    missing = X.where(texts["f0"] != "?", X.assign(f0=np.nan))
    np.testing.assert_array_equal(model.predict(texts), model.predict(missing))
    with pytest.raises(ValueError, match="'f0' holds 'many'"):
        model.predict(texts.assign(f0="many"))
    assert model.transform(texts).equals(texts[["f0", "f1"]])


def test_the_command_names_its_own_options(tmp_path):
    with_placeholder("?").to_csv(tmp_path / "data.csv", index=False)
    done = run("select", tmp_path / "data.csv", "-t", "y", "-k", 2, "--method", "linear_omp")
    assert done.returncode == 0, done.stderr
    assert f"f0: {AS_NUMBERS}, and '?' as missing; pass --categorical f0" in done.stderr


def test_the_command_reads_a_decimal_comma_and_names_its_own_flags(tmp_path):
    numbers_frame().to_csv(tmp_path / "data.csv", index=False, sep=";", decimal=",")
    arguments = ["select", tmp_path / "data.csv", "-t", "y", "-k", 2, "--method", "linear_omp", "--json"]
    done = run(*arguments)
    assert done.returncode == 0, done.stderr
    assert "pass --delimiter ';' if" in done.stderr
    assert "pass --decimal ',' if" in done.stderr
    assert sorted(json.loads(done.stdout)["features"]) == ["f0", "f1"]
    done = run(*arguments, "--delimiter", ";", "--decimal", ",")
    assert (done.returncode, done.stderr) == (0, "")
