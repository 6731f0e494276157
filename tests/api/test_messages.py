"""Frequent mistakes get one line that names the argument and the way out."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import torch
from tests.support.problems import linear_problem
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import seqatt
from seqatt.cli.arguments import TaskName
from seqatt.data.tables.options import TASKS


class Net(nn.Module):
    """A model that makes its own sizes up."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(8, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.linear(x)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"random_state": 1}, "has no option 'random_state'; did you mean 'seed'?"),
        ({"n_features_to_select": 3}, "did you mean 'k'?"),
        ({"seeds": [0, 1]}, "select has no option 'seeds'; did you mean 'seed'? Call it once per seed"),
        ({"lr": 0.1}, "did you mean 'learning_rate'?"),
        (
            {"method": "forrest"},
            "method: unknown 'forrest'; did you mean 'forest'? Use one of sequential_att",
        ),
        ({"method": "magic"}, "method: unknown 'magic'; use one of sequential_attention, batch_attention"),
        ({"device": "gpu"}, "device: 'gpu' is not a name that PyTorch knows; use 'cuda', or 'auto'"),
        ({"device": "mps"}, "device: 'mps' is not supported; use 'auto', 'cpu', 'cuda' or 'cuda:N'"),
        ({"device": None}, "device: must be a name such as 'cuda', got None"),
        ({"device": "cuda:x"}, "device: 'cuda:x' is not supported"),
        (
            {"model": Net},
            "model: the class Net cannot be called as Net(8, 1), with the columns and the outputs; pass",
        ),
        ({"model": lambda: Net()}, "model: the function <lambda> cannot be called"),
        ({"model": nn.Embedding(8, 1)}, "not codes for an nn.Embedding; say inputs='raw' for"),
        ({"model": nn.Linear(8, 1).double()}, "its inputs are torch.float32, so call .float() on the model"),
        ({"model": nn.Linear(8, 1), "hidden": 8}, "hidden: is for the built-in network; leave it out, or"),
        ({"model": nn.Linear(8, 1), "batch_norm": True}, "batch_norm: is for the built-in network; leave"),
        ({"optimizer": torch.optim.LBFGS}, "optimizer: LBFGS computes the loss several times in a step"),
        (
            {"optimizer": lambda p: (torch.optim.Adam(p), None)},
            "optimizer: must return an optimizer of torch, got tuple",
        ),
        (
            {"loss": lambda out, y: 0.5},
            "loss: must return a tensor, a single value or one per row, got float",
        ),
        (
            {"loss": lambda out, y: ((out.detach() - y) ** 2).mean()},
            "loss: has no gradient with respect to the outputs; compute it by functions of torch",
        ),
        (
            {"quantile": 0.9},
            "quantile: is for task='quantile', got task=None; add task='quantile' or leave it",
        ),
        ({"task": "guessing"}, "use one of binary, multiclass, multilabel, regression, poisson, "),
    ],
)
def test_an_argument_that_is_wrong_says_what_would_be_right(options, message, problem):
    with pytest.raises((TypeError, ValueError)) as caught:
        seqatt.select(*problem, 2, **options)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_seeds_are_suggested_where_there_are_several(problem):
    X, y = problem
    with pytest.raises(TypeError, match="evaluate has no option 'random_state'; did you mean 'seeds'"):
        seqatt.evaluate(X, y, X, y, random_state=1)


@pytest.mark.skipif(torch.backends.cuda.is_built(), reason="needs a build without CUDA")
def test_cuda_on_a_build_without_it_is_one_clear_line(problem):
    with pytest.raises(
        ValueError, match=r"^device: 'cuda' needs a PyTorch that is built with CUDA.*use 'cpu'"
    ):
        seqatt.select(*problem, 2, device="cuda")


def test_cuda_without_a_gpu_is_one_clear_line(problem, monkeypatch):
    monkeypatch.setattr(torch.backends.cuda, "is_built", lambda: True)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(ValueError, match=r"^device: 'cuda' needs a GPU and its driver"):
        seqatt.select(*problem, 2, device="cuda")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    with pytest.raises(ValueError, match=r"^device: 'cuda:7' does not exist; the machine has 1 GPU\(s\)"):
        seqatt.select(*problem, 2, device="cuda:7")


def test_a_class_that_takes_columns_and_outputs_is_a_model(problem):
    class Sized(nn.Linear):
        pass

    assert len(seqatt.select(*problem, 2, model=Sized, epochs=1).features) == 2


def test_a_whole_float_k_suggests_the_number(problem):
    with pytest.raises(ValueError, match=r"k: a float is a fraction.*got 2\.0; use 2 for that many features"):
        seqatt.select(*problem, 2.0)


