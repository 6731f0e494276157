"""Where the latest rows are out of the range of the earlier ones, a warning and the answer say so, and only there."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
from tests.support.command import run

import seqatt
from seqatt.cli.display import show
from seqatt.report.facts.selection_facts import selection_facts

ROWS = 300
DAY = np.arange(ROWS)
ABOUT = "on later rows, which leave the range of earlier ones"
QUICK = {"epochs": 20}


def problem(trend: float = 0.0, seed: int = 0) -> pd.DataFrame:
    """Sales that grow by ``trend`` a day, whose lag grows with them; shuffled, as ``time`` gives the order."""
    rng = np.random.default_rng(seed)
    table = pd.DataFrame({"day": DAY, "promo": rng.integers(0, 2, ROWS), "noise": rng.normal(size=ROWS)})
    table["sold"] = 10 + trend * DAY + 3 * table.promo + rng.normal(size=ROWS)
    table["lag"] = table.sold.shift(1, fill_value=10.0)
    return table.sample(frac=1, random_state=seed)


def notes_of(table: pd.DataFrame, method: str = "f_test", **options: Any) -> list[str]:
    """The notes of a selection that gives no warning."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return seqatt.select(table, target="sold", method=method, **{"k": 1, "time": "day", **options}).notes


def test_a_target_that_grows_is_one_warning_and_a_note_with_the_features_that_grow():
    with pytest.warns(UserWarning, match="time: ") as caught:
        selection = seqatt.select(problem(0.5), target="sold", k=1, method="f_test", time="day")
    assert len(caught) == 1
    target, features = selection.notes
    assert str(caught[0].message)[len("time: i") :] == target[1:]
    share = int(target.removeprefix("In ").split("%")[0])
    assert share > 90
    assert "the target is outside the range of nearly all earlier rows" in target
    assert "do not extrapolate" in target
    assert "y - y_lag" in target
    assert "leave time (--time) out" in target
    assert "lag is outside the range" in features
    assert "noise" not in features
    assert "promo" not in features


def test_a_target_that_falls_or_has_early_outliers_is_out_of_range_too():
    falls = problem(-0.5)
    spikes = problem(0.5)
    spikes.loc[spikes.day.isin([10, 20]), "sold"] = 400.0  # above all later values
    for table in (falls, spikes):
        with pytest.warns(UserWarning, match="the target is outside the range"):
            seqatt.select(table, target="sold", k=1, method="f_test", time="day")


def test_selected_features_alone_are_a_note_without_a_warning():
    table = problem().assign(price=np.random.default_rng(0).normal(size=ROWS)).drop(columns="lag")
    table["price"] += 0.1 * table.day
    (note,) = notes_of(table, forbid=["promo", "noise"])
    assert "price is outside the range" in note
    assert "may say little" in note
    assert notes_of(table, forbid=["price"]) == []
    assert notes_of(table, k=2, forbid=["noise"])[0] == note


