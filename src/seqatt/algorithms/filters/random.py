"""Features drawn at random: the line every method must beat."""

from __future__ import annotations

import numpy as np

from seqatt.data.tables.table_data import TableData
from seqatt.selection import Trace


def random_features(source: TableData, seed: int) -> Trace:
    """An order drawn from the seed, constant features last."""
    draw = np.random.default_rng(seed).random(source.features)
    ranked = np.lexsort((draw, source.constant))
    return Trace([int(f) for f in ranked], [])
