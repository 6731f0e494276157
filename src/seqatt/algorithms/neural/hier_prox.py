"""Hier-Prox, LassoNet's proximal step (Lemhadri, Ruan, Abraham and Tibshirani 2021, Algorithm 2).

For each feature, given the target t of its skip weights and the targets u of its first-layer weights:

    minimise 1/2 |s - t|^2 + 1/2 |W - u|^2 + penalty |s|   subject to   |W|_inf <= M |s|

over s and W. The best s is t, shortened to some length r, and W is u, clipped to M r. What remains is one
equation for r, whose left side is increasing, concave and made of straight pieces:

    r - |t| + penalty - M sum_i max(|u_i| - M r, 0) = 0

The paper sorts |u| to find the right piece. Newton's method gets there from either side in a few rounds, with
no sort, and serves features of several columns alike.
"""

from __future__ import annotations

import torch
from torch import Tensor

ROUNDS = 16  # at most; from a good start it is two or three


def hier_prox(
    skip: Tensor,
    layer: Tensor,
    penalty: Tensor,
    bound: float,
    feature_of: Tensor | None = None,
    start: Tensor | None = None,
) -> Tensor:
    """The step in place on ``skip`` (T, o, c) and ``layer`` (T, h, c); the lengths r (T, d) of features.

    ``penalty`` (T, d) is the penalty of each feature. ``feature_of`` has the feature of each column; None says
    that every column is a feature. ``start`` (T, d) are lengths to start from, such as those before.
    """
    features = penalty.shape[1]
    length = _by_feature(skip.square().sum(1), feature_of, features).sqrt()
    size = layer.abs()
    r = _root(length - penalty, size, length if start is None else start, bound, feature_of)
    factor = r / length.clamp_min(1e-30)
    r = factor * length  # none where there was none: it has no direction to keep
    skip.mul_(_by_column(factor, feature_of))
    limit = _by_column(r * bound, feature_of)
    layer.clamp_(-limit, limit)
    return r


def _root(offset: Tensor, size: Tensor, start: Tensor, bound: float, feature_of: Tensor | None) -> Tensor:
    """The r >= 0 with r = offset + M sum_i max(size_i - M r, 0), or 0 where there is none.

    Tangents of a concave function lie above it: after the first round r is left of the root, and moves right.
    """
    features = offset.shape[1]
    r, before = start, None
    for _ in range(ROUNDS):
        over = (size - _by_column(r * bound, feature_of)).relu_()
        excess = _by_feature(over.sum(1), feature_of, features)
        count = _by_feature(over.sign_().sum(1), feature_of, features)
        r = (offset + bound * (excess + bound * count * r)).div_(1 + bound**2 * count).relu_()
        # On the same piece as before the root is exact. An accelerator is not asked: it would have to wait.
        if before is not None and not r.is_cuda and torch.equal(count, before):
            break
        before = count
    return r


def _by_feature(columns: Tensor, feature_of: Tensor | None, features: int) -> Tensor:
    if feature_of is None:
        return columns
    return columns.new_zeros(len(columns), features).index_add_(1, feature_of, columns)


def _by_column(features: Tensor, feature_of: Tensor | None) -> Tensor:
    return (features if feature_of is None else features.index_select(1, feature_of)).unsqueeze(1)
