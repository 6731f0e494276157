"""seqatt against a reference implementation of the paper's Algorithm 1 in plain torch."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch
from tests.support.problems import linear_problem

import seqatt
from seqatt.algorithms.neural.attention_options import AttentionOptions
from seqatt.algorithms.neural.attention_plan import make_plan
from seqatt.algorithms.neural.sequential_attention import sequential_attention
from seqatt.algorithms.request import SelectionRequest
from seqatt.data.tables.table_data import read_table_data
from seqatt.training.schedule import Phase


def reference_algorithm_1(X: np.ndarray, y: np.ndarray, k: int, steps: int, rate: float) -> list[int]:
    """A linear model f(x; theta) from theta = 0 and logits from 0 for each selection; full batches, Adam."""
    x = torch.tensor(X)
    target = torch.tensor(y)[:, None]
    selected: list[int] = []
    for _ in range(k):
        theta = torch.zeros(X.shape[1], 1, dtype=x.dtype, requires_grad=True)
        bias = torch.zeros(1, dtype=x.dtype, requires_grad=True)
        w = torch.zeros(X.shape[1], dtype=x.dtype, requires_grad=True)
        optimizer = torch.optim.Adam([theta, bias, w], lr=rate)
        unselected = [i for i in range(X.shape[1]) if i not in selected]
        for _ in range(steps):
            scale = torch.ones(X.shape[1], dtype=x.dtype)
            scale[unselected] = torch.softmax(w[unselected], 0)
            loss = ((x * scale) @ theta + bias - target).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        selected.append(max(unselected, key=lambda i: (w[i].item(), -i)))
    return selected


class ZeroLinear(torch.nn.Linear):
    """A linear layer whose parameters start at zero."""

    def reset_parameters(self) -> None:
        torch.nn.init.zeros_(self.weight)
        torch.nn.init.zeros_(self.bias)


def test_algorithm_1_selects_the_features_of_the_reference_implementation():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 6))
    X[:, 2] += X[:, 0]
    y = X @ np.array([3.0, 0, 1, 0, -2, 0.5]) + 0.1 * rng.normal(size=200)
    data = read_table_data(X, y)
    expected = reference_algorithm_1(
        data.columns.astype(np.float64),
        data.target.values[:, 0].astype(np.float64),
        4,
        150,
        0.01,
    )
    selection = seqatt.select(
        X,
        y,
        4,
        model=lambda columns, outputs: ZeroLinear(columns, outputs),
        recipe="algorithm_1",
        epochs=150,
        batch_size=200,
        learning_rate=0.01,
    )
    assert selection.indices.tolist() == expected


def test_features_are_selected_at_the_end_of_a_phase():
    X, y = linear_problem("regression")
    data = read_table_data(X, y)
    schedule = (Phase(40, sees="all"), Phase(30, take=1), Phase(30, take=1))
    options = AttentionOptions(ensemble=1, univariate_test=0, asinh_inputs=False)
    request = SelectionRequest(data, 2, [0], options, torch.device("cpu"))
    plan = replace(make_plan(request), schedule=schedule)
    (trace,) = sequential_attention(request, plan, lambda steps: None)
    warm_up, first, second = trace.phases
    assert warm_up.taken == []
    assert warm_up.scores is None
    assert first.taken == [int(np.argmax(first.scores))]
    masked = np.where(np.arange(8) == first.taken[0], -np.inf, second.scores)
    assert second.taken == [int(np.argmax(masked))]
    assert second.scores[first.taken[0]] == 0  # the logit of a selected feature has no gradient
