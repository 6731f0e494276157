"""Queries and streams are data: a polars LazyFrame, a DuckDB relation, an Arrow stream or Dataset."""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pytest
from pyarrow import parquet as pq

import seqatt
from seqatt.data.files import streams
from seqatt.data.files.formats.fragment import find_fragments

pl = pytest.importorskip("polars", reason="needs polars: pip install 'seqatt[polars]'")

ROWS = 3_000
QUICK: dict[str, Any] = {"k": 3, "hidden": (8,), "epochs": 2, "ensemble": 1, "batch_size": 64}


@pytest.fixture(scope="module")
def frame() -> Any:
    """Numbers, categories of few and many values, booleans, whole numbers and dates, with missing values."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(ROWS, 3)).astype(np.float32)
    columns = {f"n{j}": x[:, j] for j in range(3)}
    frame = pl.DataFrame(
        {
            **columns,
            "few": pl.Series(rng.choice(list("abcdef"), ROWS), dtype=pl.Categorical),
            "many": rng.choice([f"v{i}" for i in range(60)], ROWS),
            "flag": rng.random(ROWS) > 0.5,
            "count": rng.integers(0, 9, ROWS),
            "day": pl.Series(rng.integers(0, 900, ROWS)).cast(pl.Date),
        }
    )
    score = pl.col("n0") + pl.col("n2") + 2 * (pl.col("few") == "a")
    count = pl.when(pl.col("count") > 7).then(None).otherwise(pl.col("count"))
    return frame.with_columns(y=(score > 0).cast(pl.Int8)).with_columns(count=count)


@pytest.fixture(scope="module")
def file(frame, tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("data") / "rows.parquet"
    pq.write_table(frame.to_arrow(), path, row_group_size=500)
    return path


def duckdb_relation(frame: Any, file: Path) -> Any:
    duckdb = pytest.importorskip("duckdb", reason="needs DuckDB: pip install duckdb")
    return duckdb.connect().sql(f"select * from '{file}'")


SOURCES: dict[str, Callable[[Any, Path], Any]] = {
    "LazyFrame": lambda frame, file: frame.lazy().filter(pl.col("n0") < 100),
    "relation": duckdb_relation,
    "reader": lambda frame, file: frame.to_arrow().to_reader(max_chunksize=700),
    "dataset": lambda frame, file: ds.dataset(file),
    "filtered dataset": lambda frame, file: ds.dataset(file).filter(ds.field("n0") < 100),
    "dataset in memory": lambda frame, file: ds.dataset(frame.to_arrow()),
}


def nothing_left_behind() -> bool:
    return not list(Path(tempfile.gettempdir()).glob("seqatt-*"))


@pytest.fixture(autouse=True)
def temporary_files(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))


@pytest.mark.parametrize("name", SOURCES)
def test_rows_that_fit_in_memory_give_the_result_of_the_table_bit_for_bit(frame, file, name):
    expected = seqatt.select(frame, target="y", **QUICK)
    found = seqatt.select(SOURCES[name](frame, file), target="y", **QUICK)
    assert found.settings["reading"] == "memory"
    assert found.features == expected.features
    assert found.scores.tolist() == expected.scores.tolist()
    assert [phase["loss"] for phase in found.history] == [phase["loss"] for phase in expected.history]


@pytest.mark.parametrize("name", SOURCES)
def test_rows_that_do_not_fit_are_read_batch_by_batch(frame, file, name):
    found = seqatt.select(SOURCES[name](frame, file), "y", memory=0, schema_rows=1_000, **QUICK)
    assert found.settings["reading"] == "batches"
    assert found.settings["rows"] == ROWS
    assert set(found.features) == {"n0", "n2", "few"}
    assert nothing_left_behind()
    if name == "dataset":  # its row groups are those of the file
        files = seqatt.select(file, target="y", memory=0, schema_rows=1_000, **QUICK)
        assert found.scores.tolist() == files.scores.tolist()


def test_a_query_without_a_target_is_no_iterable_of_batches(frame):
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # polars warns about the columns of a LazyFrame
        selection = seqatt.select(frame.lazy(), k=2, task="reconstruction", method="f_test")
    assert len(selection.features) == 2


def test_a_stream_is_not_gathered_beyond_the_budget(frame, monkeypatch):
    rows = frame.to_arrow()
    gathered: list[int] = []

    def write(path, schema, batches, others):
        gathered.append(sum(batch.num_rows for batch in batches))
        return streams_write(path, schema, batches, others)

    streams_write = streams._write
    monkeypatch.setattr(streams, "_write", write)
    budget = 1_000 * (2 * rows.nbytes // ROWS + 4 * rows.num_columns)  # of a thousand rows
    files = streams.open_stream(rows.to_reader(max_chunksize=100), lambda columns: None, budget, 1)
    assert 900 <= gathered[0] <= 1_200
    assert files.rows == ROWS
    assert not nothing_left_behind()
    del files
    assert nothing_left_behind()


def test_the_temporary_file_has_large_row_groups_and_the_rows_in_their_order():
    table = pa.table({"a": np.arange(3 * streams.GROUP_ROWS), "y": np.zeros(3 * streams.GROUP_ROWS)})
    files = streams.open_stream(table.to_reader(max_chunksize=1_000), lambda columns: None, 0, 1)
    counts = [group.rows for group in files.row_groups]
    assert sum(counts) == len(table)
    assert len(counts) == 3
    assert pq.read_table(files.row_groups[0].path).equals(table)


def test_several_seeds_and_a_number_found_read_a_stream_once(frame):
    reader = frame.to_arrow().to_reader()
    found = seqatt.select_trials(reader, target="y", k="auto", max_k=4, seeds=[0, 1], method="f_test")
    assert [selection.seed for selection in found] == [0, 1]
    both = seqatt.select_trials(frame.lazy(), target="y", seeds=[0, 1], **QUICK)
    expected = seqatt.select(frame, target="y", seed=1, **QUICK)
    assert both[1].scores.tolist() == expected.scores.tolist()


def test_a_run_on_a_stream_can_be_resumed_if_its_rows_are_the_same(frame, tmp_path):
    options = {**QUICK, "target": "y", "memory": 0, "checkpoint": tmp_path / "checkpoints"}
    first = seqatt.select(frame.lazy(), **options)
    again = seqatt.select(frame.lazy(), resume=True, **options)
    assert again.scores.tolist() == first.scores.tolist()
    other = frame.with_columns(n1=pl.col("n1") + 1)
    with pytest.raises(ValueError, match="belongs to another run"):
        seqatt.select(other.lazy(), resume=True, **options)


def test_evaluate_and_compare_take_streams(frame, file):
    rows = frame.to_arrow()
    train, test = rows.slice(0, 2_000), rows.slice(2_000)
    expected = seqatt.evaluate(train, "y", test, indices=["n0", "n2"], seeds=[0], epochs=1)
    found = seqatt.evaluate(
        train.to_reader(), "y", ds.dataset(test), indices=["n0", "n2"], seeds=[0], epochs=1
    )
    assert found.mean == expected.mean
    with pytest.raises(TypeError, match="X_test: must be files, as X_train is"):
        seqatt.evaluate(train.to_reader(), "y", test, indices=["n0"], seeds=[0])
    settings = {"k": 2, "methods": ["f_test", "random"], "seeds": [0]}
    expected = seqatt.compare(rows, "y", **settings)
    found = seqatt.compare(frame.lazy(), "y", **settings)
    assert [run.metrics for run in found.runs] == [run.metrics for run in expected.runs]


def test_fragments_of_a_partitioned_dataset_have_the_columns_of_their_folders(frame, tmp_path):
    ds.write_dataset(
        frame.to_arrow(),
        tmp_path / "parts",
        format="parquet",
        partitioning=["few"],
        partitioning_flavor="hive",
        max_rows_per_group=200,
        max_rows_per_file=400,
    )
    dataset = ds.dataset(tmp_path / "parts", partitioning="hive")
    fragments = find_fragments(dataset)
    assert len(fragments) > 6
    assert sum(rows for fragment in fragments for rows, _ in fragment.groups) == ROWS
    found = seqatt.select(dataset, target="y", memory=0, schema_rows=1_000, **QUICK)
    assert set(found.features) == {"n0", "n2", "few"}
    assert seqatt.select(dataset, target="y", **QUICK).settings["reading"] == "memory"


def test_text_views_are_text(frame):
    rows = frame.select("n0", "n2", "many", "y").to_arrow()
    views = rows.set_column(2, "many", rows["many"].cast(pa.string_view()))
    expected = seqatt.select(rows, target="y", **QUICK | {"k": 2})
    found = seqatt.select(views.to_reader(), target="y", **QUICK | {"k": 2})
    assert found.scores.tolist() == expected.scores.tolist()


class Unread:
    """A stream whose rows must not be read."""

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        schema = pa.schema([("a", pa.float64()), ("b", pa.float64()), ("y", pa.int64())])

        def batches() -> Any:
            raise AssertionError("a row was read")
            yield

        return pa.RecordBatchReader.from_batches(schema, batches()).__arrow_c_stream__()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"target": "z"}, "target: no column 'z'"),
        ({"y": np.zeros(3)}, "target: must name the column of the files to predict"),
        ({"target": "y", "ignore": ["c"]}, "ignore: no column 'c'"),
        ({"target": "y", "sample_weight": np.ones(3)}, "sample_weight: must name a column"),
        ({"target": "y", "column_types": {"q": "numeric"}}, "column_types"),
        ({"target": "y", "hiden": 3}, "hiden"),
    ],
)
def test_errors_are_raised_before_a_row_is_read(arguments, message):
    with pytest.raises((TypeError, ValueError), match=message):
        seqatt.select(Unread(), k=1, **arguments)


def test_a_reader_that_was_read_or_a_stream_without_rows_is_refused(frame):
    reader = frame.to_arrow().to_reader()
    reader.read_all()
    with pytest.raises(
        ValueError, match=r"the stream has no rows; a record-batch reader can be read only once"
    ):
        seqatt.select(reader, target="y", k=1)
    with pytest.raises(ValueError, match="the dataset has no rows"):
        seqatt.select(ds.dataset(frame.to_arrow().slice(0, 0)), target="y", k=1)
    with pytest.raises(TypeError, match=r"each of 2 ranks would read the LazyFrame by itself"):
        streams.open_stream(frame.lazy(), lambda columns: None, 0, ranks=2)


def test_a_dask_frame_is_to_be_written_to_files_first(frame):
    dask = pytest.importorskip("dask.dataframe", reason="needs Dask: pip install 'dask[dataframe]'")
    rows = dask.from_pandas(frame.select("n0", "n1", "y").to_pandas(), npartitions=2)
    with pytest.raises(
        TypeError, match=r"X: a DataFrame of dask .* X.to_parquet\(folder\) and pass the folder"
    ):
        seqatt.select(rows, target="y", k=1)
