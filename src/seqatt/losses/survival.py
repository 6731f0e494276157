"""Survival: times to an event, some of them censored, by the Cox partial likelihood (Cox 1972; ties by Breslow).

The loss of a row with an event is ``log mean exp(o_j) - o_i`` over the rows j of the batch that are still at risk at
its time. A row that is censored has no loss of its own; it counts among those at risk. As a mean over the rows at risk
it does not depend on how large a batch is, and it is 0 for outputs that are all the same.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from seqatt.losses.loss import Encoding, Floats, Loss, Metrics, Score, to_floats

MAX_COMPARED = 4096  # rows whose pairs are compared for the concordance index: their number is squared


class CoxLoss(Loss):
    """Targets have a time, whether the event occurred, and the weight of the row; the output is a log hazard."""

    name, metrics, score_name = "survival", ("concordance",), "concordance"
    coupled, stand_in = True, "martingale residuals of a model without features"

    def read(self, y: NDArray[Any], weights: Floats | None, argument: str) -> Encoding:
        values = self.encode(y, None, argument)
        if not values[:, 1].any():
            raise ValueError(
                f"{argument}: every row is censored (no event is 1); there is nothing to predict"
            )
        if len(np.unique(values[:, 0])) < 2:
            raise ValueError(f"{argument}: every time is the same; there is nothing to predict")
        rank = np.unique(values[:, 0], return_inverse=True)[1]  # float32 tells more ranks apart than times
        weight = np.ones(len(rank)) if weights is None else weights / weights.mean()
        return Encoding(np.stack([rank, values[:, 1], weight], axis=1).astype(np.float32), 1)

    def encode(self, y: NDArray[Any], encoding: Any, argument: str) -> NDArray[Any]:
        """Times and events (n, 2); if only the first column consists of 0 and 1, it has the events."""
        form = (
            f"{argument}: task='survival' needs two columns, the time and whether the event occurred (1 or 0)"
        )
        if y.ndim != 2 or y.shape[1] != 2:
            raise ValueError(f"{form}, got shape {y.shape}")
        values = to_floats(y, argument)
        is_event = [bool(np.isin(column, (0, 1)).all()) for column in values.T]
        if not any(is_event):
            raise ValueError(f"{form}; neither column is of 0 and 1")
        values = values if is_event[1] else values[:, ::-1]
        if (values[:, 0] < 0).any():
            raise ValueError(
                f"{argument}: times must be 0 or more, got {values[:, 0].min():g}; pass how long each row was observed"
            )
        return values

    def per_row(self, out: Tensor, y: Tensor) -> Tensor:
        # Model by model: no result may depend on the models beside it.
        return torch.stack([_losses(o[:, 0], *target.unbind(1)) for o, target in zip(out, y, strict=True)])

    def grad(self, out: Tensor, y: Tensor) -> Tensor:
        grads = [_gradient(o[:, 0], *target.unbind(1)) for o, target in zip(out, y, strict=True)]
        return torch.stack(grads).unsqueeze(2)

    def as_numbers(self, values: NDArray[Any], sample: NDArray[Any] | None = None) -> NDArray[Any]:
        """Events minus the cumulative hazard of all rows at their times (Nelson and Aalen): the gradient at zero."""
        y = torch.from_numpy(values).double()
        return np.asarray(-_gradient(torch.zeros(len(y), dtype=y.dtype), *y.unbind(1)).numpy()[:, None])

    def measure(self, encoding: Any, outputs: Floats, targets: NDArray[Any]) -> Metrics:
        return {"concordance": self.score(outputs, targets).mean}

    def score(self, outputs: Floats, targets: NDArray[Any]) -> Score:
        """Harrell's concordance index, with its standard error as a mean of pairs over rows."""
        if len(targets) > MAX_COMPARED:
            rows = np.random.default_rng(0).permutation(len(targets))[:MAX_COMPARED]
            outputs, targets = outputs[rows], targets[rows]
        time, event, risk = targets[:, 0], targets[:, 1] > 0, outputs[:, 0]
        # Row i had its event before anything happened to row j.
        before = event[:, None] & ((time[:, None] < time) | ((time[:, None] == time) & ~event))
        agrees = before * ((risk[:, None] > risk) + 0.5 * (risk[:, None] == risk))
        pairs, agreed = (m.sum(0) + m.sum(1) for m in (before, agrees))
        if not pairs.any():
            return Score(float("nan"), 0.0)
        mean = float(agreed.sum() / pairs.sum())
        # Each pair is of two rows: the deviations of the rows count twice.
        error = 2 * np.sqrt(((agreed - mean * pairs) ** 2).sum()) / pairs.sum()
        return Score(mean, float(error))

    def score_without_features(self, train: NDArray[Any], test: NDArray[Any]) -> float:
        return 0.5


def _at_risk(out: Tensor, time: Tensor, weight: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Rows from the latest to the earliest; for each, log sum(weight * exp(out)) and total weight of those at risk."""
    order = torch.argsort(time, descending=True, stable=True)
    falling = -time[order].contiguous()
    last = torch.searchsorted(falling, falling, right=True) - 1  # of the rows of the same time
    log_sum = torch.logcumsumexp(out[order] + weight[order].log(), 0)[last]
    return order, log_sum, weight[order].cumsum(0)[last]


def _losses(out: Tensor, time: Tensor, event: Tensor, weight: Tensor) -> Tensor:
    order, log_sum, size = _at_risk(out, time, weight)
    losses = event[order] * (log_sum - size.log() - out[order])
    return torch.zeros_like(losses).index_put((order,), losses)


def _gradient(out: Tensor, time: Tensor, event: Tensor, weight: Tensor) -> Tensor:
    """The gradient of the weighted sum of the losses, divided by the weight of each row."""
    order, log_sum, _ = _at_risk(out, time, weight)
    rising = order.flip(0)
    log_hazard = (event * weight)[rising].log() - log_sum.flip(0)
    now = time[rising].contiguous()
    until = torch.searchsorted(now, now, right=True) - 1
    share = torch.exp(out[rising] + torch.logcumsumexp(log_hazard, 0)[until])
    return torch.zeros_like(share).index_put_((rising,), share - event[rising])
