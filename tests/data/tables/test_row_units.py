"""Groups of rows are never divided, and rows are held out from earlier rows only, wherever rows are divided."""

import datetime

import numpy as np
import pandas as pd
import pytest

import seqatt
from seqatt.api.confidence.folds import divide_rows, make_fold
from seqatt.api.stability.repeats import divide
from seqatt.comparison.table_rows import SplitRequest, read_table_rows
from seqatt.data.tables.row_units import RowUnits, read_row_units
from seqatt.data.tables.table_data import read_table_data
from seqatt.training.ensemble import split_rows as split_strata

GROUPS = np.random.default_rng(0).integers(0, 25, 400)
TIMES = np.random.default_rng(1).permutation(400) // 2


def table(**options):
    rng = np.random.default_rng(2)
    X = rng.normal(size=(400, 6))
    return read_table_data(X, (X[:, 0] > 0).astype(int), **options)


def split_rows(data, seed, members):
    return split_strata(data.target.strata, seed, members, data.units)


def assert_whole_groups(*sides):
    for i, one in enumerate(sides):
        for other in sides[i + 1 :]:
            assert not set(GROUPS[one]) & set(GROUPS[other])


def assert_earlier(train, test):
    assert TIMES[train].max() < TIMES[test].min()


def test_members_hold_out_whole_groups_of_their_own():
    pairs = [[rows.numpy() for rows in pair] for pair in split_rows(table(groups_of_rows=GROUPS), 0, 4)]
    for train, held_out in pairs:
        assert_whole_groups(train, held_out)
        assert len(train) == len(pairs[0][0]) > 250
        assert len(held_out) == len(pairs[0][1]) > 60
    assert_whole_groups(*(held_out for _, held_out in pairs))


@pytest.mark.parametrize("task", ["classes", "numbers"])
def test_without_groups_neighbours_are_held_out_together(task):
    X = np.random.default_rng(2).normal(size=(2000, 3))
    y = np.sort(X[:, 0]) if task == "numbers" else np.repeat(np.arange(4), 500) % 2
    data = read_table_data(X, y)
    pairs = [[rows.numpy() for rows in pair] for pair in split_rows(data, 0, 4)]
    for train, held_out in pairs:
        assert sorted(np.concatenate([train, held_out])) == list(range(2000))
        # Of 400 held-out rows nearly all have both neighbours in the same part, which is rare by chance.
        both_sides = np.isin(held_out - 1, held_out) & np.isin(held_out + 1, held_out)
        assert both_sides.mean() > 0.7
        assert abs(y[held_out].mean() - y.mean()) < 0.1  # of a sorted target, every part has all of its range
    assert len(np.unique(np.concatenate([held_out for _, held_out in pairs]))) == 1600
    first = split_rows(data, 1, 4)[0][1].numpy()
    assert set(first) != set(pairs[0][1])  # another seed holds out other rows
    folds = divide_rows(data, 0)
    assert sorted(np.concatenate(folds)) == list(range(2000))
    assert all((np.diff(fold) == 1).mean() > 0.9 for fold in folds)


def test_every_fold_trains_on_rare_classes():
    y = np.repeat([0, 1, 2], [180, 17, 3])
    data = read_table_data(np.random.default_rng(0).normal(size=(200, 3)), y)
    for seed in range(20):
        for fold in divide_rows(data, seed):
            assert set(y[np.setdiff1d(np.arange(200), fold)]) == {0, 1, 2}


def test_members_hold_out_later_rows_of_their_own():
    pairs = [[rows.numpy() for rows in pair] for pair in split_rows(table(time=TIMES), 0, 4)]
    for train, held_out in pairs:
        assert_earlier(train, held_out)
        assert len(train) == 320
        assert len(held_out) == 20
    assert len(np.unique(np.concatenate([held_out for _, held_out in pairs]))) == 80


def test_folds_are_of_whole_groups_or_follow_their_training_rows():
    grouped = table(groups_of_rows=GROUPS)
    folds = divide_rows(grouped, 0)
    assert_whole_groups(*folds)
    assert sorted(np.concatenate(folds)) == list(range(400))
    assert make_fold(grouped, folds[0]).train.rows == 400 - len(folds[0])
    timed = table(time=TIMES)
    trained = []
    for fold in divide_rows(timed, 0):
        assert_earlier(timed.units.outside(fold), fold)
        trained.append(make_fold(timed, fold).train.rows)
    assert trained == [100, 200, 300]


