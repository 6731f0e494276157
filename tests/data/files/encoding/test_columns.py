"""Columns of files are encoded as fitted on the schema sample, whatever comes later."""

from __future__ import annotations

import subprocess
import sys
from datetime import datetime

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from seqatt.data.files.encoding import categories
from seqatt.data.files.encoding.categories import CodeTable, fit_codes, hash_texts
from seqatt.data.files.encoding.column_types import compatible, decide_kinds
from seqatt.data.files.encoding.numbers import fit_number, write_numbers
from seqatt.data.tables.table_data import read_table_data

TEXTS = ["", "a", "b", "ab", "ünïcode", "a much longer text than the others"]


def encode(number, values) -> np.ndarray:
    out = np.empty((number.width, len(values)), dtype=np.float32)
    write_numbers([number], pa.RecordBatch.from_pydict({number.name: pa.array(values)}), out)
    return out.T


def codes_of(category, column) -> np.ndarray:
    out = np.empty((1, len(column)), dtype=np.int32)
    CodeTable([category]).write(pa.RecordBatch.from_arrays([column], names=[category.name]), out)
    return out[0]


def test_numbers_are_standardised_by_the_schema_sample():
    values = np.random.default_rng(0).normal(5, 3, size=1_000)
    number = fit_number("x", pa.array(values), log1p=False, indicator=False)
    out = encode(number, values)
    assert out.mean() == pytest.approx(0, abs=1e-5)
    assert out.std() == pytest.approx(1, abs=1e-5)
    later = encode(number, [values.mean() + values.std(), 1e30])
    assert later[:, 0] == pytest.approx([1.0, 10.0], abs=1e-5)  # far values are clipped


@pytest.mark.parametrize("indicator", [False, True])
def test_missing_numbers_are_the_mean_with_an_indicator_on_request(indicator):
    number = fit_number("x", pa.array([1.0, None, float("nan"), 3.0]), log1p=False, indicator=indicator)
    out = encode(number, [None, 3.0, float("nan")])
    assert out[:, 0].tolist() == [0.0, 1.0, 0.0]
    assert number.width == 1 + indicator
    if indicator:
        assert out[:, 1].tolist() == [1.0, 0.0, 1.0]


def test_log1p_is_defined_for_negative_numbers():
    number = fit_number("x", pa.array([0, 10, 1_000]), log1p=True, indicator=False)
    out = encode(number, [-10, 0, 10])[:, 0]
    assert out[2] - out[1] == pytest.approx(out[1] - out[0], rel=1e-4)
    assert out[2] - out[1] == pytest.approx(np.log1p(10) / number.scale, rel=1e-4)


def test_infinity_is_refused_and_constants_are_found():
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
        number = fit_number("x", column, log1p=False, indicator=False)
        assert encode(number, column)[:, 0].tolist() == [-1, 1]


def test_a_time_is_the_same_in_every_unit():
    days = [datetime(1970, 1, 1), datetime(2026, 11, 15), datetime(2027, 1, 1)]
    units = [pa.timestamp(unit) for unit in ("s", "ms", "us", "ns")] + [pa.date32(), pa.date64()]
    number = fit_number("x", pa.array(days, units[1]), log1p=False, indicator=False)
    category = fit_codes("x", pa.array(days, units[1]), 64)
    for unit in units:
        column = pa.array(days, pa.timestamp("s")).cast(unit)
        assert encode(number, column).tolist() == encode(number, pa.array(days, units[1])).tolist()
        assert codes_of(category, column).tolist() == codes_of(category, pa.array(days, units[1])).tolist()
    assert compatible(pa.timestamp("ms"), pa.date32())
    assert compatible(pa.list_(pa.int8()), pa.binary())  # neither can be a feature
    for other in (pa.int64(), pa.duration("s"), pa.string(), pa.bool_()):
        assert not compatible(pa.timestamp("ms"), other)


def test_hashes_are_the_same_in_another_process():
    code = (
        "import pyarrow as pa; from seqatt.data.files.encoding.categories import hash_texts; "
        f"print(*hash_texts(pa.array({TEXTS!r})))"
    )
    other = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    hashes = hash_texts(pa.array(TEXTS)).tolist()
    assert other.stdout.split() == [str(value) for value in hashes]
    assert len(set(hashes)) == len(TEXTS)
    assert hashes[1] == 0x82A2A958A9BECE5B  # and in every version of seqatt
    assert hash_texts(pa.array(TEXTS).slice(2)).tolist() == hashes[2:]


def test_every_category_of_the_sample_has_a_code_of_its_own():
    category = fit_codes("c", pa.array(["a", "b", None, "a", "c", "b", "c"]), 1 << 16)
    found = codes_of(category, pa.array(["a", "b", "c", None]))
    assert found[3] == 0
    assert sorted(found[:3].tolist()) == [1, 2, 3]


