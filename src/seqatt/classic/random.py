"""Features drawn at random: the line every method must beat."""

from __future__ import annotations

import numpy as np

from seqatt.selection import Trace
from seqatt.source import Source


def random_features(source: Source, seed: int) -> Trace:
    """An order drawn from the seed, constant features last."""
    draw = np.random.default_rng(seed).random(source.features)
    ranked = np.lexsort((draw, source.constant))
    return Trace([int(f) for f in ranked], [])
