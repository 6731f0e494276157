"""The facts of a report: plain data, bounded in size, that hold what the selection says and no rows of the table."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp
from tests.support.problems import linear_problem
from tests.support.reports import (
    CURVE,
    HOSTILE,
    make_comparison,
    make_evaluation,
    make_full_selection,
    make_selection,
    make_table,
)

import seqatt
from seqatt.comparison import statistics
from seqatt.report import values
from seqatt.report.facts.comparison_facts import comparison_facts
from seqatt.report.facts.data_facts import data_facts
from seqatt.report.facts.history_facts import MAX_PHASES, history_facts
from seqatt.report.facts.selection_facts import selection_facts


def test_facts_are_plain_json_and_survive_a_file():
    X, y = make_table()
    selection = make_full_selection()
    facts = selection_facts(
        selection, evaluation=make_evaluation(), data=data_facts(selection, X, y), target="diagnosis"
    )
    assert json.loads(json.dumps(facts, allow_nan=False)) == facts
    compared = comparison_facts(make_comparison(), target="y")
    assert json.loads(json.dumps(compared, allow_nan=False)) == compared


def test_rows_of_features_have_rank_score_importance_metric_and_frequency():
    first, second, third = selection_facts(make_full_selection())["features"]
    assert first == {
        "rank": 1,
        "feature": HOSTILE,
        "score": 1.0,
        "importance": 0.3,
        "importance_error": 0.05,
        "frequency": 1.0,
        "metric": 0.9,
    }
    assert (second["metric"], third["metric"]) == (0.95, 0.98)
    assert [set(row) for row in selection_facts(make_selection())["features"]] == [
        {"rank", "feature", "score"}
    ] * 3


def test_nan_and_infinite_scores_are_no_value():
    selection = make_selection(scores=np.array([np.nan, np.inf, 1.0]))
    assert [row["score"] for row in selection_facts(selection)["features"]] == [None, None, 1.0]


def test_the_summary_says_what_was_measured_and_nothing_else():
    bare = selection_facts(make_selection())
    names = f"{HOSTILE}, worst concave points, worst perimeter"
    assert bare["summary"] == [
        f"Selected 3 of 30 features, in this order: {names}.",
        "What is lost against all features was not measured.",
    ]
    assert any('k="auto"' in step for step in bare["next"])
    full = " ".join(selection_facts(make_full_selection(), evaluation=make_evaluation())["summary"])
    assert "reach AUC 0.980" in full
    assert "all 30 reach 0.990" in full
    assert "171 held-out rows" in full
    assert "accuracy 0.955" in full
    assert "at least 60% of 10 repeats" in full
    assert "better than chance" in full
    empty = make_selection(
        curve=CURVE | {"chosen": 0}, features=[], scores=np.array([]), indices=np.array([], int)
    )
    assert selection_facts(replace(empty, columns=np.array([], int)))["summary"][0].startswith(
        "Nothing selected"
    )


def test_scores_of_a_phase_are_relative_to_its_best_and_lowest():
    history = history_facts(make_selection())
    assert history["phases"] == [1, 2, 3]
    rows = {row["feature"]: row for row in history["rows"]}
    assert rows[HOSTILE]["values"][0] == 1.0
    assert rows[HOSTILE]["marks"] == {"0": "+"}
    assert [row["selected"] for row in history["rows"]] == [True] * 3 + [False] * 6
    assert all(0 <= v <= 1 for row in history["rows"] for v in row["values"] if v is not None)


def test_many_phases_are_thinned_out_without_losing_a_mark():
    selection = make_selection()
    names = selection.names
    many = [selection.history[0] | {"taken": []} for _ in range(500)]
    many[123] = many[123] | {"taken": [names[0]]}
    history = history_facts(replace(selection, history=many))
    assert len(history["phases"]) <= MAX_PHASES
    assert history["all_phases"] == 500
    assert list(next(r for r in history["rows"] if r["feature"] == HOSTILE)["marks"].values()) == ["+"]


def test_a_method_without_phases_has_no_history():
    assert selection_facts(seqatt.select(*make_table(), 3, method="f_test"))["history"] is None


CONTAINERS = {
    "pandas": lambda X: X,
    "polars": pl.from_pandas,
    "arrow": pa.Table.from_pandas,
    "array": lambda X: X.to_numpy(),
    "sparse": lambda X: sp.csr_matrix(X.to_numpy()),
}


@pytest.mark.parametrize("container", CONTAINERS)
def test_facts_of_the_table_are_the_same_in_every_container(container):
    X, y = make_table()
    selection = make_selection()
    expected = data_facts(selection, X, y)
    assert data_facts(selection, CONTAINERS[container](X), y.to_numpy()) == expected


def test_histograms_by_class_sum_to_one_and_classes_have_shares():
    X, y = make_table()
    facts = data_facts(make_selection(), X, y)
    assert facts["summary"]["class_shares"] == [
        {"class": "0", "share": pytest.approx(212 / 569)},
        {"class": "1", "share": pytest.approx(357 / 569)},
    ]
    assert [each["feature"] for each in facts["distributions"]] == make_selection().features
    for each in facts["distributions"]:
        assert [series["name"] for series in each["series"]] == ["0", "1"]
        for series in each["series"]:
            assert sum(series["shares"]) == pytest.approx(1, abs=1e-3)


def test_a_numeric_target_gets_its_mean_per_bin():
    X, _ = make_table()
    selection = make_selection()
    selection.settings["task"] = "regression"
    y = 3 * X[HOSTILE].to_numpy()
    target = data_facts(selection, X, y)["distributions"][0]["target"]
    assert sum(target["rows"]) == 569
    assert np.all(np.diff(target["means"]) > 0)
    assert np.average(target["means"], weights=target["rows"]) == pytest.approx(y.mean())


def test_many_classes_get_a_mean_and_a_range_each():
    X, _ = make_table()
    facts = data_facts(make_selection(), X, np.arange(569) % 15)
    ranges = facts["distributions"][0]["ranges"]
    assert len(ranges) == 11
    assert ranges[-1]["name"] == "other classes"
    assert all(each["low"] <= each["mean"] <= each["high"] for each in ranges)


def test_categories_missing_values_and_few_values_have_bins_of_their_own():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "colour": rng.choice(["red", "green", None], 200),
            "many": [f"v{i % 40}" for i in range(200)],
            "few": rng.choice([1.0, 2.5, np.nan], 200),
            "flag": rng.random(200) < 0.5,
            "constant": np.ones(200),
        }
    )
    selection = seqatt.select(frame, rng.integers(0, 2, 200), 5, method="random")
    facts = {d["feature"]: d for d in data_facts(selection, frame, frame["flag"])["distributions"]}
    assert sorted(facts["colour"]["labels"]) == ["green", "red"]
    assert facts["colour"]["missing"] == pytest.approx(frame["colour"].isna().mean())
    assert len(facts["many"]["labels"]) == 13
    assert facts["many"]["labels"][-1] == "other values"
    assert facts["few"]["labels"] == ["1", "2.5"]
    assert facts["constant"]["labels"] == ["1"]


def test_rejected_features_are_listed_with_the_selected_one_that_resembles_them_most():
    X, y = make_table()
    selection = make_selection()
    facts = data_facts(selection, X, y)["correlation"]
    expected = X[selection.features].corr().to_numpy()
    assert np.allclose(facts["matrix"], expected, atol=2e-3)
    listed = {each["feature"]: each for each in facts["stand_ins"]}
    assert listed[HOSTILE]["of"][0]["feature"] == "mean perimeter"
    value = X[[HOSTILE, "mean perimeter"]].corr().iloc[0, 1]
    assert listed[HOSTILE]["of"][0]["correlation"] == pytest.approx(value, abs=1e-3)


def test_facts_of_a_table_do_not_grow_with_its_rows():
    X, y = linear_problem("binary")
    selection = seqatt.select(X, y, 3, method="f_test")
    small = len(json.dumps(data_facts(selection, X, y)))
    large = len(json.dumps(data_facts(selection, np.tile(X, (300, 1)), np.tile(y, 300))))
    assert large < 1.2 * small


def test_a_wrong_table_target_shape_or_evaluation_is_an_error_that_names_it():
    X, y = make_table()
    selection = make_selection()
    with pytest.raises(ValueError, match="y: must have one value for each of the 569 rows"):
        data_facts(selection, X, y[:5])
    with pytest.raises(ValueError, match="y: X has no column 'nothing'"):
        data_facts(selection, X, "nothing")
    with pytest.raises(ValueError, match="X: column"):
        data_facts(selection, X[["mean area"]], y)
    with pytest.raises(ValueError, match="image_shape: must be the height and width of images of 30 pixels"):
        selection_facts(selection, image_shape=(4, 4))
    with pytest.raises(ValueError, match="evaluation: must be"):
        selection_facts(selection, evaluation={"wrong": {}})


def test_an_evaluation_of_python_is_taken_as_that_of_the_selected_features():
    evaluation = seqatt.Evaluation({"accuracy": np.array([0.9, 1.0])}, [0, 1])
    (only,) = selection_facts(make_selection(), evaluation=evaluation)["evaluation"]["sets"]
    assert only["values"]["accuracy"]["mean"] == pytest.approx(0.95)


def test_the_code_of_a_report_repeats_the_selection():
    X, y = linear_problem("binary")
    given = {"method": "sequential_attention", "seed": 3, "device": "cpu", "epochs": 4, "hidden": (8,)}
    selection = seqatt.select(X, y, 2, **given)
    again = eval(selection_facts(selection)["code"], {"seqatt": seqatt, "X": X, "y": y})
    assert again.features == selection.features
    assert again.scores.tolist() == selection.scores.tolist()
    assert selection.settings["options"]["epochs"] == 4


@pytest.mark.parametrize("recipe", ["default", "paper"])
def test_the_code_of_a_report_has_no_option_that_was_not_given(recipe):
    X, y = linear_problem("binary")
    given = {"epochs": 3} | ({} if recipe == "default" else {"recipe": recipe})
    selection = seqatt.select(X, y, 2, device="cpu", **given)
    assert selection.settings["options"] == given
    assert "one_pass" not in selection_facts(selection)["code"]
    assert selection.settings["one_pass"]


def test_the_code_of_a_reconstruction_has_no_target():
    X = np.random.default_rng(0).normal(size=(60, 4))
    selection = seqatt.select(X, k=2, task="reconstruction", method="f_test")
    again = eval(selection_facts(selection)["code"], {"seqatt": seqatt, "X": X})
    assert again.features == selection.features


def test_the_code_names_what_it_cannot_spell_out():
    X, y = linear_problem("binary")
    selection = seqatt.select(X, y, 2, method="cmim", sample_weight=np.ones(len(y)))
    assert "sample_weight=sample_weight" in selection_facts(selection)["code"]


def test_classes_that_are_whole_floats_are_shown_as_integers():
    X, y = make_table()
    for target in (y.astype(float), y.astype(np.float32), y.astype(float).astype(object)):
        facts = data_facts(make_selection(), X, target)
        assert [each["class"] for each in facts["summary"]["class_shares"]] == ["0", "1"]
    halves = data_facts(make_selection(), X, y + 0.5)
    assert [each["class"] for each in halves["summary"]["class_shares"]] == ["0.5", "1.5"]


@pytest.mark.filterwarnings("ignore:fdr")
@pytest.mark.parametrize("k", [None, 4])
def test_the_code_of_a_selection_by_rate_repeats_it_even_if_nothing_was_found(k):
    X = np.random.default_rng(0).normal(size=(200, 6))
    y = np.random.default_rng(1).normal(size=200)
    selection = seqatt.select(X, y, k, method="f_test", fdr=0.1, device="cpu")
    assert selection.features == []
    code = selection_facts(selection)["code"]
    assert ("k=4, " if k else "X, y, method=") in code
    again = eval(code, {"seqatt": seqatt, "X": X, "y": y})
    assert (again.features, again.settings["max_k"]) == ([], k)


@pytest.mark.parametrize(
    ("sets", "sentence"),
    [
        (["all"], "On test rows, a network with all features has accuracy 0.965."),
        (["random"], "On test rows, a network with as many random features has accuracy 0.875."),
        (
            ["all", "random"],
            "On test rows, a network with all features has accuracy 0.965; with as many at random 0.875.",
        ),
    ],
)
def test_an_evaluation_of_other_features_only_is_a_sentence_too(sets, sentence):
    every = make_evaluation()["holdout"]
    facts = selection_facts(make_selection(), evaluation={name: every[name] for name in sets})
    assert facts["summary"][1:] == [sentence]


def test_a_target_that_was_named_is_known_to_the_report():
    X, y = linear_problem("binary")
    frame = pd.DataFrame(X, columns=[f"f{i}" for i in range(X.shape[1])])
    selection = seqatt.select(frame.assign(kind=y), target="kind", k=1, method="f_test")
    facts = selection_facts(selection)
    assert facts["target"] == "kind"
    assert facts["summary"][0] == f"Selected 1 of 8 features for kind: {selection.features[0]}."
    assert "target='kind'" in facts["code"]
    assert "target" not in facts["settings"]
    assert selection_facts(selection, target="label")["target"] == "label"
    assert selection_facts(seqatt.select(frame, y, 1, method="f_test"))["target"] is None


def test_the_summary_names_ten_features_and_counts_the_others():
    X = np.random.default_rng(0).normal(size=(60, 13))
    selection = seqatt.select(X, X[:, 0], 12, method="f_test")
    first = selection_facts(selection)["summary"][0]
    assert first.endswith(f": {', '.join(selection.features[:10])} and 2 more.")


def test_a_selection_by_rate_is_not_sent_to_options_that_a_rate_excludes():
    found = {
        "rate": 0.1,
        "estimated_rate": 0.1,
        "statistics": [],
        "raced": 30,
        "knockoffs": 5,
        "warnings": [],
    }
    steps = " ".join(selection_facts(make_selection(false_discoveries=found))["next"])
    assert "--holdout" in steps
    assert "repeats" not in steps
    assert "auto" not in steps


def test_reports_and_comparisons_agree_on_metrics_of_which_less_is_better():
    assert values.LOWER_IS_BETTER == statistics.LOWER_IS_BETTER


@pytest.mark.parametrize(
    ("column", "shown"),
    [
        ([0.119, 0.00315, -0.003073], ["0.119", "0.003", "−0.003"]),
        ([0.00315, None, 2e-5], ["0.00315", "–", "0.00002"]),
        ([3.0, 12.0], ["3", "12"]),
        ([2500.5, 3.25], ["2,500", "3.250"]),
        ([], []),
    ],
)
def test_numbers_of_a_column_have_as_many_decimals_each(column, shown):
    assert values.aligned(column) == shown
