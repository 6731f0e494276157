"""Planted problems whose strongest feature holds extreme values: ``python -m benchmarks.extreme_values``.

Three of the features matter. Some rows of the strongest hold -999, 99999 or 1e9. The table shows in how many problems
each method finds all three: on the table without such values, on the table with them, and on that table if extreme
values are not clipped (docs/decisions/0030-extreme-values.md).
"""

from __future__ import annotations

from itertools import product

import numpy as np
from numpy.typing import NDArray

import seqatt
from seqatt.data.tables.numbers import extremes

SHAPES = ((300, 10), (1000, 50), (3000, 20))  # rows, features
SHARES = (0.001, 0.01, 0.05)  # of the rows; at least one row
VALUES = (-999.0, 99_999.0, 1e9)
METHODS = ("sequential_attention", "forest", "f_test")
PLANTED = {0, 1, 2}


def planted(
    rows: int, features: int, share: float, value: float, seed: int
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.int64]]:
    """A table, the same with extreme values in its first feature, and the target."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, features))
    y = X[:, :3] @ [1.0, 1.0, 0.7] + 0.4 * rng.normal(size=rows) > 0
    dirty = X.copy()
    dirty[rng.permutation(rows)[: max(1, round(share * rows))], 0] = value
    return X, dirty, y.astype(np.int64)


def found(X: NDArray[np.float64], y: NDArray[np.int64], method: str, share: float) -> bool:
    """Whether a method finds the planted features, where extreme values have at most this share of the rows."""
    default, extremes.EXTREME_SHARE = extremes.EXTREME_SHARE, share
    try:
        return set(seqatt.select(X, y, 3, method=method).indices.tolist()) == PLANTED
    finally:
        extremes.EXTREME_SHARE = default


def main() -> None:
    print("method                clean  clipped  not clipped  of")
    for method in METHODS:
        results = []
        for seed, ((rows, features), share, value) in enumerate(product(SHAPES, SHARES, VALUES)):
            X, dirty, y = planted(rows, features, share, value, seed)
            clip = extremes.EXTREME_SHARE
            results.append(
                [found(X, y, method, clip), found(dirty, y, method, clip), found(dirty, y, method, 0.0)]
            )
        clean, clipped, raw = np.sum(results, axis=0)
        print(f"{method:20}  {clean:5}  {clipped:7}  {raw:11}  {len(results)}", flush=True)


if __name__ == "__main__":
    main()
