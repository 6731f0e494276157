"""Hier-Prox, the proximal step of LassoNet (Lemhadri, Ruan, Abraham and Tibshirani 2021, Algorithm 2).

For each feature, with skip weights t and first-layer weights u after a gradient step:

    minimise 1/2 |s - t|^2 + 1/2 |W - u|^2 + penalty |s|   subject to   |W|_inf <= M |s|

over s and W. The minimum has s = t scaled to some norm r, and W = u clipped to M r. What remains is one equation for
r, whose left side is increasing, concave and piecewise linear:

    r - |t| + penalty - M sum_i max(|u_i| - M r, 0) = 0

The paper sorts |u| to find the linear piece of the root. Newton's method finds it in a few rounds without sorting,
and also works for features of several columns.
"""

from __future__ import annotations

import torch
from torch import Tensor

from seqatt.training.feature_columns import FeatureColumns

MAX_ROUNDS = 16  # of Newton's method; from a good start it takes two or three


def hier_prox(
    skip: Tensor,
    layer: Tensor,
    penalty: Tensor,
    bound: float,
    columns: FeatureColumns,
    start: Tensor | None = None,
) -> Tensor:
    """The proximal step, in place on ``skip`` (T, o, c) and ``layer`` (T, h, c).

    Parameters
    ----------
    penalty : (T, d), one value per feature.
    bound : M above.
    columns : the columns of each feature.
    start : (T, d), norms from which Newton's method starts, such as those of the previous step.

    Returns
    -------
    The norms r (T, d) of the features' skip weights.
    """
    norm = columns.to_features(skip.square().sum(1)).sqrt()
    size = layer.abs()
    r = _root(norm - penalty, size, norm if start is None else start, bound, columns)
    factor = r / norm.clamp_min(1e-30)
    r = factor * norm  # skip weights of zero stay zero: they have no direction to be scaled in
    skip.mul_(columns.to_columns(factor).unsqueeze(1))
    limit = columns.to_columns(r * bound).unsqueeze(1)
    layer.clamp_(-limit, limit)
    return r


def _root(offset: Tensor, size: Tensor, start: Tensor, bound: float, columns: FeatureColumns) -> Tensor:
    """The r >= 0 with r = offset + M sum_i max(size_i - M r, 0), or 0 where there is none.

    The tangents of a concave function lie above it: from the first round on, r approaches the root from the left.
    """
    r, last_count = start, None
    for _ in range(MAX_ROUNDS):
        over = (size - columns.to_columns(r * bound).unsqueeze(1)).relu_()
        excess = columns.to_features(over.sum(1))
        count = columns.to_features(over.sign_().sum(1))
        r = (offset + bound * (excess + bound * count * r)).div_(1 + bound**2 * count).relu_()
        # The root is exact once the linear piece no longer changes. A GPU runs all rounds: a check would wait for it.
        if last_count is not None and not r.is_cuda and torch.equal(count, last_count):
            break
        last_count = count
    return r
