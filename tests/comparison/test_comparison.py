"""The statistics and texts of a comparison, checked against values computed by hand."""

from __future__ import annotations

import json
import math

import pytest

from seqatt import Comparison
from seqatt.comparison.runs import ComparisonRun


def make_comparison(
    scores: dict[str, list[float | None]], *, metric: str = "accuracy", **settings
) -> Comparison:
    """A comparison at k = 2 from one score per method and seed; None is a failed run."""
    runs = [
        ComparisonRun(method, 2, seed, [f"f{seed}", "f9"], {metric: value}, seed + 1.0)
        if value is not None
        else ComparisonRun(method, 2, seed, error="ValueError: no <good>|bad")
        for method, values in scores.items()
        for seed, value in enumerate(values)
    ]
    defaults = {
        "methods": list(scores),
        "k": [2],
        "seeds": list(range(max(map(len, scores.values())))),
        "metric": metric,
        "task": "multiclass",
        "rows": 100,
        "features": 10,
        "test": {"size": 0.2, "stratified": True, "grouped": False},
        "split_rows": [[80, 20]] * max(map(len, scores.values())),
    }
    return Comparison(runs, defaults | settings, {"device": "cpu"})


def find_row(comparison: Comparison, method: str) -> dict:
    return next(row for row in comparison.table() if row["method"] == method)


def test_means_deviations_seconds_and_stability_equal_those_computed_by_hand():
    row = find_row(make_comparison({"a": [0.8, 0.9, 1.0]}), "a")
    assert row["mean"] == pytest.approx(0.9)
    assert row["sd"] == pytest.approx(0.1)  # sqrt((0.01 + 0 + 0.01) / 2)
    assert row["seconds"] == pytest.approx(2.0)
    # {f0, f9}, {f1, f9}, {f2, f9}: each pair shares one feature of three.
    assert row["stability"] == pytest.approx(1 / 3)
    assert (row["runs"], row["error"]) == (3, None)


def test_stability_is_the_mean_over_pairs():
    runs = [
        ComparisonRun("a", 2, seed, list(features), {"accuracy": 0.5})
        for seed, features in enumerate(["ab", "ab", "bc"])
    ]
    settings = make_comparison({"a": [0.5, 0.5, 0.5]}).settings
    row = find_row(Comparison(runs, settings, {}), "a")
    assert row["stability"] == pytest.approx((1 + 1 / 3 + 1 / 3) / 3)


def test_differences_are_paired_over_the_same_splits():
    """Splits differ by far more than methods; on each of them, a is 0.01 to 0.03 ahead of b."""
    comparison = make_comparison({"b": [0.59, 0.78, 0.97], "a": [0.60, 0.80, 1.00], "c": [0.62, 0.70, 0.90]})
    assert comparison.best(2) == comparison.best() == "a"
    near, far = comparison.differences(2)
    assert (near["method"], near["wins"], near["runs"]) == ("b", 3, 3)
    assert near["ahead"] == pytest.approx(0.02)
    assert near["sd"] == pytest.approx(0.01)
    assert near["within_sd"] is False
    # 2 standard deviations; t(2 degrees of freedom, 97.5%) = 4.303, times sqrt(1/3 + 20/80) = 3.286
    assert near["significant"] is False
    assert (far["method"], far["wins"]) == ("c", 2)
    assert far["within_sd"] is True  # 0.06 ahead, but -0.02, 0.1 and 0.1 on the splits
    assert "c is within one standard deviation" in comparison.conclusion()


def test_a_difference_is_significant_above_the_threshold_of_the_corrected_t_test():
    threshold = 4.302653 * math.sqrt(1 / 3 + 0.25)
    for factor, significant in ((0.99, False), (1.01, True)):
        ahead = 0.01 * threshold * factor
        comparison = make_comparison(
            {"a": [0.5 + ahead - 0.01, 0.5 + ahead, 0.5 + ahead + 0.01], "b": [0.5, 0.5, 0.5]}
        )
        assert comparison.differences()[0]["significant"] is significant
        assert ("a is best" in comparison.conclusion()) is significant
        assert ("which may be chance in" in comparison.conclusion()) is not significant


def test_test_rows_supplied_by_the_user_need_no_correction_for_overlap():
    ahead = 0.01 * 4.302653 * math.sqrt(1 / 3) * 1.01
    scores = {"a": [0.5 + ahead - 0.01, 0.5 + ahead, 0.5 + ahead + 0.01], "b": [0.5, 0.5, 0.5]}
    assert make_comparison(scores, test={"rows": 30}, split_rows=[]).differences()[0]["significant"] is True
    assert make_comparison(scores).differences()[0]["significant"] is False