def test_halves_are_of_whole_groups_or_of_blocks_of_time():
    halves = divide(table(groups_of_rows=GROUPS), 0, 0)
    assert_whole_groups(*halves)
    assert abs(len(halves[0]) - len(halves[1])) < 20
    one, other = divide(table(time=TIMES), 0, 0)
    assert sorted([*one, *other]) == list(range(400))
    in_one = np.zeros(400, dtype=bool)
    in_one[one] = True
    changes = np.diff(in_one[np.argsort(TIMES, kind="stable")].astype(int)).astype(bool).sum()
    assert 4 < changes < 40  # as many as there are blocks, at most; single rows would change 200 times


@pytest.mark.parametrize("options", [{"groups_of_rows": GROUPS}, {"time": TIMES}])
def test_comparisons_split_whole_groups_or_test_on_later_rows(options):
    rng = np.random.default_rng(2)
    frame = pd.DataFrame(rng.normal(size=(400, 3)), columns=list("abc")).assign(row=np.arange(400), **options)
    named = {name: name for name in options}
    request = SplitRequest((None, None), 0.25, None, None, [0, 1])
    rows = read_table_rows(frame, rng.normal(size=400), named, request)
    assert rows.data.input_names == ("a", "b", "c", "row")
    for seed in (0, 1):
        train, test = (np.asarray(part.X.column("row")) for part in rows.split(seed))
        assert 80 <= len(test) <= 110
        assert len(train) + len(test) == 400
        if "time" in options:
            assert_earlier(train, test)
        else:
            assert_whole_groups(train, test)
        assert rows.split(seed)[0].options[next(iter(options))] is not None


def test_a_group_is_as_late_as_its_latest_row():
    units = read_row_units(["a", "b", "a", "c"], [1, 2, 9, 3], 4)
    np.testing.assert_array_equal(units.unit, [2, 0, 2, 1])
    assert units.in_time


def test_rows_of_one_time_stay_together():
    train, test = RowUnits(np.array([0, 1, 1, 1, 2, 2]), True).latest(3)
    np.testing.assert_array_equal(train, [0])
    np.testing.assert_array_equal(test, [1, 2, 3, 4, 5])


@pytest.mark.parametrize("kind", ["dates", "texts", "pandas"])
def test_times_are_numbers_dates_or_texts(kind):
    days = [datetime.date(2024, 1, day) for day in (3, 1, 2)]
    given = {
        "dates": np.array(days, dtype="datetime64[D]"),
        "texts": [str(d) for d in days],
        "pandas": pd.Series(days),
    }
    np.testing.assert_array_equal(read_row_units(None, given[kind], 3).unit, [2, 0, 1])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"groups_of_rows": [0] * 400}, "groups_of_rows: 1 groups are too few to be divided into 5 parts"),
        ({"groups_of_rows": [0, 1]}, "groups_of_rows: must have one value for each of the 400 rows"),
        ({"time": [3] * 400}, "time: is the same for all rows"),
        ({"time": [np.nan] * 400}, "time: contains missing values"),
        ({"time": "day"}, "time: no column 'day'"),
    ],
)
def test_groups_or_times_that_cannot_be_used_are_refused(options, message):
    X = np.random.default_rng(0).normal(size=(400, 4))
    with pytest.raises(ValueError, match=message):
        seqatt.select(pd.DataFrame(X, columns=list("abcd")), X[:, 0], 2, epochs=1, **options)


def test_memorised_groups_are_not_taken_for_signal():
    """The fingerprint of a patient predicts the outcome of that patient alone: new patients show that it is noise."""
    rng = np.random.default_rng(0)
    patient = rng.permutation(np.repeat(np.arange(30), 20))  # not next to each other, where it would show
    outcome = rng.integers(0, 2, 30)[patient]
    X = rng.normal(size=(600, 10))
    X[:, 1:] = rng.normal(size=(30, 9))[patient] + 0.05 * rng.normal(size=(600, 9))  # who it is
    y = np.where(rng.random(600) < 0.9, outcome, X[:, 0] > 0).astype(int)
    apart = seqatt.select(X, y, k="auto", max_k=4, groups_of_rows=patient, epochs=50)
    together = seqatt.select(X, y, k="auto", max_k=4, epochs=50)
    assert together.curve["all_features"] > 0.85  # a promise that new patients would break
    assert apart.curve["all_features"] < 0.75
    assert apart.settings["groups_of_rows"] is True


@pytest.mark.parametrize("times", [4, 5, 6])
def test_a_few_times_are_enough_for_k_auto(times):
    """The first fold trains on the rows of a single time."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 5))
    y = X[:, 0] + X[:, 1] + 0.3 * rng.normal(size=400)
    assert set(seqatt.select(X, y, k="auto", time=np.arange(400) * times // 400).features) == {"x0", "x1"}
    (rows, held_out), other = RowUnits(np.zeros(50, dtype=np.int64), True).hold_out(5, 2, rng)
    assert (len(rows), len(held_out)) == (40, 10)
    assert not set(rows) & set(held_out)
    assert not set(other[1]) & set(held_out)