def test_features_that_were_not_selected_excuse_nothing():
    rng = np.random.default_rng(2)
    table = pd.DataFrame(rng.normal(size=(ROWS, 4)), columns=list("abcd")).assign(year=DAY // 30, day=DAY)
    selection = seqatt.select(
        table, rng.normal(size=ROWS), k="auto", time="day", forbid=["year"], task="regression", **QUICK
    )
    assert selection.notes == []
    assert ABOUT not in repr(selection)


def ar(rng: np.random.Generator) -> np.ndarray:
    values = np.zeros(ROWS)
    for day in DAY[1:]:
        values[day] = 0.7 * values[day - 1] + rng.normal()
    return values


@pytest.mark.parametrize("seed", range(5))
def test_no_false_alarm(seed):
    rng = np.random.default_rng(seed)
    series = {
        "noise": rng.normal(size=ROWS),
        "heavy tails": np.exp(2 * rng.normal(size=ROWS)).clip(max=20),
        "autocorrelated": ar(rng),
        "week": 5 * (DAY % 7) + rng.normal(size=ROWS),
        "season": 10 * np.sin(2 * np.pi * (DAY / 150 + rng.random())) + rng.normal(size=ROWS),
        "slight trend": DAY / ROWS + rng.normal(size=ROWS),
    }
    for name, values in series.items():
        table = problem(seed=seed).drop(columns="lag")
        table["sold"] = values[table.day]
        table["lag"] = np.roll(values, 1)[table.day]
        assert notes_of(table) == [], name


def test_other_targets_and_other_divisions_are_not_looked_at():
    table = problem(0.5)
    assert notes_of(table, time=None, ignore=["day"]) == []
    assert notes_of(table, time=None, groups_of_rows="day") == []
    late = table.assign(sold=np.where(table.day > 200, "late", "early"))
    assert notes_of(late) == []
    few = table[table.day < 35]
    assert notes_of(few) == []
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        seqatt.select(problem(), target="sold", k=1, method="f_test", ignore=["day"], time=DAY // 290)


@pytest.mark.parametrize("task", ["regression", "quantile", "poisson"])
def test_all_numeric_targets(task):
    with pytest.warns(UserWarning, match="the target is outside"):
        seqatt.select(problem(0.5), target="sold", k=1, method="f_test", time="day", task=task)


def test_of_several_targets_the_one_that_grows_counts():
    table = problem(0.5)
    y = np.column_stack([table.noise, table.sold])
    with pytest.warns(UserWarning, match="the target is outside"):
        seqatt.select(table[["promo", "lag"]], y, k=1, method="f_test", time=table.day)


@pytest.mark.parametrize("k", ["auto", 2])
def test_a_negative_answer_says_what_it_is_about(k, capsys):
    table = problem(2.0)[["day", "promo", "noise", "sold"]]
    if k == 2:  # no feature is significant by itself, so that the features are compared with random ones
        table = table.drop(columns="promo").assign(other=np.random.default_rng(7).normal(size=ROWS))
    with pytest.warns(UserWarning, match="time: "):
        selection = seqatt.select(table, target="sold", k=k, time="day", **QUICK)
    verdict = "no number of features does better than none" if k == "auto" else "no better than chance"
    verdict = f"{verdict} {ABOUT}"
    assert verdict in repr(selection)
    assert "; notes: 1)" in repr(selection)
    html = selection._repr_html_()
    assert verdict in html
    assert "do not extrapolate" in html
    summary = " ".join(selection_facts(selection)["summary"])
    assert verdict in summary
    assert "do not extrapolate" in summary
    capsys.readouterr()
    show(selection, "sold")
    shown = " ".join(capsys.readouterr().out.split())
    assert verdict.lower() in shown.lower()
    assert "Note: In " in shown
    assert "do not extrapolate" in shown


def test_a_negative_answer_on_other_series_is_as_it_was():
    rng = np.random.default_rng(1)
    table = problem().assign(sold=rng.normal(size=ROWS)).drop(columns="lag")
    selection = seqatt.select(table, target="sold", k="auto", time="day", **QUICK)
    assert "no number of features does better than none)" in repr(selection)


def test_the_answer_is_the_same_when_saved(tmp_path):
    with pytest.warns(UserWarning, match="time: "):
        selection = seqatt.select(problem(0.5), target="sold", k=1, method="f_test", time="day")
    selection.save(tmp_path / "selection.json")
    assert seqatt.Selection.load(tmp_path / "selection.json") == selection


@pytest.mark.parametrize("make", [seqatt.SequentialAttentionSelector, seqatt.SequentialAttentionRegressor])
def test_selectors_warn_once(make):
    table = problem(0.5)
    with pytest.warns(UserWarning, match="the target is outside") as caught:
        fitted = make(1, epochs=20).fit(table[["promo", "noise", "lag"]], table.sold, time=table.day)
    assert len([w for w in caught if "the target is outside" in str(w.message)]) == 1
    assert "do not extrapolate" in fitted.selection_.notes[0]


def test_the_command_says_it_before_and_with_the_answer(tmp_path):
    problem(2.0)[["day", "promo", "noise", "sold"]].to_csv(tmp_path / "shop.csv", index=False)
    result = run("select", tmp_path / "shop.csv", "--target", "sold", "-k", "auto", "--time", "day")
    assert result.stderr.count("note: time: in ") == 1
    shown = " ".join(result.stdout.split())
    assert f"Nothing selected: no number of features does better than none {ABOUT}" in shown
    assert "Note: In " in shown