def test_a_dict_is_no_table(problem):
    X, y = problem
    with pytest.raises(TypeError, match=r"X: a dict is no table; pass pandas\.DataFrame\(X\)"):
        seqatt.select({"a": X[:, 0].tolist()}, y, 1)
    rows = [{"a": row[0], "b": row[1]} for row in X.tolist()]
    for use in (
        lambda: seqatt.select(rows, y, 1),
        lambda: seqatt.evaluate(X, y, rows, y),
        lambda: seqatt.SequentialAttentionSelector(1).fit(rows, y),
    ):
        with pytest.raises(
            TypeError, match=r"X(_test)?: a list of dicts is no table; pass pandas\.DataFrame\(X"
        ):
            use()


def test_batches_and_datasets_in_the_place_of_a_table_name_the_remedy(problem):
    X, y = map(torch.as_tensor, problem)
    rows = TensorDataset(X, y)
    with pytest.raises(TypeError, match=r"X: .*, got DataLoader; .*leave out y and target"):
        seqatt.select(DataLoader(rows), target="y", k=2)
    with pytest.raises(TypeError, match=r"X: .*, got generator; gather its rows into an array"):
        seqatt.select((batch for batch in DataLoader(rows)), k=2)
    with pytest.raises(TypeError, match=r"X: a Dataset has no batches; pass DataLoader\(X, batch_size=256\)"):
        seqatt.select(rows, y, k=2)


def test_tensors_of_any_type_and_with_a_gradient_are_tables(problem):
    X, y = map(torch.as_tensor, problem)
    expected = seqatt.select(X.bfloat16().float().numpy(), y.numpy(), k=2, method="f_test").indices
    found = seqatt.select(X.bfloat16().requires_grad_(), y, k=2, method="f_test").indices
    assert found.tolist() == expected.tolist()


def test_ragged_lists_name_the_remedy(problem):
    X, _ = problem
    with pytest.raises(
        ValueError, match=r"^y: its rows have different numbers of values.*MultiLabelBinarizer"
    ):
        seqatt.select(X, [["a"], ["a", "b"]] * 150, 2)
    with pytest.raises(ValueError, match=r"^X: its rows have different numbers of values"):
        seqatt.select([[1.0], [1.0, 2.0]], [0, 1], 1)


@pytest.mark.parametrize("container", [np.asarray, pd.DataFrame, sp.csr_matrix])
def test_complex_numbers_are_refused(container, problem):
    X, y = problem
    with pytest.raises(ValueError, match=r"X: .*complex numbers cannot be features; pass the real"):
        seqatt.select(container(X + 1j), y, 2)
    with pytest.raises(ValueError, match=r"y: complex numbers cannot be predicted; pass two columns"):
        seqatt.select(X, y + 1j, 2)


def misordered() -> tuple[pd.DataFrame, pd.Series]:
    X, y = linear_problem("binary")
    return pd.DataFrame(X), pd.Series(y).sample(frac=1, random_state=0)


def test_a_target_with_the_index_of_x_in_another_order_is_refused():
    X, y = misordered()
    message = r"^y(_train)?: has the index of X(_train)? in another order; pass y(_train)?\.loc\[X"
    for call in (
        lambda: seqatt.select(X, y, 2),
        lambda: seqatt.OMPSelector(2).fit(X, y),
        lambda: seqatt.marginal_gains(X, y),
        lambda: seqatt.evaluate(X, y, X, y.loc[X.index]),
        lambda: seqatt.compare(X, y, 2),
    ):
        with pytest.raises(ValueError, match=message):
            call()
    with pytest.raises(ValueError, match="y_test: has the index of X_test in another order"):
        seqatt.evaluate(X, y.loc[X.index], X, y)
    with pytest.raises(ValueError, match="sample_weight: has the index of X in another order"):
        seqatt.select(X, y.loc[X.index], 2, sample_weight=y.abs() + 1)


def test_a_target_with_another_index_is_used_by_position():
    X, y = misordered()
    same = seqatt.select(X, y.loc[X.index], 2, method="linear_omp").features
    assert same == [1, 4] or same == [4, 1]
    shifted = y.loc[X.index].set_axis(range(1000, 1300))
    assert seqatt.select(X, shifted, 2, method="linear_omp").features == same
    assert seqatt.select(X, y.loc[X.index].to_numpy(), 2, method="linear_omp").features == same


def test_an_unknown_column_gets_a_suggestion_or_the_list():
    X, y = linear_problem("binary")
    frame = pd.DataFrame(X, columns=["age", "income", *"cdefgh"])
    with pytest.raises(ValueError, match="ignore: no column 'incom'; did you mean 'income'"):
        seqatt.select(frame, y, 2, ignore=["incom"])
    with pytest.raises(ValueError, match="column_types: no column 'zzz'; the columns are age, income, c, d"):
        seqatt.select(frame, y, 2, column_types={"zzz": "numeric"})
    wide = pd.DataFrame(np.random.default_rng(0).normal(size=(30, 25))).add_prefix("f")
    with pytest.raises(ValueError, match=r"the columns are f0, .*f19 and 5 more$"):
        seqatt.select(wide, [0, 1] * 15, 2, ignore=["zzz"])


