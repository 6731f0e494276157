"""Extreme values of a numeric target: a warning names them, and quantile regression is scaled without them.

They are those that would be clipped in a column of ``X``. A target is not clipped: it decides what is predicted, and a
few large values may be what matters (docs/decisions/0030-extreme-values.md).
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from seqatt.data.tables.numbers.extremes import find_fences, find_limits
from seqatt.losses.loss import Encoding, Loss, to_floats

MAX_DEVIATION = 1e12  # of a standardised target: losses must be float32


def read_numbers(loss: Loss, y: NDArray[Any], weights: NDArray[Any] | None, argument: str) -> Encoding:
    """The encoding of a target by its loss; extreme values are reported where a few of them decide everything."""
    encoding = loss.read(y, weights, argument)
    if loss.name == "regression":
        columns = to_floats(y, argument).reshape(len(y), -1).T
        for number, values in enumerate(columns, 1):
            if limits := find_limits(values):
                counted = bool((values >= 0).all() and (values == np.round(values)).all())
                name = f"{argument} (column {number})" if len(columns) > 1 else argument
                _report(values, *limits, name, " or task='poisson' for counts" * counted)
    if loss.name == "poisson" and (limits := find_limits(values := to_floats(y, argument))):
        # Counts are what their logarithms are: a long tail of them is common.
        _, (above,) = find_fences(np.log1p(values)[None])
        if (extreme := np.log1p(values) > above).any():
            _report(values, limits[0], float(values[~extreme].max()), argument)
    if loss.name == "quantile":
        values = to_floats(y, argument)
        if limits := find_limits(values):
            # The standard deviation of all would make the others the same number.
            clipped = loss.read(np.clip(values, *limits), weights, argument)
            assert clipped.shift is not None
            assert clipped.scale is not None
            from_mean = values[:, None] - clipped.shift
            scale = np.maximum(clipped.scale, np.abs(from_mean).max() / MAX_DEVIATION)
            return clipped._replace(values=(from_mean / scale).astype(np.float32), scale=scale)
    return encoding


def _report(
    values: NDArray[np.float64], low: float, high: float, argument: str, another_task: str = ""
) -> None:
    far = np.maximum(low - values, values - high)
    warnings.warn(
        f"{argument} holds extreme values in {(far > 0).sum():,} of {len(values):,} rows, up to "
        f"{values[far.argmax()]:.6g}, where all others are from {low:.6g} to {high:.6g}: a model of it sees little "
        "else. If that is not what you want, correct the values or leave out their rows, or pass task='quantile' to "
        f"predict the median{another_task}",
        stacklevel=2,
    )