def test_the_overlap_is_that_of_the_actual_splits():
    """Half of the rows are tested, so t(2, 97.5%) sqrt(1/3 + 50/50) deviations are needed."""
    threshold = 4.302653 * math.sqrt(1 / 3 + 1)
    for factor, significant in ((0.99, False), (1.01, True)):
        ahead = 0.01 * threshold * factor
        scores = {"a": [0.5 + ahead - 0.01, 0.5 + ahead, 0.5 + ahead + 0.01], "b": [0.5, 0.5, 0.5]}
        comparison = make_comparison(scores, split_rows=[[50, 50]] * 3)
        assert comparison.differences()[0]["significant"] is significant
        assert "tested on 50% of the rows" in comparison.to_markdown()


def test_equal_differences_leave_the_deviation_unknown():
    comparison = make_comparison({"a": [0.9, 0.8], "b": [0.8, 0.7]})  # in floats, 0.9 - 0.8 is not 0.8 - 0.7
    only = comparison.differences()[0]
    assert (only["sd"], only["significant"], only["near"]) == (0.0, None, False)
    assert "a is best" not in comparison.conclusion()
    assert "the spread is unknown" in comparison.conclusion()
    comparison = make_comparison({"a": [0.9, 0.8], "b": [0.9, 0.8]})
    assert comparison.differences()[0]["near"] is True
    assert "b is within one standard deviation" in comparison.conclusion()


def test_a_significant_difference_is_never_also_near():
    """With 10 seeds and fixed test rows, 2.262 / sqrt(10) = 0.715 standard deviations are significant."""
    values = [0.5 + 0.01 * (0.8 + (1 if seed % 2 else -1) * 0.9487) for seed in range(10)]
    comparison = make_comparison({"a": values, "random": [0.5] * 10}, test={"rows": 30}, split_rows=[])
    only = comparison.differences()[0]
    assert (only["within_sd"], only["significant"], only["near"]) == (True, True, False)
    assert "≈" not in repr(comparison)
    assert "a is best" in comparison.conclusion()
    assert "not shown" not in comparison.conclusion()


def test_the_conclusion_names_a_best_method_only_if_every_difference_is_significant():
    comparison = make_comparison({"a": [0.9, 0.9, 0.9], "b": [0.8, 0.801, 0.799], "c": [0.70, 0.79, 0.78]})
    assert [d["significant"] for d in comparison.differences()] == [True, False]
    assert "a has the best mean (accuracy 0.900), ahead of c" in comparison.conclusion()


def test_lower_is_better_for_error_metrics():
    comparison = make_comparison({"a": [2.0, 2.2], "b": [1000.0, 1100.0]}, metric="rmse")
    assert comparison.best() == "a"
    assert comparison.differences()[0]["ahead"] == pytest.approx((998 + 1097.8) / 2)
    assert "lower is better" in comparison.to_markdown()
    assert "1,050" in comparison.to_markdown()


def test_a_method_with_failed_runs_is_reported_and_never_best():
    comparison = make_comparison({"a": [0.9, None, None], "b": [0.5, 0.6, 0.7], "c": [None, None, None]})
    assert comparison.best() == "b"
    assert find_row(comparison, "a")["runs"] == 1
    assert find_row(comparison, "c")["mean"] is None
    for text in (repr(comparison), comparison.to_markdown(), comparison._repr_html_()):
        assert "0.900 (1 of 3)" in text
        assert "failed" in text
    assert comparison._repr_html_().count("&lt;good&gt;") == 2
    assert "<good>" not in comparison._repr_html_()
    assert comparison.to_markdown().count("c failed at k = 2: ValueError: no <good>") == 1


def test_one_run_allows_no_conclusion():
    comparison = make_comparison({"a": [0.9], "b": [0.1]})
    assert find_row(comparison, "a")["sd"] is None
    assert find_row(comparison, "a")["stability"] is None
    assert comparison.differences()[0]["within_sd"] is None
    assert "one run cannot tell" in comparison.conclusion()


def test_equal_scores_of_one_run_are_reported_as_level():
    assert (
        "k = 2: a and b are level (accuracy 0.900), but"
        in make_comparison({"a": [0.9], "b": [0.9], "c": [0.8]}).conclusion()
    )