def test_the_list_of_options_is_complete(problem):
    with pytest.raises(TypeError) as caught:
        seqatt.select(*problem, 2, qqqq=1)
    for name in ("epochs", "mask", "groups", "column_types", "checkpoint"):
        assert name in str(caught.value)


def test_the_command_line_has_every_task():
    assert {task.value for task in TaskName} == {*TASKS, "classification"}


@pytest.mark.parametrize(
    ("task", "last", "name"),
    [
        ("multiclass", nn.Softmax(-1), "softmax"),
        ("binary", nn.Sigmoid(), "sigmoid"),
        ("multilabel", nn.Sigmoid(), "sigmoid"),
    ],
)
def test_probabilities_under_the_built_in_loss_are_noticed(task, last, name):
    X, y = linear_problem(task)
    outputs = {"multiclass": 3, "multilabel": 2, "binary": 1}[task]
    model = nn.Sequential(nn.Linear(8, outputs), last)
    with pytest.warns(
        UserWarning, match=f"model: its outputs look like probabilities.*{name} itself"
    ) as caught:
        seqatt.select(X, y, 2, model=model, epochs=2)
    assert sum("probabilities" in str(each.message) for each in caught) == 1


def test_two_softmax_outputs_for_two_classes_are_noticed(problem):
    with pytest.warns(UserWarning, match="softmax itself"):
        seqatt.select(*problem, 2, model=nn.Sequential(nn.Linear(8, 2), nn.Softmax(-1)), epochs=2)


@pytest.mark.parametrize("hidden", [[], [nn.Linear(8, 8), nn.LayerNorm(8)], [nn.Linear(8, 8), nn.Tanh()]])
@pytest.mark.parametrize(
    ("task", "outputs"), [("binary", 1), ("binary", 2), ("multilabel", 2), ("multiclass", 3)]
)
def test_logits_that_are_between_0_and_1_by_chance_are_not_warned_about(task, outputs, hidden):
    """Outputs of an untrained model with small weights, and of one whose last layer starts at zero."""
    X, y = linear_problem(task)
    for scale, bias in ((1e-3, 1 / outputs), (0.0, 0.0)):
        last = nn.Linear(8, outputs)
        with torch.no_grad():
            last.weight *= scale
            last.bias.fill_(bias)
        seqatt.select(X, y, 2, model=nn.Sequential(*hidden, last), epochs=2)  # a warning is an error here


def test_probabilities_of_a_few_rows_and_of_an_output_without_an_axis_are_noticed(problem):
    X = problem[0]
    model = nn.Sequential(nn.Linear(8, 1), nn.Sigmoid(), nn.Flatten(0))
    with pytest.warns(UserWarning, match="sigmoid itself"):
        seqatt.select(X[:10], np.arange(10) % 2, 2, model=model, epochs=2)


class Covariance(nn.Module):
    """Outputs between 0 and 1, for parameters that are a positive definite matrix alone."""

    def __init__(self):
        super().__init__()
        self.matrix = nn.Parameter(torch.eye(8))
        self.last = nn.Linear(8, 1)

    def forward(self, x):
        return torch.sigmoid(self.last(x @ torch.linalg.cholesky(self.matrix)))


def test_a_model_that_needs_valid_parameters_is_trained_without_a_warning(problem):
    seqatt.select(*problem, 2, model=Covariance(), epochs=0.1)


def test_logits_and_probabilities_under_a_loss_of_ones_own_are_not_warned_about(problem):
    X, y = problem
    seqatt.select(X, y, 2, model=nn.Linear(8, 1), epochs=2)
    model = nn.Sequential(nn.Linear(8, 1), nn.Sigmoid())
    seqatt.select(X, y, 2, model=model, loss=nn.functional.binary_cross_entropy, epochs=2)
    seqatt.select(X, y * 0.5, 2, model=model, task="regression", epochs=2)


@pytest.mark.parametrize("frozen", ["all", "first layer"])
def test_a_model_of_which_nothing_is_trained_is_noticed_and_used_as_it_is(frozen, problem, recwarn):
    X, y = problem
    model = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 1))
    (model if frozen == "all" else model[0]).requires_grad_(False)
    seqatt.select(X, y, 2, model=model, epochs=2)
    expected = (
        "model: has no parameter that requires a gradient, .* only the weights of the features are trained"
    )
    found = [w for w in recwarn if re.match(expected, str(w.message))]
    assert len(found) == (frozen == "all")


