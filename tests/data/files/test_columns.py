"""Columns of files as a model takes them; fitted in the first look, then fixed."""

from __future__ import annotations

import subprocess
import sys
from datetime import datetime

import numpy as np
import pyarrow as pa
import pytest

from seqatt.data.files.column_types import compatible, decide_kinds
from seqatt.data.files.columns import fit_category, fit_number, hash_texts

TEXTS = ["", "a", "b", "ab", "ünïcode", "a much longer text than the others"]


def written(number, values) -> np.ndarray:
    out = np.empty((number.width, len(values)), dtype=np.float32)
    number.write(pa.array(values), out)
    return out.T


def test_numbers_are_standardised_by_the_first_look_alone():
    values = np.random.default_rng(0).normal(5, 3, size=1_000)
    number = fit_number("x", pa.array(values), log1p=False, indicator=False)
    out = written(number, values)
    assert out.mean() == pytest.approx(0, abs=1e-5)
    assert out.std() == pytest.approx(1, abs=1e-5)
    later = written(number, [values.mean() + values.std(), 1e30])
    assert later[:, 0] == pytest.approx([1.0, 10.0], abs=1e-5)  # far ones are held


@pytest.mark.parametrize("indicator", [False, True])
def test_missing_numbers_are_the_mean_and_marked_if_asked(indicator):
    number = fit_number("x", pa.array([1.0, None, float("nan"), 3.0]), log1p=False, indicator=indicator)
    out = written(number, [None, 3.0, float("nan")])
    assert out[:, 0].tolist() == [0.0, 1.0, 0.0]
    assert number.width == 1 + indicator
    if indicator:
        assert out[:, 1].tolist() == [1.0, 0.0, 1.0]


def test_log1p_is_defined_below_zero_too():
    number = fit_number("x", pa.array([0, 10, 1_000]), log1p=True, indicator=False)
    out = written(number, [-10, 0, 10])[:, 0]
    assert out[2] - out[1] == pytest.approx(out[1] - out[0], rel=1e-4)
    assert out[2] - out[1] == pytest.approx(np.log1p(10) / number.scale, rel=1e-4)


def test_infinity_is_refused_and_constants_are_known():
    with pytest.raises(ValueError, match="'x' contains infinity"):
        fit_number("x", pa.array([1.0, np.inf]), log1p=False, indicator=False)
    with pytest.raises(ValueError, match="'x' holds values too large"):
        fit_number("x", pa.array([1e300, -1e300]), log1p=False, indicator=False)
    assert fit_number("x", pa.array([2.0, 2.0, None]), log1p=False, indicator=False).constant
    assert not fit_number("x", pa.array([2.0, 2.0, None]), log1p=False, indicator=True).constant
    assert fit_number("x", pa.array([None, None], pa.float64()), log1p=False, indicator=True).constant


def test_dates_and_booleans_are_numbers():
    dates = pa.array([0, 86_400_000_000], pa.timestamp("us"))
    for column in (dates, dates.cast(pa.date32()), pa.array([False, True])):
        assert written(fit_number("x", column, log1p=False, indicator=False), column)[:, 0].tolist() == [
            -1,
            1,
        ]


def test_a_time_is_the_same_in_every_unit():
    days = [datetime(1970, 1, 1), datetime(2026, 11, 15), datetime(2027, 1, 1)]
    units = [pa.timestamp(unit) for unit in ("s", "ms", "us", "ns")] + [pa.date32(), pa.date64()]
    number = fit_number("x", pa.array(days, units[1]), log1p=False, indicator=False)
    category = fit_category("x", pa.array(days, units[1]), 64)
    for unit in units:
        column = pa.array(days, pa.timestamp("s")).cast(unit)
        assert written(number, column).tolist() == written(number, pa.array(days, units[1])).tolist()
        assert category.places(column).tolist() == category.places(pa.array(days, units[1])).tolist()
    assert compatible(pa.timestamp("ms"), pa.date32())
    assert compatible(pa.list_(pa.int8()), pa.binary())  # which can only be ignored
    for other in (pa.int64(), pa.duration("s"), pa.string(), pa.bool_()):
        assert not compatible(pa.timestamp("ms"), other)


def test_hashes_are_the_same_in_another_process():
    code = (
        "import pyarrow as pa; from seqatt.data.files.columns import hash_texts; "
        f"print(*hash_texts(pa.array({TEXTS!r})))"
    )
    there = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    here = hash_texts(pa.array(TEXTS)).tolist()
    assert there.stdout.split() == [str(value) for value in here]
    assert len(set(here)) == len(TEXTS)
    assert here[1] == 0x82A2A958A9BECE5B  # and in another version of seqatt
    assert hash_texts(pa.array(TEXTS).slice(2)).tolist() == here[2:]


def test_every_category_seen_has_a_place_of_its_own():
    category = fit_category("c", pa.array(["a", "b", None, "a", "c", "b", "c"]), 1 << 16)
    places = category.places(pa.array(["a", "b", "c", None]))
    assert places[3] == 0
    assert sorted(places[:3].tolist()) == [1, 2, 3]


def test_unseen_categories_share_places_by_their_hash():
    category = fit_category("c", pa.array([str(i) for i in range(100)] * 2 + ["x", "y"]), 1 << 16)
    new = pa.array([f"new {i}" for i in range(50)])
    places = category.places(new)
    assert (places > len(category.known)).all()
    assert (places < category.size).all()
    assert category.places(new.slice(7)).tolist() == places[7:].tolist()
    few = fit_category("c", pa.array(["a", "b"] * 5), 1 << 16)
    assert few.size == 4  # missing, two known, one for all others
    assert few.places(pa.array(["z", "q"])).tolist() == [3, 3]


def test_tables_stay_within_their_bound_and_keep_the_frequent():
    values = [str(i) for i in range(5_000)] + ["often"] * 100
    category = fit_category("c", pa.array(values), 64)
    assert category.size <= 64
    places = category.places(pa.array(values))
    assert places.max() < 64
    assert np.bincount(places)[category.places(pa.array(["often"]))[0]] == 100


def test_words_numbers_and_dictionaries_find_the_same_places():
    texts = pa.array(["7", "8", None, "7", "9"])
    category = fit_category("c", texts, 64)
    expected = category.places(texts).tolist()
    assert category.places(texts.dictionary_encode()).tolist() == expected
    assert category.places(pa.array([7, 8, None, 7, 9])).tolist() == expected
    with_null = pa.DictionaryArray.from_arrays(pa.array([0, 1, 2, 0, 3]), pa.array(["7", "8", None, "9"]))
    assert category.places(with_null).tolist() == expected


def test_the_user_overrides_what_the_schema_says():
    types = {"i": pa.int64(), "t": pa.string(), "b": pa.bool_(), "l": pa.list_(pa.int8()), "n": pa.null()}
    told = {"i": "categorical"}
    assert decide_kinds(types, ["i", "t", "b", "n"], told) == {
        "i": "categorical",
        "t": "categorical",
        "b": "boolean",
        "n": "numeric",
    }
    for names, said, message in [
        (["l"], {}, "'l' has type list"),
        (["t"], {"t": "numeric"}, "'t' holds text"),
        (["i"], {"i": "ordinal"}, "'ordinal' for 'i' is unknown"),
        (["i"], {"x": "numeric"}, "no column 'x'"),
    ]:
        with pytest.raises(ValueError, match=message):
            decide_kinds(types, names, said)