def test_with_several_k_one_must_be_passed():
    comparison = make_comparison({"a": [0.9], "b": [0.1]}, k=[1, 2])
    with pytest.raises(ValueError, match="k: give one of 1, 2"):
        comparison.best()


def test_the_reason_of_a_failure_and_an_undefined_metric_are_reported():
    comparison = make_comparison({"a": [0.5, 0.6], "b": [0.4, None]}, metric="auc")
    assert "b failed at k = 2: ValueError: no <good>|bad" in repr(comparison)
    runs = [
        ComparisonRun(run.method, 2, run.seed, run.features, {"auc": None, "accuracy": 0.5})
        for run in comparison.runs
    ]
    comparison = Comparison(runs, comparison.settings, {})
    for text in (repr(comparison), comparison.to_markdown(), comparison._repr_html_()):
        assert "undefined" in text
        assert "AUC is undefined on test rows of seed 0, 1 (one class only)" in text
        assert "k = 2: AUC is undefined in every run." in text


def test_the_conclusion_warns_if_random_features_are_near():
    comparison = make_comparison({"a": [0.7, 0.9, 0.8], "random": [0.8, 0.7, 0.8]})
    assert "it is not shown that selection helps" in comparison.conclusion()
    comparison = make_comparison({"a": [0.8, 0.7, 0.8], "random": [0.7, 0.9, 0.8]})
    assert "No method has a better mean than random features" in comparison.conclusion()
    assert "not significantly worse" not in comparison.conclusion()
    comparison = make_comparison({"a": [0.95, 0.96, 0.95], "random": [0.5, 0.5, 0.51]})
    assert "it is not shown that selection helps" not in comparison.conclusion()


def test_a_comparison_with_only_failed_runs_can_be_displayed():
    comparison = make_comparison({"a": [None], "b": [None]})
    assert comparison.best() is None
    assert comparison.differences() == []
    assert "every run failed" in comparison.conclusion()
    repr(comparison), comparison._repr_html_(), comparison.to_markdown()


def test_the_conclusion_tells_missing_runs_from_failed_ones():
    conclusion = make_comparison({"a": [0.9, 0.8], "b": [0.7, 0.6]}, k=[2, 4]).conclusion()
    assert conclusion.endswith("k = 4: no run was made.")


def test_the_markdown_table_has_as_many_alignments_as_headings():
    lines = make_comparison({"a": [0.9, 0.8], "b": [0.7, 0.6]}).to_markdown().splitlines()
    heading, alignments, first, *_ = [line for line in lines if line.startswith("|")]
    assert heading.count("|") == alignments.count("|") == first.count("|")
    assert alignments == "| ---: | --- | --- | ---: | ---: | ---: |"


def test_missing_runs_are_counted():
    comparison = make_comparison({"a": [0.5, 0.6], "b": [0.5]})
    assert comparison.missing == 1
    assert "interrupted: 3 of 4 runs were made" in comparison.to_markdown()
    assert make_comparison({"a": [0.5], "b": [0.5]}).missing == 0


def test_an_interrupted_comparison_compares_only_methods_with_the_same_runs():
    """Over both of its runs a has the lower mean; on the split that both methods have, b is better."""
    comparison = make_comparison({"a": [0.90, 0.83], "b": [0.93], "c": []}, seeds=[0, 1, 2])
    assert comparison.best() == "b"
    assert [(d["method"], d["runs"]) for d in comparison.differences()] == [("a", 1)]
    assert find_row(comparison, "a")["mean"] == 0.90
    assert find_row(comparison, "c")["mean"] is None
    text = repr(comparison)
    assert "0.865" not in text  # the mean of a over seeds that b does not have
    assert "b comes first (accuracy 0.930), but one run cannot tell" in text
    assert "Interrupted: compared over 1 of 3 seeds, without c." in text
    assert "missing at k = 2: a (seed 2), b (seeds 1 and 2), c (seeds 0, 1 and 2)" in text
    assert "left out at k = 2: seed 1, which not all of these methods have" in text


def test_methods_that_failed_on_different_splits_are_not_compared_by_their_means():
    """a has the easy split and b the hard one; c has both, so that it is the best of those with the same runs."""
    comparison = make_comparison({"a": [0.99, None], "b": [None, 0.60], "c": [0.95, 0.55]})
    assert comparison.best() == "c"
    assert (
        make_comparison({"a": [0.99, None, 0.7], "b": [None, 0.6, 0.8], "c": [None, 0.5, 0.7]}).best() == "b"
    )


