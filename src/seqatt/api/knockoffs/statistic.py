"""The knockoff filter: from an order of features and knockoffs to those that are chosen at a false discovery rate."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from seqatt.api.knockoffs.race import Race

Floats = NDArray[np.float64]


class Choice(NamedTuple):
    """The features with a statistic of at least ``threshold``, an infinite one if there are none."""

    threshold: float
    estimated_rate: float
    chosen: int


def rank_families(race: Race, order: list[int]) -> Floats:
    """The statistic W (d,) of each feature from an order of all features of the race.

    A feature and its knockoffs are a family. The family whose first member comes first has the largest absolute value,
    the number of families; the next has one less, down to 1. W is positive if that member is the feature itself, and
    negative if it is a knockoff. It is 0 for constant features.
    """
    features = race.features
    varying = ~race.table.constant[:features]
    w = np.zeros(features)
    value = float(varying.sum())
    for member in order:
        slot, feature = divmod(member, features)
        if w[feature] == 0 and varying[feature]:
            w[feature] = value if slot == race.original[feature] else -value
            value -= 1
    return w


def choose_threshold(w: Floats, fdr: float, copies: int, most: int | None = None) -> Choice:
    """The smallest threshold at which the estimated rate is at most ``fdr`` (knockoff+), and at most ``most`` remain.

    The rate at t is (1 + #{W <= -t}) / (m #{W >= t}): a feature without effect comes before all of its m knockoffs
    with probability 1 / (m + 1), so there are m times as many negative as positive values among such features.
    """
    limit = len(w) if most is None else most
    for t in np.unique(np.abs(w[w != 0])):
        chosen = int((w >= t).sum())
        rate = (1 + int((w <= -t).sum())) / (copies * max(1, chosen))
        if rate <= fdr and 0 < chosen <= limit:
            return Choice(float(t), rate, chosen)
    return Choice(np.inf, 0.0, 0)
