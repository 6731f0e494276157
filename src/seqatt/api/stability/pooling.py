"""One answer from the selections of all repeats, and how sure it is."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from seqatt.algorithms.request import SelectionRequest
from seqatt.api.stability.bound import THRESHOLD, false_choices
from seqatt.api.stability.clusters import find_clusters
from seqatt.trace import PhaseRecord, Trace


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


def _in_order(values: NDArray[np.float64], position: NDArray[np.int64]) -> list[float]:
    """Values per feature of a method in the order of the user's features."""
    ordered = np.empty_like(values)
    ordered[position] = values
    return [float(value) for value in ordered]
