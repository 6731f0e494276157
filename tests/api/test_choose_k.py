"""``k="auto"``: as many features as are needed, or none, judged on rows that chose none of them."""

from __future__ import annotations

import json
import warnings
from itertools import product

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
import torch
from experiments.planted_problems import make_problem
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from tests.support.problems import linear_problem

import seqatt
from seqatt.api import choose_k
from seqatt.api.choose_k import choose_size, first_sizes
from seqatt.api.confidence.folds import balance_classes, divide_rows
from seqatt.data.tables.table_data import read_table_data
from seqatt.losses.table import LOSSES

FAST = {"epochs": 40}


def curve(means, errors=0.01, **others):
    given = {
        "sizes": list(range(1, len(means) + 1)),
        "means": means,
        "standard_errors": [errors] * len(means),
    }
    return given | {"folds": 3, "no_features": 0.5, "all_features": 0.9} | others


@pytest.fixture(scope="module")
def chosen():
    X, y = linear_problem("binary")
    return seqatt.select(pd.DataFrame(X).add_prefix("c"), y, "auto", max_k=6, **FAST)


@pytest.fixture(scope="module")
def nothing():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(200, 6))).add_prefix("c")
    return X, seqatt.select(X, rng.normal(size=200), "auto", task="regression", **FAST)


@pytest.mark.parametrize("task", ["binary", "multiclass", "multilabel", "regression", "multi-output"])
def test_both_features_of_a_linear_problem_are_selected_and_no_other(task):
    X, y = linear_problem(task)
    assert sorted(seqatt.select(X, y, "auto").indices.tolist()) == [1, 4]


@pytest.mark.parametrize(("kind", "seed"), [("exact copies", 1), ("xor", 1), ("suppressor", 2)])
def test_the_number_found_is_within_one_of_the_planted_number(kind, seed):
    problem = make_problem(kind, seed)
    selection = seqatt.select(problem.X, problem.y, "auto", max_k=8, task=problem.task, seed=seed)
    assert abs(len(selection.features) - problem.k) <= 1


@pytest.mark.exhaustive
@pytest.mark.slow
def test_the_number_found_is_within_one_of_the_planted_number_in_four_of_five_problems():
    kinds, near = ("linear", "near copies", "exact copies", "xor", "suppressor", "monotone"), []
    for kind, seed in product(kinds, (1, 2)):
        problem = make_problem(kind, seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            selection = seqatt.select(problem.X, problem.y, "auto", task=problem.task, seed=seed)
        near.append(abs(len(selection.features) - problem.k) <= 1)
    assert np.mean(near) >= 0.8


def test_the_features_are_those_of_a_selection_of_the_number_found(chosen):
    X, y = linear_problem("binary")
    fixed = seqatt.select(pd.DataFrame(X).add_prefix("c"), y, len(chosen.features), **FAST)
    assert fixed.features == chosen.features
    np.testing.assert_array_equal(fixed.ranking, chosen.ranking)
    assert fixed.curve is None


def test_the_curve_has_rising_sizes_from_one_to_max_k_and_lines_to_compare_with(chosen):
    curve = chosen.curve
    assert curve["sizes"][0] == 1
    assert curve["sizes"][-1] == chosen.settings["max_k"] == 6
    assert curve["chosen"] == chosen.settings["k"] == len(chosen.features)
    assert curve["metric"] == "auc"
    best = max(curve["means"])
    assert curve["no_features"] == 0.5 < curve["random_features"] + 0.2 < best
    assert chosen.timings["choose"] > 0


def test_the_curve_is_saved_and_loaded_and_a_changed_one_is_refused(chosen, tmp_path):
    chosen.save(tmp_path / "selection.json")
    assert seqatt.Selection.load(tmp_path / "selection.json").curve == chosen.curve
    raw = json.loads((tmp_path / "selection.json").read_text())
    changes = (
        {"sizes": [2, 1]},
        {"means": []},
        {"chosen": 3},
        {"metric": 1},
        {"all_features": "high"},
        {"folds": None},
    )
    for change in changes:
        (tmp_path / "changed.json").write_text(json.dumps(raw | {"curve": raw["curve"] | change}))
        with pytest.raises(ValueError, match="'curve'"):
            seqatt.Selection.load(tmp_path / "changed.json")


def test_a_file_of_an_earlier_version_has_no_curve(chosen, tmp_path):
    raw = chosen.to_dict()
    del raw["curve"]
    (tmp_path / "selection.json").write_text(json.dumps(raw))
    assert seqatt.Selection.load(tmp_path / "selection.json").curve is None


def test_the_standard_error_of_noise_is_corrected_for_folds_that_share_training_rows():
    """Differences that 1 in 15 tables of noise has by chance (2.5 standard errors of independent rows) are nothing."""
    assert choose_size(curve([0.525, 0.52]), "one_standard_error") == 0
    assert (
        choose_size(curve([0.525, 0.52], folds=1000), "one_standard_error") == 0
    )  # nearly all rows are shared
    assert choose_size(curve([0.54, 0.52]), "one_standard_error") == 1


def with_rare_class(seed, rows, rare, shift=0.0):
    """Columns of noise; ``shift`` is what a row of the rare class adds to the first of them."""
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.arange(rows) < rare).astype(int)
    X = rng.normal(size=(rows, 10))
    X[:, 0] += shift * y
    return X, y


