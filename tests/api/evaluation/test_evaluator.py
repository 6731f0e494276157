"""``Evaluator``: many sets of features at once, each as ``evaluate`` does it alone."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from tests.support.problems import linear_problem

import seqatt
from seqatt.api.evaluation import evaluator, networks
from seqatt.api.evaluation.evaluator import Evaluator, FeatureSet
from seqatt.data.tables import encoding

OPTIONS = {"epochs": 3}
SETS = [FeatureSet([4, 1], [0, 3]), FeatureSet(None, [3]), FeatureSet([1, 2], [0]), FeatureSet([5], [1, 0])]


@pytest.mark.parametrize("task", ["binary", "multiclass", "regression"])
def test_sets_evaluated_together_are_those_evaluated_alone_bit_for_bit(task):
    X, y = linear_problem(task, rows=400)
    rows = X[:300], y[:300], X[300:], y[300:]
    percent: list[int] = []
    together = Evaluator(*rows, "cpu", OPTIONS).evaluate(SETS, percent.append)
    assert sum(percent) == 100
    for each, result in zip(SETS, together, strict=True):
        alone = seqatt.evaluate(*rows, each.indices, seeds=each.seeds, device="cpu", **OPTIONS)
        assert result.to_dict() == alone.to_dict()


def test_a_table_is_encoded_once(monkeypatch):
    X, y = linear_problem("binary", rows=100)
    calls = []
    encode = encoding.Encoder.encode
    monkeypatch.setattr(encoding.Encoder, "encode", lambda *args: calls.append(1) or encode(*args))
    evaluate_sets = Evaluator(X, y, X, y, "cpu", OPTIONS)
    for _ in range(2):
        evaluate_sets.evaluate(SETS, lambda percent: None)
    assert len(calls) == 2  # training rows and test rows


def test_an_error_of_one_set_does_not_affect_the_others():
    X, y = linear_problem("binary", rows=100)
    X = np.c_[X, np.ones(100)]
    constant, good = Evaluator(X, y, X, y, "cpu", OPTIONS).evaluate(
        [FeatureSet([8], [0]), FeatureSet([1], [0])], lambda percent: None
    )
    assert isinstance(constant, ValueError)
    assert "every feature is constant" in str(constant)
    assert good["accuracy"][0] > 0.5
    with pytest.raises(ValueError, match="every feature is constant"):
        seqatt.evaluate(X, y, X, y, [8], seeds=[0])


def test_what_is_wrong_with_the_rows_is_the_error_of_every_set():
    X, y = linear_problem("binary", rows=100)
    errors = Evaluator(X, y, X[:, :3], y, "cpu", OPTIONS).evaluate(SETS, lambda percent: None)
    assert len(errors) == len(SETS)
    assert all("X_test" in str(error) for error in errors)


def test_sets_that_cannot_train_together_are_evaluated_one_by_one(monkeypatch):
    X, y = linear_problem("binary", rows=100)
    monkeypatch.setattr(encoding, "DENSE_CELLS", 300)  # all columns are too large to be dense
    monkeypatch.setattr(evaluator, "evaluate_networks", lambda *_: pytest.fail("not dense"))
    percent: list[int] = []
    results = Evaluator(sp.csr_array(X), y, sp.csr_array(X), y, "cpu", OPTIONS).evaluate(SETS, percent.append)
    assert [len(result["auc"]) for result in results] == [len(each.seeds) for each in SETS]
    assert sum(percent) == 100


def test_a_training_that_diverges_is_an_error_that_says_what_to_do():
    X, y = linear_problem("regression", rows=100)
    with pytest.raises(RuntimeError, match="no longer a finite number; try a smaller learning_rate"):
        seqatt.evaluate(X, y, X, y, seeds=[0, 1], learning_rate=1e30, device="cpu")


def test_progress_moves_within_a_few_steps(monkeypatch):
    """Progress is reported every 32 steps, whatever the number of networks."""
    X, y = linear_problem("binary", rows=100)
    reports = []
    real = networks.train_networks

    def record(data, networks, training, threads, advance):
        return real(data, networks, training, 1, lambda steps: reports.append(steps) or advance(steps))

    monkeypatch.setattr(networks, "train_networks", record)
    seqatt.evaluate(X, y, X, y, [1], seeds=[0, 1], epochs=100, device="cpu")
    assert max(reports) <= 32 * 2
    assert sum(reports) == 100 * 2


def test_categories_are_those_of_the_set():
    """Embeddings are as wide as the categories of their own set ask for, and not those of another set."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"u": rng.normal(size=600)})
    X["many"] = rng.choice([f"v{i}" for i in range(30)], 600)
    X["more"] = rng.choice([f"w{i}" for i in range(200)], 600)
    y = (X["u"] + (X["many"] < "v2") > 0.5).astype(int)
    rows = X[:400], y[:400], X[400:], y[400:]
    sets = [FeatureSet(names, [0, 1]) for names in (["u", "many"], ["many", "more"], ["u"], None)]
    together = Evaluator(*rows, "cpu", OPTIONS).evaluate(sets, lambda percent: None)
    for each, result in zip(sets, together, strict=True):
        assert result.to_dict() == seqatt.evaluate(*rows, each.indices, seeds=[0, 1], **OPTIONS).to_dict()