def test_all_features_are_compared_over_the_splits_of_the_methods():
    comparison = make_comparison({"a": [0.5, 0.6], "b": [0.4]})
    runs = [
        *comparison.runs,
        *(ComparisonRun("all", 10, seed, [], {"accuracy": 0.7 + seed / 10}) for seed in (0, 1)),
    ]
    settings = comparison.settings | {"methods": ["a", "b", "all"]}
    partial = Comparison(runs, settings, {})
    assert find_row(partial, "all")["mean"] == 0.7
    assert "accuracy 0.700, 0.200 better than the best selection of 2" in partial.conclusion()


def test_an_added_method_without_runs_leaves_the_others_as_they_were():
    comparison = make_comparison({"a": [0.5, 0.6], "b": [0.7, 0.4], "c": []})
    assert comparison.compared_seeds(2) == [0, 1]
    assert "Interrupted: compared over 2 of 2 seeds, without c." in comparison.conclusion()


def test_a_saved_and_loaded_comparison_is_the_same(tmp_path):
    comparison = make_comparison({"a": [0.5, 0.75], "b": [0.1, None]})
    comparison.save(tmp_path / "c.json")
    loaded = Comparison.load(tmp_path / "c.json")
    assert loaded.table() == comparison.table()
    assert loaded.settings == comparison.settings
    assert [path.name for path in tmp_path.iterdir()] == ["c.json"]


@pytest.mark.parametrize(
    "damage",
    [
        lambda raw: raw.pop("runs"),
        lambda raw: raw.update(format=99),
        lambda raw: raw["runs"][0].update(k="2"),
        lambda raw: raw["runs"][0].update(metrics={"accuracy": "high"}),
        lambda raw: raw["runs"][0].update(surprise=1),
        lambda raw: raw["runs"][0].update(features="abc"),
        lambda raw: raw.update(settings=[]),
        lambda raw: raw["settings"].pop("test"),
        lambda raw: raw["settings"].update(split_rows=[[0, 20]]),
        lambda raw: raw["settings"].update(split_rows=[[30, -200]]),
    ],
)
def test_a_damaged_file_raises_with_a_clear_message(damage, tmp_path):
    raw = make_comparison({"a": [0.5, 0.6], "b": [0.4, 0.5]}).to_dict()
    damage(raw)
    (tmp_path / "c.json").write_text(json.dumps(raw))
    with pytest.raises(ValueError, match=r"c\.json: not a saved comparison"):
        Comparison.load(tmp_path / "c.json")


def test_a_frame_has_the_rows_of_the_table():
    comparison = make_comparison({"a": [0.5, 0.6], "b": [0.4, 0.5]})
    assert comparison.to_frame()["mean"].tolist() == [row["mean"] for row in comparison.table()]


def test_another_metric_is_selected_by_name():
    comparison = make_comparison({"a": [0.5, 0.6]})
    assert comparison.by("accuracy").table() == comparison.table()
    with pytest.raises(ValueError, match="metric: unknown 'auc'; use one of accuracy"):
        comparison.by("auc")


@pytest.mark.slow
def test_the_chart_labels_every_method_and_is_reproducible():
    single_k = make_comparison({"sequential_attention": [0.5, 0.6], "b": [0.4, 0.5], "random": [0.1, 0.2]})
    runs = [
        *single_k.runs,
        *(ComparisonRun(run.method, 8, run.seed, run.features, run.metrics) for run in single_k.runs),
    ]
    runs += [
        ComparisonRun("all", 10, 0, [], {"accuracy": 0.9}),
        ComparisonRun("all", 10, 1, [], {"accuracy": 0.8}),
    ]
    settings = single_k.settings | {"k": [2, 8], "methods": [*single_k.settings["methods"], "all"]}
    several_k = Comparison(runs, settings, {})
    for comparison in (single_k, several_k):
        svg = comparison.to_svg()
        assert all(name in svg for name in ("sequential_attention", "b", "random", "accuracy"))
        assert svg == comparison.to_svg()
    assert "all 10" in several_k.to_svg()


def test_a_chart_can_be_drawn_on_given_axes():
    from matplotlib.figure import Figure

    axes = Figure().subplots()
    assert make_comparison({"a": [0.5, 0.6]}).plot(axes) is axes
