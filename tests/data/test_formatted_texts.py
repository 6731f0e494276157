"""Amounts and dates as text: read as numbers in frames, in text files and in Parquet files alike."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import seqatt
from seqatt.data.formatted_texts import parse_amounts, parse_dates, parse_dates_with_slashes
from seqatt.data.number_texts import examine_texts, to_numbers, to_numbers_or_dates
from seqatt.data.tables.row_units import read_row_units

ROWS = 200
DAYS = pd.Timestamp("2020-06-01") + pd.to_timedelta(
    np.random.default_rng(1).permutation(np.arange(ROWS)), unit="D"
)
SWAPPED = str.maketrans(",.", ".,")
FORMS = {
    "2020-06-01": DAYS.strftime("%Y-%m-%d"),
    "2020/06/01 05:30": DAYS.strftime("%Y/%m/%d %H:%M"),
    "01.06.2020": DAYS.strftime("%d.%m.%Y"),
    "12.5 %": [f"{day.day_of_year / 2} %" for day in DAYS],
    "$1,234.50": [f"${day.value / 1e14:,.2f}" for day in DAYS],
    "1,234.50": [f"{day.day_of_year * 9 - 800:,.2f}" for day in DAYS],
    "1.234,50": [f"{day.day_of_year * 9 - 800:,.2f}".translate(SWAPPED) for day in DAYS],
    "(1,234.50)": [
        f"({900 - value:,.2f})" if value < 900 else f"{value:,.2f}" for value in 9 * DAYS.day_of_year
    ],
}


def make_frame(texts):
    """The text decides the target, and nothing else does."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(ROWS, 4)), columns=list("abcd"))
    return frame.assign(when=list(texts), y=np.where(DAYS.sort_values()[ROWS // 2] < DAYS, "late", "early"))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("kind", ["frame", "csv", "parquet"])
def test_amounts_and_dates_as_text_are_numbers_wherever_they_come_from(form, kind, tmp_path):
    frame = make_frame(FORMS[form])
    data = frame if kind == "frame" else tmp_path / f"data.{kind}"
    if kind == "csv":
        frame.to_csv(data, index=False)
    elif kind == "parquet":
        frame.to_parquet(data)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        selection = seqatt.select(data, target="y", k=1, method="f_test")
    assert selection.features == ["when"]
    arrow_knows = kind == "csv" and form.startswith("2020")
    read = "dates" if "20" in form else "numbers"
    assert arrow_knows or any(f"when: text that is read as {read}" in str(w.message) for w in caught)


def test_new_rows_are_read_by_the_same_rule():
    frame = make_frame(FORMS["01.06.2020"])
    with pytest.warns(UserWarning, match="read as dates"):
        model = seqatt.SequentialAttentionClassifier(1, epochs=5).fit(frame.drop(columns="y"), frame["y"])
    assert list(model.get_feature_names_out()) == ["when"]
    as_iso = frame.assign(when=list(FORMS["2020-06-01"])).drop(columns="y")
    assert (model.predict(as_iso) == model.predict(frame.drop(columns="y"))).all()
    with pytest.raises(ValueError, match="'tomorrow', but dates in the training rows"):
        model.predict(as_iso.assign(when="tomorrow"))


def test_dates_with_slashes_stay_text_and_a_warning_says_why():
    frame = make_frame(DAYS.strftime("%m/%d/%Y"))
    with pytest.warns(UserWarning, match="the day or the month may come first"):
        seqatt.select(frame, target="y", k=1, method="f_test")


def test_other_text_is_no_amount_and_no_date():
    others = (
        ["$5", "6 €"],
        ["5 %", "6"],
        ["1,23", "4,56"],  # perhaps two numbers each
        ["1,234.50", "5,00"],
        ["1.234,5", "7.5"],
        ["(5", "5)"],
        ["(1,2)", "(3,4)"],
        ["0,500", "1,250"],  # a decimal comma: no group of thousands starts with 0
        ["2020-02-30", "2020-01-01"],
        ["2020-01-01 25:10", "2020-01-01"],
        ["1.2.3", "4.5.6"],
        ["--5", "+-5", "-$-5", "$5%"],
    )
    for texts in others:
        assert examine_texts(pa.array(texts)).contents == "text"
    assert (
        examine_texts(pa.array(["2020-01-01"])).contents == "text"
    )  # a single value says nothing as a number
    assert examine_texts(pa.array(["2020-01-01", "2020-01-02", "?"])) == ("dates", "?")


def test_texts_are_parsed_exactly():
    def dates(*texts):
        return parse_dates(pa.array(texts)).cast(pa.int64()).to_pylist()

    assert dates("1970-01-02", "2.1.1970", "1970/1/1 0:00:01.5", "1970-13-01", None) == [
        *[86_400_000_000] * 2,
        1_500_000,
        *[None] * 2,
    ]
    assert dates("1970-01-01T02:10+01:00", "1970-01-01 02:30Z", "1970-01-01T00:00-0130") == [
        minutes * 60_000_000 for minutes in (70, 150, 90)
    ]
    parsed = parse_amounts(pa.array(["-$1,234.5", "$-3", "12 %", "7 €", "$", "--5"]))
    assert parsed.to_pylist() == [-1234.5, -3.0, 0.12, 7.0, None, None]
    assert len(parse_dates_with_slashes(pa.array(["1/2/2020"]))) == 2
    assert len(parse_dates_with_slashes(pa.array(["1/2/2020", "31/12/2020"]))) == 1


def test_a_text_means_the_same_beside_any_other():
    for texts, numbers in (
        (["1e5", "1,000"], [1e5, 1e3]),
        ([".5", "12 %", None], [0.5, 0.12, None]),
        (["5.", "$3"], [5.0, 3.0]),
        (["1.234,56", "5,00", "-7", "(0,5)"], [1234.56, 5.0, -7.0, -0.5]),
        (["1,234.50", "(1,000)", "(2.5)"], [1234.5, -1000.0, -2.5]),
    ):
        assert to_numbers(pa.array(texts))[0].to_pylist() == numbers
        for text, number in zip(texts, numbers, strict=True):
            assert to_numbers(pa.array([text], pa.string()))[0].to_pylist() == [number]
    assert to_numbers(pa.array(["$1", "€2"])) == (None, "$1")
    assert to_numbers_or_dates(pa.array(["2026-01-01", "20260102"])) == (None, "2026-01-01")


@pytest.mark.filterwarnings("ignore:.*text that is read as dates")
def test_test_rows_hold_what_the_training_rows_held():
    rng = np.random.default_rng(0)
    train = pd.DataFrame(
        {"rate": rng.random(100), "day": DAYS[:100].strftime("%Y-%m-%d"), "x": rng.random(100)}
    )
    y = train["rate"] + rng.random(100)

    def evaluate(**columns):
        test = train.assign(**columns)
        return seqatt.evaluate(train, y, test, y, ["rate", "day"], seeds=1, epochs=1)

    same = evaluate()
    assert evaluate(rate=[f"{100 * rate!r} %" for rate in train["rate"]])["r2"] == pytest.approx(same["r2"])
    assert evaluate(day=DAYS[:100])["r2"] == pytest.approx(same["r2"])
    with pytest.raises(ValueError, match="X_test: column 'rate' holds '2020-01-01', which is not a number"):
        evaluate(rate="2020-01-01")
    with pytest.raises(ValueError, match="column 'day' holds '20200101', but dates in the training rows"):
        evaluate(day="20200101")


@pytest.mark.parametrize("form", ["%Y-%m-%d", "%d.%m.%Y", "%m/%d/%Y", "%d/%m/%Y %H:%M"])
def test_times_as_text_are_in_the_order_of_time(form):
    units = read_row_units(None, np.asarray(DAYS.strftime(form)), ROWS)
    assert (units.unit == np.argsort(np.argsort(DAYS))).all()


def test_numbers_as_text_are_in_their_order_and_other_text_is_warned_of():
    numbers = read_row_units(None, np.arange(ROWS).astype(str), ROWS)
    assert (numbers.unit == np.arange(ROWS)).all()
    for texts in (["2020Q4", "2021Q1"], ["2026-09", "2026-10"], ["2026-W09", "2026-W10"]):
        assert (read_row_units(None, np.array(texts), 2).unit == [0, 1]).all()
    for texts in (
        ["2026-9", "2026-10"],
        ["2026-Nov", "2026-Dec"],
        ["2026-01-01 9:00 PM", "2026-01-01 10:00 AM"],
    ):
        with pytest.warns(UserWarning, match="is text in the order of its letters"):
            read_row_units(None, np.array(texts), 2)
    zones = np.array(["2026-10-25T02:10+01:00", "2026-10-25T02:30+02:00"])
    assert (read_row_units(None, zones, 2).unit == [1, 0]).all()
    with pytest.warns(UserWarning, match="from 'Apr' to 'Jan'"):
        read_row_units(None, np.array(["Jan", "Apr"]), 2)
    with pytest.raises(ValueError, match="the day or the month may come first"):
        read_row_units(None, np.array(["01/02/2020", "02/03/2020"]), 2)
