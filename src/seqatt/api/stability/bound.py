"""The bounds of stability selection on the expected number of false choices.

A feature is a false choice here if half of the rows would choose it no more often than drawing k features at random
does: with a probability of at most its ``rate``. Such a feature is chosen in a share ``threshold`` of complementary
halves or more with a probability of at most ``C rate**2``, where

- ``C = 1 / (2 threshold - 1)`` whatever the method does (Shah and Samworth 2013, theorem 1, which gives the number of
  Meinshausen and Buehlmann 2010 without their assumption that noise features are exchangeable);
- ``C`` is smaller if the distribution of the share of pairs in which both halves choose the feature has one peak (Shah
  and Samworth 2013, theorem 2).

The expected number of false choices is at most the sum over the features. The theorems are about a threshold that is
set beforehand, so that of the answer is fixed, whatever its features have.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

THRESHOLD = 0.9  # share of the repeats from which the bound of an answer counts features
MAX_UNIMODAL_RATE = 1 / math.sqrt(3)  # of a feature, for theorem 2


def false_choices(threshold: float, pairs: int, rates: NDArray[np.float64]) -> tuple[float, float]:
    """The bound for unimodal distributions and the one for any, on choices at ``threshold``, which is above 1/2.

    ``rates`` (features,) are the probabilities with which a random choice has each feature, and ``pairs`` is the number
    of pairs of halves.
    """
    any_factor = 1 / (2 * threshold - 1)
    factors = np.full(len(rates), any_factor)
    lowest = np.minimum(0.5 + rates**2, 0.5 + 0.5 / pairs + 0.75 * rates**2)
    applies = (rates <= MAX_UNIMODAL_RATE) & (threshold > lowest) & (threshold >= 0.5 + 1 / pairs)
    factors[applies] = min(any_factor, _unimodal_factor(threshold, pairs))
    return float(factors @ rates**2), float(any_factor * (rates @ rates))


def _unimodal_factor(threshold: float, pairs: int) -> float:
    """``C(threshold, pairs)`` of theorem 2."""
    if threshold <= 0.75:
        return 1 / (2 * (2 * threshold - 1 - 0.5 / pairs))
    return 4 * (1 - threshold + 0.5 / pairs) / (1 + 1 / pairs)