@pytest.mark.filterwarnings("ignore:k")
@pytest.mark.parametrize("rare", [3, 5, 10])
def test_noise_whose_target_has_a_rare_class_gives_an_empty_selection(rare):
    """The standard error that few rows suggest may be much too small: half of these tables had features, at 3 rows."""
    found = [
        seqatt.select(*with_rare_class(seed, 150, rare), "auto", method="f_test").features
        for seed in range(12)
    ]
    assert sum(map(bool, found)) <= 1


@pytest.mark.parametrize("method", ["f_test", "sequential_attention"])
def test_a_feature_that_tells_a_rare_class_apart_is_found(method):
    selection = seqatt.select(*with_rare_class(0, 200, 6, shift=4.0), "auto", method=method)
    assert "x0" in selection.features


def rare_positives(seed, rows=5000, odds=-5.0):
    """Of twenty columns, x4 and x7 decide how likely a row is positive: about 4 % of the rows are."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, 20))
    return X, (rng.random(rows) < 1 / (1 + np.exp(-(1.5 * X[:, 4] + X[:, 7] + odds)))).astype(int)


def test_where_few_rows_are_positive_no_noise_is_selected():
    """Networks without class weights fit the positive rows by all twenty."""
    for seed in range(2):
        features = seqatt.select(*rare_positives(seed, 20_000, -7.0), k="auto").features
        assert "x4" in features
        assert set(features) <= {"x4", "x7"}


def test_a_loss_of_the_users_gets_no_weights():
    X, y = rare_positives(0, 600, -3.5)
    selection = seqatt.select(X[:, :8], y, k="auto", max_k=3, loss=mean_loss, epochs=20)
    assert selection.curve["metric"] == "auc"


def mean_loss(outputs, targets):
    return torch.nn.functional.binary_cross_entropy_with_logits(outputs, targets)


def test_row_weights_are_kept_where_classes_are_unequal():
    data = read_table_data(*rare_positives(0), sample_weight=np.arange(1, 5001))
    assert balance_classes(data) is data
    data = read_table_data(*rare_positives(0))
    balanced = balance_classes(data)
    positive = data.target.codes == 1
    assert balanced.weights[positive].sum() == pytest.approx(balanced.weights[~positive].sum())
    nearly_equal = read_table_data(*rare_positives(0, odds=-1.0))
    assert balance_classes(nearly_equal) is nearly_equal


@pytest.mark.parametrize("rare", [1, 2, 3, 4])
def test_a_class_of_a_few_rows_is_no_error_but_a_warning_where_nothing_can_be_found(rare):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert seqatt.select(*with_rare_class(1, 150, rare), "auto", method="f_test").features == []
    about = [
        str(warning.message)
        for warning in caught
        if "cannot tell features from noise" in str(warning.message)
    ]
    assert len(about) == (rare < 4)
    assert all("class 1 has here; a number as k" in message for message in about)


@pytest.mark.parametrize("classes", [(90, 60), (146, 4), (142, 8), (75, 63, 12), (75, 73, 2)])
def test_every_fold_has_its_share_of_every_class(classes):
    rng = np.random.default_rng(0)
    y = rng.permutation(np.repeat(np.arange(len(classes)), classes))
    data = read_table_data(rng.normal(size=(150, 2)), y)
    for seed in range(20):
        counts = np.array([np.bincount(y[rows], minlength=len(classes)) for rows in divide_rows(data, seed)])
        assert (counts.sum(1) == 50).all()
        assert (np.ptp(counts, axis=0) <= 4).all()
        rare = np.array(classes) < 12
        assert (np.ptp(counts[:, rare], axis=0) <= 1).all()


@pytest.mark.parametrize("positive", [1, 3, 40])
def test_the_standard_error_of_noise_is_that_of_random_outputs(positive):
    rng, label = np.random.default_rng(0), (np.arange(80) < positive).astype(float)[:, None]
    drawn = [LOSSES["binary"].score(rng.normal(size=(80, 1)), label).mean for _ in range(1000)]
    assert LOSSES["binary"].noise_error(label) == pytest.approx(np.std(drawn), rel=0.08)


def test_noise_gives_an_empty_selection_that_says_so(nothing, tmp_path):
    _, selection = nothing
    assert selection.features == []
    assert not selection.support.any()
    assert sorted(selection.ranking.tolist()) == [1, 2, 3, 4, 5, 6]
    assert "no number of features does better than none" in repr(selection)
    selection.save(tmp_path / "selection.json")
    assert seqatt.Selection.load(tmp_path / "selection.json").features == []


def test_an_empty_selection_can_be_neither_used_nor_evaluated_and_the_error_says_what_to_do(nothing):
    X, selection = nothing
    with pytest.raises(ValueError, match=r"no features.*number as k"):
        selection.transform(X)
    with pytest.raises(ValueError, match=r"indices: .*no features.*number as k"):
        seqatt.evaluate(X, X["c0"] > 0, X, X["c0"] > 0, selection, seeds=[0])


def test_a_selector_that_selected_nothing_says_so_when_it_is_used(nothing):
    X, _ = nothing
    noise = np.random.default_rng(0).normal(size=len(X))
    selector = seqatt.SequentialAttentionSelector("auto", task="regression", **FAST).fit(X, noise)
    for table in (X, X.to_numpy()):
        with pytest.raises(ValueError, match="n_features_to_select: 'auto' selected no features"):
            selector.transform(table)


def test_a_run_that_is_resumed_chooses_the_same_number(tmp_path):
    X, y = linear_problem("binary")
    pd.DataFrame(X).add_prefix("c").assign(y=y).to_csv(tmp_path / "table.csv", index=False)
    options = {"target": "y", "checkpoint": tmp_path / "checkpoint", **FAST}
    first = seqatt.select(tmp_path / "table.csv", k="auto", **options)
    again = seqatt.select(tmp_path / "table.csv", k="auto", resume=True, **options)
    assert again.curve == first.curve
    assert again.features == first.features


@pytest.mark.parametrize("method", ["sequential_attention", "cmim"])
@pytest.mark.usefixtures("few_steps")
def test_files_that_are_read_batch_by_batch_have_k_chosen_on_their_schema_sample(tmp_path, method):
    X, y = linear_problem("binary", rows=600)
    frame = pd.DataFrame(X).add_prefix("c").assign(town=np.arange(600) % 30, y=y)
    frame.astype({"town": str}).to_csv(tmp_path / "table.csv", index=False)
    options = {"target": "y", "memory": 0, "schema_rows": 300, "method": method}
    selection = seqatt.select(tmp_path / "table.csv", k="auto", **options)
    assert selection.settings["reading"] == "batches"
    assert selection.curve["rows"] == 300 < selection.settings["rows"]
    assert sorted(selection.features) == ["c1", "c4"]


@pytest.mark.usefixtures("few_steps")
def test_passes_over_files_are_no_passes_over_the_sample(tmp_path):
    X, y = linear_problem("binary", rows=600)
    pd.DataFrame(X).add_prefix("c").assign(y=y).to_csv(tmp_path / "table.csv", index=False)
    options = {"k": "auto", "target": "y", "memory": 0}
    once = seqatt.select(tmp_path / "table.csv", epochs=1, batch_size=32, **options)
    assert once.curve == seqatt.select(tmp_path / "table.csv", **options).curve


@pytest.mark.usefixtures("few_steps")
@pytest.mark.parametrize("method", ["sequential_attention", "f_test"])
def test_a_sparse_table_that_is_not_made_dense_has_k_chosen_on_a_sample_of_rows(monkeypatch, method):
    X, y = linear_problem("binary", rows=600)
    sparse = scipy.sparse.csr_array(X * (np.random.default_rng(0).random(X.shape) < 0.7))
    monkeypatch.setattr("seqatt.data.tables.encoding.DENSE_CELLS", 0)
    monkeypatch.setattr("seqatt.api.confidence.sample.SAMPLE_CELLS", 400 * X.shape[1])
    selection = seqatt.select(sparse, y, "auto", method=method, max_k=4)
    assert selection.curve["rows"] == 400
    assert sorted(selection.indices.tolist()) == [1, 4]


def test_the_rows_that_score_a_number_neither_select_nor_train(monkeypatch):
    X, y = linear_problem("regression", rows=120)
    seen = []
    order_features = choose_k._order_features

    def record(method, request, fold, number):
        (block,) = fold.reading.test()
        seen.append((fold.rows, fold.train.columns, block.columns))
        return order_features(method, request, fold, number)

    monkeypatch.setattr(choose_k, "_order_features", record)
    seqatt.select(X, y, "auto", **FAST)
    assert sorted(np.concatenate([rows for rows, _, _ in seen]).tolist()) == list(range(120))
    for rows, trained, scored in seen:
        assert len(rows) + len(trained) == 120
        assert not {row.tobytes() for row in trained} & {row.tobytes() for row in scored}


def test_the_same_seed_gives_the_same_curve_and_seeds_together_the_same_as_alone(chosen):
    X, y = linear_problem("binary")
    X = pd.DataFrame(X).add_prefix("c")
    again = seqatt.select_trials(X, y, "auto", seeds=[0, 1], max_k=6, **FAST)
    assert again[0].curve == chosen.curve
    assert again[0].features == chosen.features
    assert again[1].seed == 1


def test_a_method_with_a_nested_order_chooses_from_its_own():
    X, y = linear_problem("regression")
    selection = seqatt.select(X, y, "auto", method="f_test")
    assert sorted(selection.indices.tolist()) == [1, 4]


def test_the_selector_and_a_pipeline_take_auto():
    X, y = linear_problem("binary")
    selector = seqatt.SequentialAttentionSelector("auto", max_k=4, k_rule="best", **FAST).fit(X, y)
    assert 2 <= selector.transform(X).shape[1] <= 4
    assert selector.selection_.settings["k_rule"] == "best"
    other = seqatt.FeatureSelector("auto", method="f_test", options={"max_k": 3}).fit(X, y)
    assert other.transform(X).shape[1] == 2


def test_a_grid_search_tries_rules_and_a_clone_keeps_them():
    X, y = linear_problem("binary", rows=300)
    pipeline = make_pipeline(seqatt.FeatureSelector("auto", method="f_test"), LogisticRegression())
    rules = [{"k_rule": "best"}, {"k_rule": 0.95, "max_k": 2}]
    search = GridSearchCV(pipeline, {"featureselector__options": rules}, cv=2).fit(X, y)
    assert search.best_score_ > 0.8
    selector = seqatt.SequentialAttentionSelector("auto", k_rule=0.95, max_k=2)
    assert clone(selector).get_params() == selector.get_params()


@pytest.mark.parametrize(
    ("k", "options", "message"),
    [
        ("automatic", {}, r"k: must be a whole number, a fraction or 'auto', got 'automatic'"),
        (3, {"max_k": 4}, r"max_k: is for k='auto', got k=3; use k='auto' or leave max_k out"),
        (3, {"k_rule": "best"}, "k_rule: is for k='auto'"),
        ("auto", {"k_rule": 1.5}, r"k_rule: must be 'one_standard_error', 'best' or a share .* got 1.5"),
        ("auto", {"k_rule": "worst"}, "k_rule: must be .* got 'worst'"),
        ("auto", {"max_k": 0}, "max_k: must be a whole number of at least 1"),
        (
            "auto",
            {"method": "lassonet"},
            "k: 'auto' needs a method .* use a number, or one of sequential_attention",
        ),
    ],
)
def test_an_error_names_the_argument_what_was_wrong_and_what_to_do(k, options, message):
    X, y = linear_problem("binary")
    with pytest.raises((TypeError, ValueError), match=message):
        seqatt.select(X, y, k, **options)


def test_too_few_rows_are_refused():
    X, y = linear_problem("binary", rows=60)
    with pytest.raises(ValueError, match=r"k: 'auto' needs at least 90 rows, got 60: .*; use a number"):
        seqatt.select(X, y, "auto")


def test_the_rules_take_the_smallest_size_that_is_good_enough():
    means = [0.6, 0.8, 0.894, 0.9, 0.85]
    assert choose_size(curve(means), "one_standard_error") == 3
    assert choose_size(curve(means), "best") == 4
    assert choose_size(curve(means), 0.7) == 2
    assert choose_size(curve(means, all_features=2.0), 0.9) == 4  # none reaches it: the best
    assert choose_size(curve(means, 1e-9), "one_standard_error") == 4
    assert (
        choose_size(curve([0.6, 0.8, 0.898, 0.9], 1e-9), "one_standard_error") == 3
    )  # less than 1 % of the gain
    assert (
        choose_size(curve([0.51, 0.53]), "best") == 0
    )  # less than two standard errors, corrected, above none
    assert choose_size(curve([0.51, 0.533]), "best") == 2


@pytest.mark.parametrize("max_k", [1, 2, 3, 4, 5, 7, 12, 50, 200])
def test_sizes_rise_from_one_to_max_k_in_about_ten_steps(max_k):
    sizes = first_sizes(max_k)
    assert sizes[0] == 1
    assert sizes[-1] == max_k
    assert sizes == sorted(set(sizes))
    assert len(sizes) <= 14


def test_scores_are_those_of_scikit_learn():
    from sklearn.metrics import r2_score, roc_auc_score

    rng = np.random.default_rng(0)
    outputs, label = rng.normal(size=(200, 1)).round(1), rng.integers(0, 2, (200, 1))
    auc = LOSSES["binary"].score(outputs, label)._asdict()
    assert auc["mean"] == pytest.approx(roc_auc_score(label, outputs))
    draws = []
    for _ in range(300):
        rows = rng.integers(0, 200, 200)
        draws.append(LOSSES["binary"].score(outputs[rows], label[rows]).mean)
    assert auc["standard_error"] == pytest.approx(np.std(draws), rel=0.15)
    target = rng.normal(size=(200, 2))
    predicted = target + rng.normal(size=(200, 2))
    assert LOSSES["regression"].score(predicted, target).mean == pytest.approx(r2_score(target, predicted))


def test_a_max_k_above_the_number_of_features_is_that_number():
    X, y = linear_problem("binary")
    assert seqatt.select(X, y, "auto", max_k=50, method="f_test").settings["max_k"] == 8