LABELS = (np.zeros(40), np.zeros(40, dtype=int), np.array(["a"] * 40), np.array([True] * 40))
DAYS = np.array(["2024-05-01"] * 40, dtype="datetime64[D]")


@pytest.mark.parametrize(
    ("labels", "shown"), [*zip(LABELS, ("0.0", "0", "'a'", "True"), strict=True), (DAYS, "2024-05-01")]
)
def test_a_single_class_is_shown_as_a_plain_value(labels, shown, problem):
    with pytest.raises(ValueError, match=f"^y: only one class, {shown}, occurs"):
        seqatt.select(problem[0][:40], labels, 2, task="binary")


@pytest.mark.parametrize(
    ("options", "shown"),
    [
        ({"k": [np.int64(2)]}, "k: must be a whole number or a fraction, got [2]"),
        ({"k": np.str_("two")}, "got 'two'"),
        ({"class_weight": {np.float64(3.0): 1.0}}, "class_weight: 3.0 is not a label; the labels are [0, 1]"),
        ({"class_weight": [np.float64(1.5)]}, "class_weight: use 'balanced' or a dict, got [1.5]"),
        (
            {"class_weight": np.array([1.0, 2.0])},
            "class_weight: use 'balanced' or a dict, got array([1., 2.])",
        ),
        ({"epochs": np.float64(-1)}, "epochs: must be a number above 0, got -1.0"),
        ({"hidden": [np.int64(0)]}, "such as (67,), got [0]"),
        ({"seed": np.int64(-1)}, "seed: must be a whole number of at least 0, got -1"),
        ({"batch_norm": np.int64(1)}, "batch_norm: must be True or False, got 1"),
        ({"mask": np.str_("hard")}, "mask: unknown 'hard'"),
        ({"method": np.str_("magic")}, "method: unknown 'magic'"),
        ({"groups": {np.str_("g"): [np.int64(9)]}}, "groups: 'g' names 9, which is not a column of X"),
        ({"groups": [np.int64(1)]}, "groups: 1 must be a list of columns"),
        ({"column_types": {"x0": np.str_("text")}}, "column_types: 'text' for 'x0' is unknown"),
    ],
)
def test_numbers_and_texts_of_numpy_are_shown_as_plain_values(options, shown, problem):
    with pytest.raises((TypeError, ValueError)) as caught:
        seqatt.select(*problem, **({"k": 2} | options))
    assert shown in str(caught.value)
    assert "np." not in str(caught.value)


def test_a_category_of_numpy_that_training_rows_do_not_have_is_shown_as_a_plain_value(problem):
    X, y = problem
    with pytest.raises(ValueError, match="y_test: label 7 does not occur in the training rows"):
        seqatt.evaluate(X, y, X, np.where(y == 1, 7, y), [0])


def test_a_boolean_of_numpy_is_a_boolean(problem):
    assert seqatt.select(*problem, 2, batch_norm=np.True_, epochs=1).settings["batch_norm"] is True


def test_an_unknown_feature_is_answered_with_a_near_name_or_with_those_that_there_are():
    X, y = linear_problem("binary")
    frame = pd.DataFrame(X[:, :3], columns=["age", "size", "weight"])
    rows = frame[:200], y[:200], frame[200:], y[200:]
    listed = "; the {}s are age, size, weight$"
    with pytest.raises(ValueError, match=r"keep: 'agee' is not a feature of X.*; did you mean 'age'"):
        seqatt.select(frame, y, 2, keep=["agee"])
    with pytest.raises(ValueError, match="keep: 'zz' is not a feature of X.*" + listed.format("feature")):
        seqatt.select(frame, y, 2, keep=["zz"])
    with pytest.raises(
        ValueError, match="indices: 'zz' is not a column of X_train.*" + listed.format("column")
    ):
        seqatt.evaluate(*rows, ["zz"])


def test_a_single_name_needs_no_list():
    X, y = linear_problem("binary")
    table = pd.DataFrame(X, columns=list("abcdefgh"))
    assert "a" in seqatt.select(table, y, 2, keep="a", method="f_test").features
    assert "b" not in seqatt.select(table, y, 2, forbid="b", method="f_test").features
    with pytest.raises(ValueError, match="keep: 'ab' is not a feature of X"):
        seqatt.select(table, y, 2, keep="ab", method="f_test")


def test_the_help_shows_the_defaults_of_options():
    text = seqatt.select.__doc__ or ""
    assert "MISSING" not in text
    assert "- column_types : " in text
    assert "- missing_indicator (default False) : " in text


def test_the_frame_of_an_empty_selection_has_columns():
    rng = np.random.default_rng(0)
    selection = seqatt.select(rng.normal(size=(100, 4)), rng.integers(0, 2, 100), k="auto", method="f_test")
    assert selection.features == []
    assert list(selection.to_frame()["feature"]) == []
