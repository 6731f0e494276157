"""What a comparison says of its cells, against figures worked out by hand."""

from __future__ import annotations

import json
import math

import pytest

from seqatt import Comparison
from seqatt.comparison.chart import _spread_out
from seqatt.comparison.runs import ComparisonRun


def comparison(scores: dict[str, list[float | None]], *, metric: str = "accuracy", **settings) -> Comparison:
    """Methods with a score a seed at k = 2; None is a run that failed."""
    cells = [
        ComparisonRun(method, 2, seed, [f"f{seed}", "f9"], {metric: value}, seed + 1.0)
        if value is not None
        else ComparisonRun(method, 2, seed, error="ValueError: no <good>|bad")
        for method, values in scores.items()
        for seed, value in enumerate(values)
    ]
    asked = {
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
    return Comparison(cells, asked | settings, {"device": "cpu"})


def row(made: Comparison, method: str) -> dict:
    return next(row for row in made.table() if row["method"] == method)


def test_means_deviations_seconds_and_stability_are_those_worked_out_by_hand():
    found = row(comparison({"a": [0.8, 0.9, 1.0]}), "a")
    assert found["mean"] == pytest.approx(0.9)
    assert found["sd"] == pytest.approx(0.1)  # sqrt((0.01 + 0 + 0.01) / 2)
    assert found["seconds"] == pytest.approx(2.0)
    assert found["stability"] == pytest.approx(
        1 / 3
    )  # {f0, f9}, {f1, f9}, {f2, f9}: one of three in each pair
    assert (found["runs"], found["error"]) == (3, None)


def test_stability_is_the_mean_over_pairs():
    cells = [
        ComparisonRun("a", 2, s, chosen, {"accuracy": 0.5}) for s, chosen in enumerate(["ab", "ab", "bc"])
    ]
    made = comparison({"a": [0.5, 0.5, 0.5]})
    found = Comparison(
        [ComparisonRun(c.method, 2, c.seed, list(c.features), c.metrics) for c in cells], made.settings, {}
    )
    assert row(found, "a")["stability"] == pytest.approx((1 + 1 / 3 + 1 / 3) / 3)


def test_differences_are_paired_over_the_same_splits():
    """Splits differ by far more than methods do; on each of them a is 0.01 to 0.03 ahead."""
    made = comparison({"b": [0.59, 0.78, 0.97], "a": [0.60, 0.80, 1.00], "c": [0.62, 0.70, 0.90]})
    assert made.best(2) == made.best() == "a"
    near, far = made.differences(2)
    assert (near["method"], near["wins"], near["runs"]) == ("b", 3, 3)
    assert near["ahead"] == pytest.approx(0.02)
    assert near["sd"] == pytest.approx(0.01)
    assert near["within_sd"] is False
    # 2 standard deviations; t(2 degrees of freedom, 97.5%) = 4.303, times sqrt(1/3 + 20/80) = 3.286
    assert near["clear"] is False
    assert (far["method"], far["wins"]) == ("c", 2)
    assert far["within_sd"] is True  # 0.06 ahead, but -0.02, 0.1 and 0.1 on the splits
    assert "c is within one standard deviation" in made.conclusion()


def test_a_difference_is_clear_beyond_the_corrected_t_test_and_not_before():
    threshold = 4.302653 * math.sqrt(1 / 3 + 0.25)
    for factor, clear in ((0.99, False), (1.01, True)):
        ahead = 0.01 * threshold * factor
        made = comparison({"a": [0.5 + ahead - 0.01, 0.5 + ahead, 0.5 + ahead + 0.01], "b": [0.5, 0.5, 0.5]})
        assert made.differences()[0]["clear"] is clear
        assert ("a is best" in made.conclusion()) is clear
        assert ("chance can do that" in made.conclusion()) is not clear


def test_test_rows_of_ones_own_share_nothing_between_splits():
    ahead = 0.01 * 4.302653 * math.sqrt(1 / 3) * 1.01
    scores = {"a": [0.5 + ahead - 0.01, 0.5 + ahead, 0.5 + ahead + 0.01], "b": [0.5, 0.5, 0.5]}
    assert comparison(scores, test={"rows": 30}, split_rows=[]).differences()[0]["clear"] is True
    assert comparison(scores).differences()[0]["clear"] is False


def test_splits_share_the_rows_that_were_really_held_out():
    """Half the rows tested, whatever was asked for: t(2, 97.5%) sqrt(1/3 + 50/50) deviations are needed."""
    threshold = 4.302653 * math.sqrt(1 / 3 + 1)
    for factor, clear in ((0.99, False), (1.01, True)):
        ahead = 0.01 * threshold * factor
        scores = {"a": [0.5 + ahead - 0.01, 0.5 + ahead, 0.5 + ahead + 0.01], "b": [0.5, 0.5, 0.5]}
        made = comparison(scores, split_rows=[[50, 50]] * 3)
        assert made.differences()[0]["clear"] is clear
        assert "tested on 50% of the rows" in made.to_markdown()


def test_differences_that_are_all_the_same_leave_the_spread_unknown():
    made = comparison({"a": [0.9, 0.8], "b": [0.8, 0.7]})  # in floats, 0.9 - 0.8 is not 0.8 - 0.7
    only = made.differences()[0]
    assert (only["sd"], only["clear"], only["near"]) == (0.0, None, False)
    assert "a is best" not in made.conclusion()
    assert "the spread is unknown" in made.conclusion()
    made = comparison({"a": [0.9, 0.8], "b": [0.9, 0.8]})
    assert made.differences()[0]["near"] is True
    assert "b is within one standard deviation" in made.conclusion()


def test_what_is_clearly_behind_is_never_also_near():
    """With 10 seeds on test rows of one's own, 2.262 / sqrt(10) = 0.715 standard deviations are clear."""
    values = [0.5 + 0.01 * (0.8 + (1 if seed % 2 else -1) * 0.9487) for seed in range(10)]
    made = comparison({"a": values, "random": [0.5] * 10}, test={"rows": 30}, split_rows=[])
    only = made.differences()[0]
    assert (only["within_sd"], only["clear"], only["near"]) == (True, True, False)
    assert "≈" not in repr(made)
    assert "a is best" in made.conclusion()
    assert "not shown" not in made.conclusion()


def test_best_is_said_only_where_every_difference_is_clear():
    made = comparison({"a": [0.9, 0.9, 0.9], "b": [0.8, 0.801, 0.799], "c": [0.70, 0.79, 0.78]})
    assert [d["clear"] for d in made.differences()] == [True, False]
    assert "a has the best mean (accuracy 0.900), ahead of c" in made.conclusion()


def test_less_is_better_for_errors():
    made = comparison({"a": [2.0, 2.2], "b": [1000.0, 1100.0]}, metric="rmse")
    assert made.best() == "a"
    assert made.differences()[0]["ahead"] == pytest.approx((998 + 1097.8) / 2)
    assert "lower is better" in made.to_markdown()
    assert "1,050" in made.to_markdown()


def test_a_method_that_failed_somewhere_is_told_of_and_never_best():
    made = comparison({"a": [0.9, None, None], "b": [0.5, 0.6, 0.7], "c": [None, None, None]})
    assert made.best() == "b"
    assert row(made, "a")["runs"] == 1
    assert row(made, "c")["mean"] is None
    for text in (repr(made), made.to_markdown(), made._repr_html_()):
        assert "0.900 (1 of 3)" in text
        assert "failed" in text
    assert made._repr_html_().count("&lt;good&gt;") == 2
    assert "<good>" not in made._repr_html_()
    assert made.to_markdown().count("c failed at k = 2: ValueError: no <good>") == 1


def test_one_run_cannot_tell():
    made = comparison({"a": [0.9], "b": [0.1]})
    assert row(made, "a")["sd"] is None
    assert row(made, "a")["stability"] is None
    assert made.differences()[0]["within_sd"] is None
    assert "one run cannot tell" in made.conclusion()


def test_equal_scores_of_one_run_are_level():
    assert (
        "k = 2: a and b are level (accuracy 0.900), but"
        in comparison({"a": [0.9], "b": [0.9], "c": [0.8]}).conclusion()
    )


def test_of_several_k_one_must_be_named():
    made = comparison({"a": [0.9], "b": [0.1]}, k=[1, 2])
    with pytest.raises(ValueError, match="k: give one of 1, 2"):
        made.best()


def test_the_reason_of_a_failure_and_an_undefined_metric_are_said():
    made = comparison({"a": [0.5, 0.6], "b": [0.4, None]}, metric="auc")
    assert "b failed at k = 2: ValueError: no <good>|bad" in repr(made)
    cells = [
        ComparisonRun(c.method, 2, c.seed, c.features, {"auc": None, "accuracy": 0.5}) for c in made.cells
    ]
    made = Comparison(cells, made.settings, {})
    for text in (repr(made), made.to_markdown(), made._repr_html_()):
        assert "undefined" in text
        assert "AUC is undefined on test rows of seed 0, 1 (one class only)" in text
        assert "k = 2: AUC is undefined in every run." in text


def test_random_features_that_come_near_are_pointed_out():
    made = comparison({"a": [0.7, 0.9, 0.8], "random": [0.8, 0.7, 0.8]})
    assert "it is not shown that choosing helps" in made.conclusion()
    made = comparison({"a": [0.95, 0.96, 0.95], "random": [0.5, 0.5, 0.51]})
    assert "it is not shown that choosing helps" not in made.conclusion()


def test_nothing_went_well():
    made = comparison({"a": [None], "b": [None]})
    assert made.best() is None
    assert made.differences() == []
    assert "no method got to a result" in made.conclusion()
    repr(made), made._repr_html_(), made.to_markdown()


def test_what_is_missing_is_counted():
    made = comparison({"a": [0.5, 0.6], "b": [0.5]})
    assert made.missing == 1
    assert "interrupted: 3 of 4 runs were made" in made.to_markdown()
    assert comparison({"a": [0.5], "b": [0.5]}).missing == 0


def test_saved_and_loaded_it_is_the_same(tmp_path):
    made = comparison({"a": [0.5, 0.75], "b": [0.1, None]})
    made.save(tmp_path / "c.json")
    again = Comparison.load(tmp_path / "c.json")
    assert again.table() == made.table()
    assert again.settings == made.settings
    assert [path.name for path in tmp_path.iterdir()] == ["c.json"]


@pytest.mark.parametrize(
    "damage",
    [
        lambda raw: raw.pop("cells"),
        lambda raw: raw.update(format=99),
        lambda raw: raw["cells"][0].update(k="2"),
        lambda raw: raw["cells"][0].update(metrics={"accuracy": "high"}),
        lambda raw: raw["cells"][0].update(surprise=1),
        lambda raw: raw["cells"][0].update(features="abc"),
        lambda raw: raw.update(settings=[]),
        lambda raw: raw["settings"].pop("test"),
        lambda raw: raw["settings"].update(split_rows=[[0, 20]]),
    ],
)
def test_a_damaged_file_is_refused_in_one_sentence(damage, tmp_path):
    raw = comparison({"a": [0.5, 0.6], "b": [0.4, 0.5]}).to_dict()
    damage(raw)
    (tmp_path / "c.json").write_text(json.dumps(raw))
    with pytest.raises(ValueError, match=r"c\.json: not a saved comparison"):
        Comparison.load(tmp_path / "c.json")


def test_a_frame_has_the_rows_of_the_table():
    made = comparison({"a": [0.5, 0.6], "b": [0.4, 0.5]})
    assert made.to_frame()["mean"].tolist() == [row["mean"] for row in made.table()]


def test_another_metric_is_asked_for_by_name():
    made = comparison({"a": [0.5, 0.6]})
    assert made.by("accuracy").table() == made.table()
    with pytest.raises(ValueError, match="metric: unknown 'auc'; use one of accuracy"):
        made.by("auc")


def test_the_chart_names_every_method_and_is_the_same_each_time():
    one = comparison({"sequential_attention": [0.5, 0.6], "b": [0.4, 0.5], "random": [0.1, 0.2]})
    cells = [*one.cells, *(ComparisonRun(c.method, 8, c.seed, c.features, c.metrics) for c in one.cells)]
    cells += [
        ComparisonRun("all", 10, 0, [], {"accuracy": 0.9}),
        ComparisonRun("all", 10, 1, [], {"accuracy": 0.8}),
    ]
    settings = one.settings | {"k": [2, 8], "methods": [*one.settings["methods"], "all"]}
    several = Comparison(cells, settings, {})
    for made in (one, several):
        drawn = made.to_svg()
        assert all(name in drawn for name in ("sequential_attention", "b", "random", "accuracy"))
        assert drawn == made.to_svg()
    assert "all 10" in several.to_svg()


def test_a_chart_goes_onto_axes_of_ones_own():
    from matplotlib.figure import Figure

    axes = Figure().subplots()
    assert comparison({"a": [0.5, 0.6]}).plot(axes) is axes


def test_labels_keep_their_order_and_their_distance():
    places = _spread_out([0.1, 0.5, 0.51, 0.52, 0.9], 0.1)
    assert places[0] == pytest.approx(0.1)
    assert places[-1] == pytest.approx(0.9)
    assert places[1:4] == pytest.approx([0.41, 0.51, 0.61])
