"""Selection from files: relevant features are found, in any format, and invalid input is refused."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import csv
from tests.support.command import run

import seqatt
from seqatt.api import read_files
from seqatt.data.files.errors import UnreadableFile
from seqatt.data.files.file_data import read_file_data
from seqatt.data.files.options import FileOptions
from seqatt.data.files.shards import ShardSlice
from seqatt.datasets.synthetic import CATEGORIES, COUNTS, click_log
from seqatt.training import loop

QUICK = {"hidden": (32,), "batch_size": 64, "epochs": 1, "memory": 0}  # one pass, batch by batch


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    """Two numbers, a category and a flag that the target depends on, and others that it does not."""
    rng = np.random.default_rng(0)
    n = 8_000
    frame = pd.DataFrame({f"n{i}": rng.normal(size=n).round(5) for i in range(5)})
    frame["good"] = np.array(list("abcd"))[rng.integers(4, size=n)]
    frame["noise"] = np.char.add("v", rng.integers(50, size=n).astype(str))
    frame["flag"] = rng.random(n) < 0.5
    effect = frame["good"].map(dict(zip("abcd", [2.0, -1.0, 1.0, -2.0], strict=True)))
    frame["odds"] = 1.5 * frame["n3"] + effect + 1.2 * frame["n1"] + 1.6 * (frame["flag"] - 0.5)
    frame["click"] = (frame["odds"] + rng.logistic(size=n) > 0).astype(int)
    frame.loc[rng.random(n) < 0.1, "n0"] = np.nan
    frame.loc[rng.random(n) < 0.05, "good"] = None
    return frame


BEST = {"n3", "n1", "good"}


@pytest.fixture
def parquet(frame, tmp_path):
    for i in range(4):
        part = frame.drop(columns="odds").iloc[2_000 * i : 2_000 * (i + 1)]
        part.to_parquet(tmp_path / f"{i}.parquet", index=False, row_group_size=700)
    return tmp_path / "*.parquet"


@pytest.mark.parametrize(
    ("options", "surplus"), [({}, 1), ({"epochs": 8}, 2), ({"surplus": 1.5}, 1.5)], ids=str
)
def test_a_single_pass_selects_no_surplus_unless_asked(parquet, options, surplus):
    options = QUICK | {"ensemble": 2, "hidden": (8,)} | options
    selection = seqatt.select(parquet, target="click", k=2, **options)
    assert selection.settings["surplus"] == surplus
    assert sum(len(phase["taken"]) - len(phase["dropped"]) for phase in selection.history) == 2


def test_one_pass_over_several_files_finds_the_relevant_features(parquet):
    selection = seqatt.select(parquet, target="click", k=3, **QUICK)
    assert set(selection.features) == BEST
    assert selection.input_names == ["n0", "n1", "n2", "n3", "n4", "good", "noise", "flag"]
    assert [selection.names[i] for i in selection.indices] == selection.features
    assert selection.settings["rows"] == 8_000
    assert selection.settings["files"] == 4
    assert selection.settings["reading"] == "batches"
    assert selection.settings["columns"]["good"] == "categorical"
    assert sum(entry["steps"] for entry in selection.history) == 8_000 / 64


def test_one_seed_gives_one_result_and_another_seed_another_order_of_rows(parquet):
    one, again, other = (seqatt.select(parquet, target="click", k=3, seed=s, **QUICK) for s in (1, 1, 2))
    assert one.scores.tolist() == again.scores.tolist()
    assert one.scores.tolist() != other.scores.tolist()
    trials = seqatt.select_trials(parquet, target="click", k=3, seeds=[1, 2], **QUICK)
    assert [t.scores.tolist() for t in trials] == [one.scores.tolist(), other.scores.tolist()]


@pytest.mark.parametrize("memory", [0, "1GB"])
def test_every_format_gives_the_same_selection(frame, tmp_path, memory):
    table = frame.drop(columns="odds")
    table.to_parquet(tmp_path / "a.parquet", index=False)
    table.to_csv(tmp_path / "a.csv", index=False)
    table.to_csv(tmp_path / "a.tsv.gz", index=False, sep="\t")
    table.to_feather(tmp_path / "a.feather")
    found = [
        seqatt.select(tmp_path / name, target="click", k=3, **QUICK | {"memory": memory})
        for name in ("a.parquet", "a.csv", "a.tsv.gz", "a.feather")
    ]
    # Text files do not store their number of rows, so that a pass over them holds out other rows.
    same = found if memory else [found[0], found[3]]
    assert all(set(s.features) == BEST for s in found)
    assert all(s.scores.tolist() == same[0].scores.tolist() for s in same)


@pytest.mark.slow
def test_the_planted_features_of_a_click_log_are_found_in_one_pass(tmp_path):
    log = click_log(tmp_path, 50_000, rows_per_file=20_000)
    selection = seqatt.select(log.files, target=log.target, k=8, hidden=(64,), log1p=True, memory=0, epochs=1)
    assert len(log.files) == 3
    assert set(selection.features) == set(log.planted)
    assert set(selection.features[:3]) == set(log.planted[:3])
    linear = seqatt.select(log.files, target=log.target, k=8, method="linear_omp", log1p=True, memory=0)
    assert set(linear.features) == set(log.planted)


def test_a_click_log_is_reproducible_and_its_first_rows_do_not_depend_on_its_length(tmp_path):
    short, long = click_log(tmp_path / "a", 1_000), click_log(tmp_path / "b", 70_000)
    first = pq.read_table(long.files[0]).slice(0, 1_000)
    assert pq.read_table(short.files[0]).equals(first)
    assert first.column_names == ["click", *COUNTS, *CATEGORIES]
    assert not pq.read_table(click_log(tmp_path / "c", 1_000, seed=1).files[0]).equals(first)
    assert [p.name for p in (tmp_path / "b").iterdir()] == ["clicks-00000.parquet"]
    with pytest.raises(ValueError, match="rows: must be"):
        click_log(tmp_path, 0)


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_a_column_without_any_value_is_selected_last(frame, tmp_path, ending):
    table = pa.Table.from_pandas(frame[["n1", "n3", "click"]], preserve_index=False)
    table = table.append_column("none", pa.nulls(len(frame)))
    path = tmp_path / f"a.{ending}"
    pq.write_table(table, path) if ending == "parquet" else csv.write_csv(table, path)
    selection = seqatt.select(path, target="click", k=2, **QUICK)
    assert sorted(selection.features) == ["n1", "n3"]


@pytest.mark.parametrize("method", ["linear_omp", "linear_sequential_lasso", "linear_attention"])
def test_least_squares_on_files_selects_what_it_selects_in_memory(frame, parquet, method):
    X, y = frame.drop(columns=["click", "odds"]), frame["click"]
    in_memory = seqatt.select(X, y, k=4, method=method)
    on_files = seqatt.select(parquet, target="click", k=4, method=method, schema_rows=8_000, memory=0)
    assert on_files.features == in_memory.features
    assert on_files.scores == pytest.approx(in_memory.scores, rel=1e-4)
    assert on_files.ranking.tolist() == in_memory.ranking.tolist()


@pytest.mark.parametrize("task", ["regression", "multiclass"])
def test_targets_may_be_numbers_or_several_classes(frame, tmp_path, task):
    table = frame.drop(columns="click")
    if task == "multiclass":
        table["odds"] = pd.cut(table["odds"], 3, labels=["low", "middle", "high"]).astype(str)
    table.to_parquet(tmp_path / "a.parquet")
    for method, options in (("sequential_attention", QUICK), ("linear_omp", {"memory": 0})):
        selection = seqatt.select(tmp_path / "a.parquet", target="odds", k=3, method=method, **options)
        assert selection.settings["task"] == task
        assert set(selection.features) == BEST


def test_several_passes_read_every_row_equally_often(parquet):
    selection = seqatt.select(parquet, target="click", k=2, **QUICK | {"epochs": 3, "ensemble": 1})
    assert sum(entry["steps"] for entry in selection.history) == 3 * 125
    assert selection.settings["rows"] == 8_000


def test_rows_of_weight_zero_have_no_influence(frame, tmp_path):
    """In half of the rows n4 gives the target away; these have weight zero."""
    table = frame.drop(columns="odds")
    rng = np.random.default_rng(1)
    table["w"] = (rng.random(len(table)) < 0.5).astype(float)
    table["n4"] = np.where(table["w"] == 0, 5.0 * table["click"], table["n4"])
    table.to_parquet(tmp_path / "a.parquet")
    path = tmp_path / "a.parquet"
    assert "n4" in seqatt.select(path, target="click", k=2, ignore=["w"], **QUICK).features
    weighted = seqatt.select(path, target="click", k=3, sample_weight="w", **QUICK)
    assert set(weighted.features) == BEST
    assert "w" not in weighted.names


def test_negatives_kept_restores_the_class_balance_of_the_whole_log(frame, tmp_path):
    """A log that holds a tenth of the negatives; ``negatives_kept=0.1`` weights them accordingly."""
    table = frame.drop(columns="odds")
    rng = np.random.default_rng(1)
    kept = (table["click"] == 1) | (rng.random(len(table)) < 0.1)
    table[kept].to_parquet(tmp_path / "sampled.parquet")
    positive_share = {}
    for rate in (1.0, 0.1):
        data = read_file_data(tmp_path / "sampled.parquet", "click", FileOptions(negatives_kept=rate), 64)
        rows = next(data.read_slice(ShardSlice(data.files.row_groups[0]), 0))[0]
        positive_share[rate] = np.average(rows.target, weights=rows.weights)
        assert rows.weights.mean() == pytest.approx(1.0)
    assert positive_share[1.0] > 0.85
    assert positive_share[0.1] == pytest.approx(table["click"].mean(), abs=0.02)
    selection = seqatt.select(tmp_path / "sampled.parquet", target="click", k=2, negatives_kept=0.1, **QUICK)
    assert set(selection.features) <= BEST | {"flag"}


def test_balanced_classes_have_equal_total_weight(parquet):
    data = read_file_data(parquet, "click", FileOptions(class_weight="balanced"), 64)
    blocks = [
        rows for row_group in data.files.row_groups for rows, _ in data.read_slice(ShardSlice(row_group), 0)
    ]
    target = np.concatenate([rows.target for rows in blocks])
    weights = np.concatenate([rows.weights for rows in blocks])
    assert np.average(target, weights=weights) == pytest.approx(0.5, abs=1e-3)


def test_numbers_can_be_read_as_categories(frame, tmp_path):
    """Codes in arbitrary order: as numbers they are nearly useless, as categories they decide."""
    table = frame.drop(columns="odds")
    codes = table["click"].map({0: [1, 3, 5, 7], 1: [0, 2, 4, 6]})
    rng = np.random.default_rng(0)
    table["code"] = [row[i] for row, i in zip(codes, rng.integers(4, size=len(table)), strict=True)]
    table.to_csv(tmp_path / "a.csv", index=False)
    options = {"target": "click", "k": 1, "column_types": {"code": "categorical"}, **QUICK}
    selection = seqatt.select(tmp_path / "a.csv", **options)
    assert selection.features == ["code"]
    assert selection.settings["columns"]["code"] == "categorical"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"target": "gone"}, "target: no column 'gone'"),
        ({"target": None}, "target: must name the column"),
        ({"target": ("click",)}, "target: must name the column"),
        ({"k": 9}, "k: 9 features requested"),
        ({"ignore": ["gone"]}, "ignore: no column 'gone'"),
        ({"ignore": ["click"]}, "ignore: 'click' is the target"),
        ({"sample_weight": "click"}, "sample_weight: 'click' is the target"),
        ({"hidden": np.array([8, 0.5])}, "hidden: must be widths of at least 1"),
        ({"embedding_dim": 0}, "embedding_dim: must be a whole number of at least 1"),
        ({"sample_weight": "good"}, "sample_weight: column 'good' must hold numbers"),
        ({"epcohs": 2}, "did you mean 'epochs'"),
        ({"epochs": 0}, "epochs: must be"),
        ({"memory": "lots"}, "memory: must be a number of bytes or a size"),
        ({"negatives_kept": 2}, "negatives_kept: must be a number above 0 and at most 1"),
        ({"column_types": {"n0": "ordinal"}}, "column_types: 'ordinal'"),
        ({"log1p": ["good"]}, "log1p: 'good' is not a numeric feature"),
    ],
)
def test_invalid_arguments_are_refused_before_any_training(parquet, monkeypatch, options, message):
    monkeypatch.setattr(loop, "train", lambda *a, **o: pytest.fail("trained before it checked"))
    with pytest.raises((ValueError, TypeError)) as error:
        seqatt.select(parquet, **({"target": "click", "k": 3, "memory": 0} | options))
    assert message in str(error.value)


def test_files_may_hold_times_in_different_units_but_not_times_and_numbers(frame, tmp_path):
    table = frame[["n2", "click"]].iloc[:1_000]
    days = pd.to_datetime("2026-01-01") + pd.to_timedelta(10 * table["click"] + table["n2"].abs(), unit="D")
    for number, unit in enumerate(["ms", "us", "ns"]):
        part = pa.Table.from_pandas(table, preserve_index=False)
        part = part.append_column(
            "when", pa.array(days, pa.timestamp("ns")).cast(pa.timestamp(unit), safe=False)
        )
        pq.write_table(part, tmp_path / f"{number}.parquet")
    selection = seqatt.select(tmp_path, target="click", k=1, schema_rows=500, **QUICK)
    assert selection.features == ["when"]
    pq.write_table(
        part.set_column(2, "when", part["when"].cast(pa.date32(), safe=False)), tmp_path / "3.parquet"
    )
    seqatt.select(tmp_path, target="click", k=1, method="linear_omp", memory=0)
    pq.write_table(part.set_column(2, "when", part["when"].cast(pa.int64())), tmp_path / "4.parquet")
    with pytest.raises(
        UnreadableFile, match=r"4\.parquet: column 'when' holds numbers, but times in .*0\.parq"
    ):
        seqatt.select(tmp_path, target="click", k=1)


def test_whole_numbers_of_any_size_are_read(frame, tmp_path):
    table = frame[["n2", "n3", "odds"]].iloc[:1_000].copy()
    for name, scale in {"n3": 2**60, "odds": 2**57}.items():
        table[name] = (table[name] / 10 * scale).astype(np.int64)
    table["w"] = np.where(np.arange(len(table)) % 2, 2**60 + 1, 2**59 + 1)
    table.to_parquet(tmp_path / "a.parquet")
    options = {"target": "odds", "sample_weight": "w", "task": "regression", "memory": 0}
    selection = seqatt.select(tmp_path, k=1, method="linear_omp", **options)
    assert selection.features == ["n3"]


def test_bad_values_during_a_pass_are_reported_with_their_file(frame, tmp_path):
    table = frame.drop(columns="odds")
    for number, (column, value, message) in enumerate(
        [
            ("n2", np.inf, "infinity"),
            ("click", None, "missing"),
            ("click", 7, r"label 7(\.0)? does not occur"),
        ]
    ):
        folder = tmp_path / str(number)
        folder.mkdir()
        table.to_parquet(folder / "a.parquet")
        bad = table.copy()
        bad[column] = bad[column].astype("float64")
        bad.loc[5_000, column] = np.nan if value is None else value
        bad.to_parquet(folder / "b.parquet")
        with pytest.raises(ValueError, match=rf"b\.parquet: .*{message}"):
            seqatt.select(folder, target="click", k=2, schema_rows=1_000, **QUICK)


@pytest.mark.parametrize("target", ["class", "amount"])
def test_a_file_sorted_by_the_target_is_to_be_shuffled_or_sampled_further(tmp_path, target):
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(1_000, 3)), columns=list("abc"))
    table["y"] = np.where(np.arange(1_000) < 600, 0.0, 1.0 if target == "class" else np.arange(1_000) / 7)
    file = tmp_path / "sorted.csv"
    table.to_csv(file, index=False)
    done = "target: column 'y' is 0.0 in all 500 rows of the schema sample; raise schema_rows"
    with pytest.raises(ValueError, match=rf"^{done} to sample more rows, or shuffle the rows of the files$"):
        seqatt.select(file, target="y", k=2, schema_rows=500, **QUICK)
    assert len(seqatt.select(file, target="y", k=2, schema_rows=900, **QUICK).features) == 2
    table.iloc[:600].to_csv(file, index=False)
    with pytest.raises(ValueError, match=r"only one class, 0.0, occurs; add rows of another class"):
        seqatt.select(file, target="y", k=2, schema_rows=900, **QUICK)
    table.to_csv(file, index=False)
    failed = run("select", file, "-t", "y", "-k", 2, "--memory", 0, "--set", "schema_rows=500")
    assert "raise schema_rows (seqatt select --set schema_rows=NUMBER) to sample more rows" in failed.stderr


def test_a_target_of_lists_is_refused_with_the_name_of_its_column(tmp_path):
    file = tmp_path / "lists.parquet"
    pd.DataFrame({"a": np.arange(200.0), "b": np.arange(200.0) % 7, "y": [[0.5, 2.5]] * 200}).to_parquet(file)
    with pytest.raises(ValueError, match="column 'y'"):
        seqatt.select(file, target="y", k=1, schema_rows=100, **QUICK)


def test_a_file_removed_during_the_run_ends_it_with_its_name(parquet, monkeypatch):
    real = read_files.make_loader

    def make_loader(*arguments, **options):
        (parquet.parent / "2.parquet").unlink()
        return real(*arguments, **options)

    monkeypatch.setattr(read_files, "make_loader", make_loader)
    with pytest.raises(UnreadableFile, match=r"2\.parquet: the file is no longer there"):
        seqatt.select(parquet, target="click", k=2, **QUICK)


def test_training_that_diverges_returns_what_it_had_selected(parquet):
    with pytest.raises(seqatt.TrainingDiverged) as error:
        seqatt.select(parquet, target="click", k=3, learning_rate=1e30, **QUICK)
    assert len(error.value.selections) == 1


def test_rows_that_end_before_all_features_are_selected_are_an_error(parquet):
    with pytest.raises(ValueError, match=r"k: the rows ended after \d features were selected; use a smaller"):
        seqatt.select(parquet, target="click", k=5, **QUICK | {"batch_size": 4_000})


def test_the_target_may_be_named_in_a_table_too(frame):
    table = frame.drop(columns="odds")
    named = seqatt.select(table, target="click", k=2, epochs=1)
    given = seqatt.select(table.drop(columns="click"), table["click"], k=2, epochs=1)
    assert named.scores.tolist() == given.scores.tolist()
    with pytest.raises(TypeError, match="pass either target or y"):
        seqatt.select(table, table["click"], target="click", k=2)
    with pytest.raises(TypeError, match="k: the number of features to select is needed"):
        seqatt.select(frame, frame["click"])
