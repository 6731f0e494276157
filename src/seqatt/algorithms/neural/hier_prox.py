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

MAX_ROUNDS = 16  # of Newton's method; from a good start it takes two or three


def hier_prox(
    skip: Tensor,
    layer: Tensor,
    penalty: Tensor,
    bound: float,
    feature_of: Tensor | None = None,
    start: Tensor | None = None,
) -> Tensor:
    """The proximal step, in place on ``skip`` (T, o, c) and ``layer`` (T, h, c).

    Parameters
    ----------
    penalty : (T, d), one value per feature.
    bound : M above.
    feature_of : (c,), the feature of each column; None if every column is a feature.
    start : (T, d), norms from which Newton's method starts, such as those of the previous step.

    Returns
    -------
    The norms r (T, d) of the features' skip weights.
    """
    features = penalty.shape[1]
    norm = _sum_over_columns(skip.square().sum(1), feature_of, features).sqrt()
    size = layer.abs()
    r = _root(norm - penalty, size, norm if start is None else start, bound, feature_of)
    factor = r / norm.clamp_min(1e-30)
    r = factor * norm  # skip weights of zero stay zero: they have no direction to be scaled in
    skip.mul_(_to_columns(factor, feature_of))
    limit = _to_columns(r * bound, feature_of)
    layer.clamp_(-limit, limit)
    return r


def _root(offset: Tensor, size: Tensor, start: Tensor, bound: float, feature_of: Tensor | None) -> Tensor:
    """The r >= 0 with r = offset + M sum_i max(size_i - M r, 0), or 0 where there is none.

    The tangents of a concave function lie above it: from the first round on, r approaches the root from the left.
    """
    features = offset.shape[1]
    r, last_count = start, None
    for _ in range(MAX_ROUNDS):
        over = (size - _to_columns(r * bound, feature_of)).relu_()
        excess = _sum_over_columns(over.sum(1), feature_of, features)
        count = _sum_over_columns(over.sign_().sum(1), feature_of, features)
        r = (offset + bound * (excess + bound * count * r)).div_(1 + bound**2 * count).relu_()
        # The root is exact once the linear piece no longer changes. A GPU runs all rounds: a check would wait for it.
        if last_count is not None and not r.is_cuda and torch.equal(count, last_count):
            break
        last_count = count
    return r


def _sum_over_columns(columns: Tensor, feature_of: Tensor | None, features: int) -> Tensor:
    """From one value per column (T, c) to their sum per feature (T, d)."""
    if feature_of is None:
        return columns
    return columns.new_zeros(len(columns), features).index_add_(1, feature_of, columns)


def _to_columns(features: Tensor, feature_of: Tensor | None) -> Tensor:
    """From one value per feature (T, d) to one per column (T, 1, c)."""
    return (features if feature_of is None else features.index_select(1, feature_of)).unsqueeze(1)
