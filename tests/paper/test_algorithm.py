"""The engine against the paper's arithmetic, written out from its Algorithm 1 in plain torch."""

from __future__ import annotations

import numpy as np
import torch
from tests.support.problems import linear_problem

import seqatt
from seqatt.algorithms.neural.sequential_attention import sequential_attention
from seqatt.data.tables.table_data import read_table_data
from seqatt.training.options import AttentionOptions
from seqatt.training.schedule import Phase


def algorithm_1_by_hand(X: np.ndarray, y: np.ndarray, k: int, steps: int, rate: float) -> list[int]:
    """A linear model f(x; theta), full batches, Adam, from theta = 0; logits fresh for each choice."""
    x = torch.tensor(X)
    t = torch.tensor(y)[:, None]
    chosen: list[int] = []
    for _ in range(k):
        theta = torch.zeros(X.shape[1], 1, dtype=x.dtype, requires_grad=True)
        bias = torch.zeros(1, dtype=x.dtype, requires_grad=True)
        w = torch.zeros(X.shape[1], dtype=x.dtype, requires_grad=True)
        optimizer = torch.optim.Adam([theta, bias, w], lr=rate)
        free = [i for i in range(X.shape[1]) if i not in chosen]
        for _ in range(steps):
            scale = torch.ones(X.shape[1], dtype=x.dtype)
            scale[free] = torch.softmax(w[free], 0)
            loss = ((x * scale) @ theta + bias - t).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        chosen.append(max(free, key=lambda i: (w[i].item(), -i)))
    return chosen


class Zero(torch.nn.Linear):
    def reset_parameters(self) -> None:
        torch.nn.init.zeros_(self.weight)
        torch.nn.init.zeros_(self.bias)


def test_algorithm_1_chooses_what_its_arithmetic_chooses():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 6))
    X[:, 2] += X[:, 0]
    y = X @ np.array([3.0, 0, 1, 0, -2, 0.5]) + 0.1 * rng.normal(size=200)
    source = read_table_data(X, y)
    expected = algorithm_1_by_hand(
        source.columns.astype(np.float64),
        source.target.values[:, 0].astype(np.float64),
        4,
        150,
        0.01,
    )
    selection = seqatt.select(
        X,
        y,
        4,
        model=lambda columns, outputs: Zero(columns, outputs),
        one_pass=False,
        epochs=150,
        batch_size=200,
        learning_rate=0.01,
    )
    assert selection.indices.tolist() == expected


def test_the_choice_is_made_at_the_end_of_a_phase():
    X, y = linear_problem("regression")
    source = read_table_data(X, y)
    schedule = (Phase(40, sees="all"), Phase(30, take=1), Phase(30, take=1))
    options = AttentionOptions(ensemble=1, univariate_test=0, asinh_inputs=False)
    (trace,) = sequential_attention(
        source, 2, [0], options, torch.device("cpu"), schedule, lambda steps: None
    )
    warm, first, second = trace.steps
    assert warm.taken == []
    assert warm.scores is None
    assert first.taken == [int(np.argmax(first.scores))]
    masked = np.where(np.arange(8) == first.taken[0], -np.inf, second.scores)
    assert second.taken == [int(np.argmax(masked))]
    assert second.scores[first.taken[0]] == 0  # a kept feature's logit has no gradient