@pytest.mark.parametrize("at_once", [1, 100, 1 << 16])
def test_the_codes_of_several_columns_are_those_of_each_alone(monkeypatch, at_once):
    """Of which one is numbers, one has no value, and some are looked up in tables of several sizes."""
    monkeypatch.setattr(categories, "VALUES_AT_ONCE", at_once)
    rng = np.random.default_rng(0)
    seen = {f"c{size}": pa.array(rng.integers(size, size=3_000).astype(str)) for size in (1, 2, 40, 2_500)}
    columns = [fit_codes(name, column, 1 << 10) for name, column in seen.items()]
    columns += [fit_codes("nothing", pa.nulls(10, pa.string()), 64)]
    later = {name: pa.array(rng.integers(4_000, size=500)) for name in seen}
    later["c40"] = later["c40"].cast(pa.string()).dictionary_encode()
    later["nothing"] = pa.array([None, "new"] * 250)
    out = np.empty((len(columns), 500), dtype=np.int32)
    CodeTable(columns).write(pa.RecordBatch.from_pydict(later), out)
    for column, own in zip(columns, out, strict=True):
        assert own.tolist() == codes_of(column, later[column.name]).tolist()
        assert own.max() < column.size
        known = [
            str(value) in set(seen.get(column.name, pa.array([])).to_pylist()) for value in later[column.name]
        ]
        if column.name in ("c1", "c2", "c40"):
            assert ((own > 0) & (own <= len(column.known))).tolist() == known


def test_unseen_categories_share_codes_by_their_hash():
    category = fit_codes("c", pa.array([str(i) for i in range(100)] * 2 + ["x", "y"]), 1 << 16)
    new = pa.array([f"new {i}" for i in range(50)])
    found = codes_of(category, new)
    assert (found > len(category.known)).all()
    assert (found < category.size).all()
    assert codes_of(category, new.slice(7)).tolist() == found[7:].tolist()
    few = fit_codes("c", pa.array(["a", "b"] * 5), 1 << 16)
    assert few.size == 4  # missing, two known, one for all others
    assert codes_of(few, pa.array(["z", "q"])).tolist() == [3, 3]


def test_codes_stay_below_their_bound_and_frequent_values_have_their_own():
    values = [str(i) for i in range(5_000)] + ["often"] * 100
    category = fit_codes("c", pa.array(values), 64)
    assert category.size <= 64
    found = codes_of(category, pa.array(values))
    assert found.max() < 64
    assert np.bincount(found)[codes_of(category, pa.array(["often"]))[0]] == 100


def test_sums_rank_the_values_that_have_a_one_hot_column_in_a_table():
    values = ["a"] * 500 + ["b"] * 495 + ["rare"] * 4 + ["once"]
    ranks = fit_codes("c", pa.array(values), 64).frequency_ranks(64)
    assert sorted(ranks[ranks >= 0]) == [0, 1]
    table = read_table_data(pd.DataFrame({"c": values}), np.arange(1000) % 2)
    assert table.columns.shape[1] == 2
    assert (fit_codes("c", pa.array(["a"] * 999 + ["b"]), 64).frequency_ranks(64) >= 0).sum() == 1


def test_text_numbers_and_dictionaries_have_the_same_codes():
    texts = pa.array(["7", "8", None, "7", "9"])
    category = fit_codes("c", texts, 64)
    expected = codes_of(category, texts).tolist()
    assert codes_of(category, texts.dictionary_encode()).tolist() == expected
    assert codes_of(category, pa.array([7, 8, None, 7, 9])).tolist() == expected
    with_null = pa.DictionaryArray.from_arrays(pa.array([0, 1, 2, 0, 3]), pa.array(["7", "8", None, "9"]))
    assert codes_of(category, with_null).tolist() == expected


def test_the_user_overrides_the_kind_of_the_schema():
    types = {"i": pa.int64(), "t": pa.string(), "b": pa.bool_(), "l": pa.list_(pa.int8()), "n": pa.null()}
    assert decide_kinds(types, ["i", "t", "b", "n"], {"i": "categorical"}) == {
        "i": "categorical",
        "t": "categorical",
        "b": "boolean",
        "n": "numeric",
    }
    for names, requested, message in [
        (["l"], {}, "'l' has type list"),
        (["t"], {"t": "boolean"}, "'t' holds text"),
        (["i"], {"i": "ordinal"}, "'ordinal' for 'i' is unknown"),
        (["i"], {"x": "numeric"}, "no column 'x'"),
    ]:
        with pytest.raises(ValueError, match=message):
            decide_kinds(types, names, requested)
