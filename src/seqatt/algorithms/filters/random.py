"""Random features, the baseline for every other method."""

from __future__ import annotations

import numpy as np

from seqatt.algorithms.registry import Plan, register
from seqatt.algorithms.request import SelectionRequest
from seqatt.progress import Advance
from seqatt.trace import Trace


@register("random")
def random_features(request: SelectionRequest, plan: Plan, advance: Advance) -> list[Trace]:
    """A random order per seed, constant features last."""
    data, k = request.table, request.k
    traces = []
    for seed in request.seeds:
        draw = np.random.default_rng(seed).random(data.features)
        ranked = [int(f) for f in np.lexsort((draw, data.constant))]
        traces.append(Trace(ranked[:k], ranked[k:]))
        advance(1)
    return traces
