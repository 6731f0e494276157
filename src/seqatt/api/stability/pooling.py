"""One answer from the selections of all repeats, and the bounds of stability selection on its false choices.

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
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from seqatt.algorithms.request import SelectionRequest
from seqatt.api.stability.clusters import find_clusters
from seqatt.trace import PhaseRecord, Trace

THRESHOLD = 0.9  # share of the repeats from which the bound of an answer counts features
MAX_UNIMODAL_RATE = 1 / math.sqrt(3)  # of a feature, for theorem 2


def pool_repeats(request: SelectionRequest, traces: Sequence[Trace], rows: int) -> Trace:
    """The k features chosen most often in an even number of repeats on ``rows`` rows each, as one trace.

    A cluster counts once: as its most frequent member, with the share of the repeats that chose any of its members.
    Ties go to the better mean rank. The scores of the trace are these shares.
    """
    data, k = request.table, request.k
    chosen = np.zeros((len(traces), data.features), dtype=bool)
    ranks = np.empty((len(traces), data.features))
    for repeat, trace in enumerate(traces):
        chosen[repeat, trace.order] = True
        ranks[repeat, trace.order + trace.rest] = np.arange(1, data.features + 1)
    clusters = find_clusters(data, chosen)
    frequency, mean_rank = chosen.mean(0), ranks.mean(0)
    counted = frequency.copy()  # with that of a cluster for its first member, 0 for the others
    for cluster in clusters:
        counted[cluster] = 0.0
        counted[cluster[0]] = chosen[:, cluster].any(1).mean()
        mean_rank[cluster[0]] = ranks[:, cluster].min(1).mean()
    # Other members of clusters fill up an answer for which too few features were ever chosen.
    shares = np.maximum(counted, frequency)
    ranking = np.lexsort((np.arange(data.features), mean_rank, -shares, -counted)).tolist()
    first = request.first(ranking, k)
    order = first + [feature for feature in ranking if feature not in first]
    seconds = sum(phase.seconds for trace in traces for phase in trace.phases)
    phase = PhaseRecord(len(traces), "all", None, seconds, order[:k], scores=shares)
    position = data.user_position
    stability = {
        "repeats": len(traces),
        "rows": rows,
        "frequency": _in_order(frequency, position),
        "clusters": [
            {"features": position[cluster].tolist(), "frequency": float(counted[cluster[0]])}
            for cluster in sorted(clusters, key=lambda cluster: order.index(cluster[0]))
        ],
    }
    stability |= _bound(counted, order[:k], clusters, ~data.constant, len(traces) // 2)
    return Trace(order[:k], order[k:], [phase], stability=stability)


def _bound(
    counted: NDArray[np.float64],
    selected: Sequence[int],
    clusters: Sequence[Sequence[int]],
    varying: NDArray[np.bool_],
    pairs: int,
) -> dict[str, Any]:
    """The bounds on the false choices among the first features of the answer, those in at least ``THRESHOLD``.

    The features of a cluster are one here: a random choice has one with probability q / d, where d is the number of
    features and clusters, and q that of those which a repeat chooses.
    """
    count = int(varying.sum()) - sum(len(cluster) - 1 for cluster in clusters)
    rates = np.full(count, min(1.0, counted.sum() / count))
    threshold = math.ceil(2 * pairs * THRESHOLD - 1e-9) / (2 * pairs)
    unimodal, any_distribution = false_choices(threshold, pairs, rates)
    return {
        "threshold": threshold,
        "bounded": int((counted[list(selected)] >= threshold).sum()),
        "false_choices": unimodal,
        "false_choices_any": any_distribution,
    }


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


def _in_order(values: NDArray[np.float64], position: NDArray[np.int64]) -> list[float]:
    """Values per feature of a method in the order of the user's features."""
    ordered = np.empty_like(values)
    ordered[position] = values
    return [float(value) for value in ordered]
