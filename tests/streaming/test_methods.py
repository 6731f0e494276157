"""The methods that run on files: each finds the relevant features, reproducibly, as in memory where it can."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pandas as pd
import pytest
import torch

import seqatt
from seqatt.algorithms.filters.binning import bin_values
from seqatt.data.files.file_data import read_file_data
from seqatt.datasets.synthetic import click_log
from seqatt.distributed.process_group import SINGLE_PROCESS
from seqatt.linear import Gram
from seqatt.streaming.allreduce import RankMeans
from seqatt.streaming.gates import EmbeddingGroupLasso, SharedScaleAttention
from seqatt.streaming.options import STREAMED_OPTIONS, StreamAttentionOptions
from seqatt.streaming.sums import cmim
from seqatt.streaming.sums.category_products import category_products
from seqatt.streaming.trained_methods import STREAMED_METHODS
from seqatt.streaming.trial import StreamTrial
from seqatt.training.loaders.batch import Batch
from seqatt.training.feature_columns import FeatureColumns
from seqatt.training.gates.masks import SoftmaxMask
from seqatt.training.selection_state import SelectionState

TRAINED = ("sequential_attention", "sequential_lasso", "group_lasso", "batch_attention")


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    n = 6_000
    frame = pd.DataFrame({f"n{i}": rng.normal(size=n).round(3) for i in range(4)})
    frame["good"] = np.array(list("abcd"))[rng.integers(4, size=n)]
    frame["noise"] = np.char.add("v", rng.integers(40, size=n).astype(str))
    frame["still"] = 1.0
    effect = frame["good"].map(dict(zip("abcd", [2.5, -2.0, 2.0, -2.5], strict=True)))
    odds = 2.0 * frame["n3"] + effect + 1.5 * frame["n1"]
    frame["click"] = (odds + rng.logistic(size=n) > 0).astype(int)
    frame.loc[rng.random(n) < 0.2, "n0"] = np.nan
    frame.loc[rng.random(n) < 0.05, "good"] = None
    return frame


@pytest.fixture(scope="module")
def path(frame, tmp_path_factory):
    path = tmp_path_factory.mktemp("files") / "a.parquet"
    frame.to_parquet(path, index=False, row_group_size=1_500)
    return path


@pytest.mark.parametrize("method", list(STREAMED_OPTIONS))
def test_every_method_finds_the_relevant_features_and_is_reproducible(method, path):
    options = {"hidden": (32,), "batch_size": 32} if method in TRAINED else {}
    one, again = (
        seqatt.select(path, target="click", k=4, method=method, seed=1, **options) for _ in range(2)
    )
    assert set(one.features[:3]) == {"n1", "n3", "good"}
    assert len(set(one.features)) == 4
    assert sorted(one.ranking) == list(range(1, 8))
    assert one.ranking[one.names.index("still")] == 7
    assert one.method == method
    assert one.settings["rows"] == 6_000
    assert one.features == again.features
    assert one.scores.tolist() == again.scores.tolist()


def test_cmim_on_files_selects_what_it_selects_in_memory(frame, path):
    X, y = frame.drop(columns="click"), frame["click"]
    for options in ({}, {"missing_indicator": True, "bins": 5}, {"lazy": False, "max_categories": 3}):
        in_memory = seqatt.select(X, y, k=4, method="cmim", **options)
        on_files = seqatt.select(path, target="click", k=4, method="cmim", schema_rows=6_000, **options)
        assert on_files.features == in_memory.features
        assert on_files.scores == pytest.approx(in_memory.scores, rel=1e-9)


def test_cmim_on_files_weights_rows_as_in_memory(frame, tmp_path):
    weights = np.random.default_rng(3).integers(0, 4, size=len(frame)).astype(float)
    frame.assign(w=weights).to_parquet(tmp_path / "a.parquet")
    X, y = frame.drop(columns="click"), frame["click"]
    in_memory = seqatt.select(X, y, k=4, method="cmim", sample_weight=weights)
    on_files = seqatt.select(
        tmp_path / "a.parquet", target="click", k=4, method="cmim", sample_weight="w", schema_rows=6_000
    )
    assert on_files.features == in_memory.features
    assert on_files.scores == pytest.approx(in_memory.scores, rel=1e-3)


def test_rows_of_weight_zero_are_counted_and_change_nothing(frame, tmp_path):
    frame.assign(w=np.arange(len(frame)) // 2_000).to_parquet(tmp_path / "a.parquet")
    options = {"target": "click", "k": 4, "method": "linear_omp", "sample_weight": "w"}
    on_files = seqatt.select(tmp_path, **options, schema_rows=6_000)
    X, y = frame.drop(columns="click"), frame["click"]
    in_memory = seqatt.select(X, y, 4, method="linear_omp", sample_weight=np.arange(len(frame)) // 2_000)
    assert on_files.features == in_memory.features
    assert on_files.settings["rows"] == len(frame)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("widths", [[], [3, 1, 4]])
def test_products_with_categories_are_those_of_their_one_hot_columns(weighted, widths):
    rng = np.random.default_rng(0)
    n = 700
    numbers, targets = rng.normal(5, 2, size=(n, 3)), rng.normal(size=(n, 2))
    indicators = [rng.integers(-1, width, size=n) for width in widths]
    weights = rng.integers(0, 4, size=n).astype(float) if weighted else np.full(n, 2.0)
    one_hot = [
        (indicator[:, None] == np.arange(width)).astype(float)
        for indicator, width in zip(indicators, widths, strict=True)
    ]
    expected = Gram.of(np.concatenate([numbers, *one_hot], axis=1), targets, weights)
    gram = Gram()
    for rows in np.array_split(np.arange(n), 3):
        batch = [indicator[rows] for indicator in indicators]
        products = category_products(numbers[rows], batch, widths, targets[rows], weights[rows])
        gram.join(len(rows), *products, 2)
    assert (gram.rows, gram.weight) == (n, expected.weight)
    np.testing.assert_allclose(gram.means[0], expected.means[0], rtol=1e-12)
    for centre in (True, False):
        ours, theirs = gram.normal(centre=centre), expected.normal(centre=centre)
        np.testing.assert_allclose(ours.square, theirs.square, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(ours.cross, theirs.cross, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(ours.target_squares, theirs.target_squares, rtol=1e-9)


def test_joint_tables_give_the_mutual_information_of_brute_force():
    """``I(Y; X | Z)`` summed over every triple of values, for weighted rows added in several blocks."""
    rng = np.random.default_rng(0)
    widths, classes, n = [3, 4, 2], 3, 900
    codes = np.stack([rng.integers(w, size=n) for w in widths])
    labels = (codes[0] + codes[1] + (rng.random(n) < 0.3)) % classes
    weights = rng.integers(1, 4, size=n).astype(np.float32)
    tables = cmim.JointTables(widths, classes)
    for rows in np.array_split(np.arange(n), 4):
        tables.add(codes[:, rows], labels[rows], weights[rows])

    def share(*conditions):
        return np.sum(weights[np.logical_and.reduce(conditions)], dtype=float) / weights.sum(dtype=float)

    for x, z in [*combinations(range(3), 2), *((b, a) for a, b in combinations(range(3), 2))]:
        expected = 0.0
        for i in range(widths[x]):
            for j in range(widths[z]):
                for c in range(classes):
                    X, Z, Y = codes[x] == i, codes[z] == j, labels == c
                    if p := share(X, Y, Z):
                        expected += p * np.log(p * share(Z) / (share(X, Z) * share(Y, Z)))
        assert tables.information(x, z)[0] == pytest.approx(expected, abs=1e-12)


def test_a_numeric_target_is_binned_by_the_schema_sample(frame, path):
    selection = seqatt.select(path, target="n3", k=1, method="cmim", bins=4)
    codes = bin_values(frame["n3"].to_numpy(), 4)
    assert selection.features == ["click"]
    assert selection.settings["task"] == "regression"
    assert selection.settings["bins"] == 4
    joint = np.histogram2d(codes, frame["click"], bins=(4, 2))[0] / len(frame)
    independent = joint.sum(1, keepdims=True) * joint.sum(0)
    information = (joint * np.log(joint / independent)).sum()
    assert selection.scores[0] == pytest.approx(information, rel=0.01)


def test_more_pairs_of_values_than_fit_in_memory_are_refused(path, monkeypatch):
    monkeypatch.setattr(cmim, "MAX_CELLS", 100)
    with pytest.raises(ValueError, match="use fewer bins, a smaller max_categories, or ignore some columns"):
        seqatt.select(path, target="click", k=2, method="cmim")


@pytest.mark.parametrize(
    ("method", "options", "message"),
    [
        ("group_lasso", {"penalty": -1}, "penalty: must be a number at least 0"),
        ("group_lasso", {"warmup": 0.5}, "group_lasso on files has no option 'warmup'"),
        ("batch_attention", {"attention_width": 0}, "attention_width: must be a whole number"),
        ("cmim", {"bins": 1}, "bins: must be a whole number of at least 2"),
        ("cmim", {"lazy": 1}, "lazy: must be True or False"),
        ("linear_attention", {"parameterisation": "odd"}, "parameterisation: unknown 'odd'"),
        ("greedy", {}, "method: 'greedy' does not run on files"),
    ],
)
def test_invalid_options_are_refused(path, method, options, message):
    with pytest.raises((ValueError, TypeError)) as error:
        seqatt.select(path, target="click", k=2, method=method, **options)
    assert message in str(error.value)


class _FirstLayer:
    """A model with two inputs of equal weights."""

    def __init__(self) -> None:
        self.weights = torch.ones(1, 8, 2)

    def first_layer(self):
        return self.weights

    def scale_first_layer(self, factors):
        self.weights *= factors.unsqueeze(1)


def test_logits_move_in_proportion_to_their_gradients_and_half_of_them_is_carried_over():
    """Adam would move all by the same amount. The running means are reset with the phase."""
    gate = SharedScaleAttention(3, SoftmaxMask(), 1e-3, torch.device("cpu"))
    state = SelectionState(1, np.zeros(3, dtype=bool), torch.device("cpu"))
    gate.refresh(state)
    grad = torch.tensor([[-1.0, -3.0, 4.0]])
    gate.update(grad, state)
    moves = gate.logits[0].clone()
    logit_grad = SoftmaxMask().backward(grad, torch.full((1, 3), 1 / 3), gate.logits)[0]
    expected = -1e-3 * logit_grad / logit_grad.square().mean().sqrt()
    torch.testing.assert_close(moves, expected)
    assert moves[1] > 2 * moves[0] > 0 > moves[2]
    for _ in range(5):
        gate.update(grad, state)
    before = gate.logits.clone()
    gate.reset()
    torch.testing.assert_close(gate.logits, before / 2)
    gate.refresh(state)
    weights = gate.weights.clone()
    gate.update(grad, state)
    logit_grad = SoftmaxMask().backward(grad, weights, before / 2)
    expected = -1e-3 * logit_grad / logit_grad.square().mean().sqrt()
    torch.testing.assert_close(gate.logits - before / 2, expected, rtol=1e-4, atol=1e-8)


def test_large_embeddings_do_not_evade_the_penalty():
    """Weights of inputs ten times as large shrink ten times as fast and score ten times as high."""
    columns = FeatureColumns(torch.arange(2), 2)
    means = RankMeans(SINGLE_PROCESS)
    gate = EmbeddingGroupLasso(_FirstLayer(), columns, penalty=1.0, learning_rate=1e-3, means=means)
    state = SelectionState(1, np.zeros(2, dtype=bool), torch.device("cpu"))
    x = torch.tensor([1.0, 10.0]) * torch.ones(1, 16, 2)
    for _ in range(400):
        gate.observe(Batch(x, torch.zeros(16), None), state)
    before = gate.norms()[0]
    gate.update(torch.zeros(1, 2), state)
    shrinkage = before - gate.norms()[0]
    assert (shrinkage[1] / shrinkage[0]).item() == pytest.approx(10, rel=1e-3)
    assert (gate.scores()[0, 1] / gate.scores()[0, 0]).item() == pytest.approx(10, rel=0.05)


def test_selected_features_are_evaluated_on_other_files(tmp_path):
    log = click_log(tmp_path, 9_000, rows_per_file=7_000)
    train, test = log.files
    others = [f"category{i:02d}" for i in range(19, 27)]
    options = {"hidden": (16,), "log1p": True}
    good = seqatt.evaluate_files(train, test, "click", log.planted, seeds=[0, 1], **options)
    bad = seqatt.evaluate_files(train, test, "click", others, seeds=[0], **options)
    assert list(good) == ["accuracy", "auc", "log_loss"]
    assert good["auc"].shape == (2,)
    assert (good["auc"] > 0.7).all()
    assert bad["auc"][0] < 0.56
    assert good.mean["log_loss"] < bad.mean["log_loss"]
    reversed_order = seqatt.evaluate_files(train, test, "click", log.planted[::-1], seeds=[0], **options)
    assert reversed_order["auc"][0] == good["auc"][0]


@pytest.mark.parametrize("task", ["regression", "multiclass"])
def test_evaluation_supports_every_task(frame, tmp_path, task):
    table = frame.copy()
    table["y"] = 3.0 * table["n3"] + 7.0
    if task == "multiclass":
        table["y"] = pd.cut(table["n3"], 3, labels=["low", "middle", "high"]).astype(str)
    for name, part in {"train": table[:5_000], "test": table[5_000:]}.items():
        part.to_parquet(tmp_path / f"{name}.parquet")
    files = (tmp_path / "train.parquet", tmp_path / "test.parquet")
    evaluation = seqatt.evaluate_files(*files, "y", ["n3"], seeds=[0], hidden=(16,), passes=3, batch_size=32)
    assert evaluation[evaluation.metric][0] > 0.9
    if task == "regression":
        assert evaluation["rmse"][0] < 1.0


def test_test_files_need_no_weights_and_few_steps_give_a_warning(frame, tmp_path):
    frame[:1_000].assign(w=1.0).to_parquet(tmp_path / "train.parquet")
    frame[1_000:1_500].to_parquet(tmp_path / "test.parquet")
    files = (tmp_path / "train.parquet", tmp_path / "test.parquet")
    options = {"seeds": [0], "hidden": (8,), "sample_weight": "w", "embedding_dim": {"good": 2}}
    with pytest.warns(UserWarning, match="trained for about 16 steps; more passes"):
        evaluation = seqatt.evaluate_files(*files, "click", ["n3"], **options)
    assert evaluation["auc"][0] > 0.5


def test_invalid_arguments_of_evaluation_are_refused_before_any_work(frame, path, tmp_path):
    frame.drop(columns="good").to_parquet(tmp_path / "narrow.parquet")
    frame.assign(n1="text").to_parquet(tmp_path / "text.parquet")
    for arguments, options, message in [
        ((path, path, "click", ["gone"]), {}, "features: 'gone' is not a feature of the training files"),
        ((path, path, "click", []), {}, "features: at least one is needed"),
        ((path, tmp_path / "narrow.parquet", "click"), {}, "test: column 'good' is missing"),
        ((path, tmp_path / "text.parquet", "click"), {}, "test: column 'n1' holds text, but numbers"),
        ((path, path, "gone"), {}, "target: no column 'gone'"),
        ((path, path, "click"), {"k": 3}, "evaluate_files has no option 'k'"),
        ((path, path, "click"), {"seeds": []}, "seeds: at least one seed"),
    ]:
        with pytest.raises((ValueError, TypeError)) as error:
            seqatt.evaluate_files(*arguments, **options)
        assert message in str(error.value)


def test_the_size_of_the_ensemble_follows_the_number_of_rows(path):
    options = {"target": "click", "k": 3, "hidden": 8, "batch_size": 64, "log1p": True}
    four, one = seqatt.select(path, **options), seqatt.select(path, **options, ensemble=1)
    assert (four.settings["ensemble"], one.settings["ensemble"]) == (4, 1)
    assert seqatt.select(path, **options, ensemble=4).scores.tolist() == four.scores.tolist()
    assert four.scores.tolist() != one.scores.tolist()
    assert four.history[-1]["steps"] == one.history[-1]["steps"]
    assert [StreamAttentionOptions().members(rows) for rows in (0, 1e5, 6e5, 1e6, 2e6, 3e9)] == [
        4,
        4,
        2,
        2,
        1,
        1,
    ]
    assert StreamAttentionOptions(passes=10).members(1e5) == 2
    with pytest.raises(ValueError, match="ensemble: must be"):
        seqatt.select(path, **options, ensemble=0)


def test_members_of_an_ensemble_have_different_weights_and_share_one_selection_state(path):
    options = StreamAttentionOptions(hidden=(8,))
    data = read_file_data(path, "click", options, options.hash_buckets)
    trial = StreamTrial(
        data,
        5,
        options,
        torch.device("cpu"),
        STREAMED_METHODS["sequential_attention"].make_gate,
        SINGLE_PROCESS,
        64,
    )
    first = [member.network.first_layer() for member in trial.members]
    assert len({float(layer.sum()) for layer in first}) == 4
    assert len({id(member._state) for member in trial.members}) == 1
    alone = StreamTrial(
        data,
        5,
        StreamAttentionOptions(hidden=(8,), ensemble=1),
        torch.device("cpu"),
        STREAMED_METHODS["sequential_attention"].make_gate,
        SINGLE_PROCESS,
        64,
    )
    assert torch.equal(alone.members[0].network.first_layer(), first[0])


def test_the_scale_of_a_members_logits_does_not_change_its_influence(path):
    options = StreamAttentionOptions(hidden=(8,), ensemble=3)
    data = read_file_data(path, "click", options, options.hash_buckets)
    trial = StreamTrial(
        data,
        0,
        options,
        torch.device("cpu"),
        STREAMED_METHODS["sequential_attention"].make_gate,
        SINGLE_PROCESS,
        64,
    )
    all_logits = np.random.default_rng(0).normal(size=(3, data.features)).astype(np.float32)
    all_logits[1] *= 100
    for member, logits in zip(trial.members, all_logits, strict=True):
        member.gate.logits[0] = torch.from_numpy(logits)
    [taken] = trial.state.take(all_logits[:1].astype(float), 1)
    free = np.setdiff1d(np.flatnonzero(~data.constant), taken)
    mean, std = all_logits[:, free].mean(1, keepdims=True), all_logits[:, free].std(1, keepdims=True)
    expected = ((all_logits - mean) / std).mean(0)
    np.testing.assert_allclose(trial._scores()[0, free], expected[free], rtol=1e-5)
