"""Ranking: rows of the same query in the order of their relevance, by the logistic loss of pairs (RankNet, 2005).

A pair is of two rows of the same query and of different relevance that are in the same batch. The loss of a row is the
mean over its pairs, where a query with n rows counts n times: pairs of a query have the same weight, and queries
with many rows do not dominate by the square of their number. Rows without a pair have the loss 0.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F

from seqatt.losses.loss import Encoding, Floats, Loss, Metrics, Score, mean_score, to_floats

TOP = 10  # rows of a query that NDCG looks at


class PairwiseLoss(Loss):
    """Targets have the relevance of a row and the number of its query; the output is a score."""

    name, metrics, score_name = "ranking", ("ndcg@10", "pair_accuracy"), "pair_accuracy"
    coupled, stand_in = True, "relevance minus the mean of its query"

    def read(self, y: NDArray[Any], weights: Floats | None, argument: str) -> Encoding:
        if weights is not None:
            raise ValueError("sample_weight: pairs of rows have no weights in task='ranking'; leave it out")
        values = self.encode(y, None, argument)
        if not self.as_numbers(values).any():
            raise ValueError(
                f"{argument}: no query has rows of different relevance; there is nothing to rank"
            )
        return Encoding(values.astype(np.float32), 1)

    def encode(self, y: NDArray[Any], encoding: Any, argument: str) -> NDArray[Any]:
        if y.ndim != 2 or y.shape[1] != 2:
            raise ValueError(
                f"{argument}: task='ranking' needs two columns, the relevance and the query of each row, got shape "
                f"{y.shape}"
            )
        query = np.unique(y[:, 1].astype(str), return_inverse=True)[1]
        return np.stack([to_floats(y[:, 0], argument), query], axis=1)

    def per_row(self, out: Tensor, y: Tensor) -> Tensor:
        # Model by model: no result may depend on the models beside it.
        return torch.stack([_losses(o[:, 0], *target.unbind(1)) for o, target in zip(out, y, strict=True)])

    def grad(self, out: Tensor, y: Tensor) -> Tensor:
        grads = [_gradient(o[:, 0], *target.unbind(1)) for o, target in zip(out, y, strict=True)]
        return torch.stack(grads).unsqueeze(2)

    def as_numbers(self, values: NDArray[Any], sample: NDArray[Any] | None = None) -> NDArray[Any]:
        query = values[:, 1].astype(np.int64)
        mean = np.bincount(query, values[:, 0]) / np.maximum(np.bincount(query), 1)
        return np.asarray(values[:, 0] - mean[query])[:, None]

    def measure(self, encoding: Any, outputs: Floats, targets: NDArray[Any]) -> Metrics:
        """NDCG of the first ten rows (gain 2^relevance - 1), and the share of pairs in the right order, per query."""
        gains = [_ndcg(*rows) for rows in _queries(outputs, targets)]
        return {
            "ndcg@10": float(np.mean(gains)) if gains else float("nan"),
            "pair_accuracy": self.score(outputs, targets).mean,
        }

    def score(self, outputs: Floats, targets: NDArray[Any]) -> Score:
        """The share of pairs in the right order, as a mean over queries."""
        shares = np.array([_pair_accuracy(*rows) for rows in _queries(outputs, targets)])
        return mean_score(shares) if len(shares) > 1 else Score(float("nan"), 0.0)

    def score_without_features(self, train: NDArray[Any], test: NDArray[Any]) -> float:
        return 0.5


def _pairs(out: Tensor, relevance: Tensor, query: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """For all pairs (B, B) the sign of the difference in relevance and the margin of the outputs; weights (B,)."""
    same = query.unsqueeze(1) == query
    sign = torch.sign(relevance.unsqueeze(1) - relevance) * same
    of_query = same.to(out.dtype)
    pairs = of_query @ sign.abs().sum(1)
    weight = of_query.sum(1) / pairs.clamp_min(1)
    return sign, sign * (out.unsqueeze(1) - out), weight


def _losses(out: Tensor, relevance: Tensor, query: Tensor) -> Tensor:
    sign, margin, weight = _pairs(out, relevance, query)
    return (F.softplus(-margin) * sign.abs()).sum(1) * weight


def _gradient(out: Tensor, relevance: Tensor, query: Tensor) -> Tensor:
    sign, margin, weight = _pairs(out, relevance, query)
    return -2 * (torch.sigmoid(-margin) * sign).sum(1) * weight


def _queries(outputs: Floats, targets: NDArray[Any]) -> list[tuple[Floats, Floats]]:
    """Outputs and relevances of each query that has rows of different relevance."""
    order = np.argsort(targets[:, 1], kind="stable")
    cuts = np.flatnonzero(np.diff(targets[order, 1])) + 1
    rows = np.split(order, cuts)
    return [(outputs[r, 0], targets[r, 0]) for r in rows if np.ptp(targets[r, 0]) > 0]


def _pair_accuracy(out: Floats, relevance: Floats) -> float:
    higher = relevance[:, None] > relevance
    return float(((out[:, None] > out) + 0.5 * (out[:, None] == out))[higher].mean())


def _ndcg(out: Floats, relevance: Floats) -> float:
    gain = np.exp2(relevance - relevance.min()) - 1
    discount = 1 / np.log2(np.arange(2, min(TOP, len(gain)) + 2))
    # Rows of the same output share their gains, in whatever order they come.
    _, level = np.unique(-out, return_inverse=True)
    shared = (np.bincount(level, gain) / np.bincount(level))[np.sort(level)]
    best = np.sort(gain)[::-1]
    return float(shared[: len(discount)] @ discount / (best[: len(discount)] @ discount))
