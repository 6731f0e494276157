"""What the linear functions are given, checked before any work."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from seqatt.linear.design_matrix import DesignMatrix
from seqatt.linear.threads import Floats


def read_rows(X: Any) -> Any:
    """A matrix of numbers, dense or sparse (by rows), of any type; the caller insists on finite sums."""
    rows = X.tocsr() if sp.issparse(X) else np.asarray(X)
    if rows.ndim != 2 or 0 in rows.shape:
        raise ValueError(f"X: must have rows and columns, at least one of each, got shape {rows.shape}")
    if rows.dtype.kind not in "fiub":
        raise TypeError(f"X: must hold numbers, got {rows.dtype}; seqatt.select takes tables of any kind")
    return rows


def insist_on_finite(sums: Floats) -> None:
    """Sums over rows show NaN and infinity in any of them, without a pass of their own."""
    if not np.isfinite(sums).all():
        raise ValueError(
            "X: contains NaN, infinity or numbers too large to square; fill them in or rescale, or use "
            "seqatt.select, which takes missing values"
        )


def read_targets(y: Any, rows: int) -> tuple[Floats, bool]:
    """``(n, o)`` finite float64, and whether ``y`` was flat."""
    if y is None:
        raise ValueError("y: a target is needed; only a Gram has one of its own")
    targets = np.asarray(y)
    if targets.dtype.kind not in "fiub":
        raise TypeError(f"y: must hold numbers, got {targets.dtype}; seqatt.select takes classes")
    flat = targets.ndim == 1
    targets = (
        targets.astype(np.float64, copy=False).reshape(len(targets), -1)
        if targets.ndim in (1, 2)
        else targets
    )
    if targets.ndim != 2 or targets.shape[1] == 0:
        raise ValueError(f"y: must have a value a row, or a row of them, got shape {targets.shape}")
    if len(targets) != rows:
        raise ValueError(f"X has {rows} rows and y has {len(targets)}: they must have the same length")
    if not np.isfinite(targets).all():
        raise ValueError("y: contains NaN or infinity; drop those rows")
    return targets, flat


def read_weights(sample_weight: Any, rows: int) -> Floats | None:
    if sample_weight is None:
        return None
    weights = np.asarray(sample_weight, dtype=np.float64)
    if weights.shape != (rows,) or not np.isfinite(weights).all() or (weights < 0).any():
        raise ValueError(f"sample_weight: must be {rows} finite numbers, none negative")
    return weights


def read_k(k: Any, features: int) -> int:
    if isinstance(k, bool) or not hasattr(k, "__index__"):
        raise TypeError(f"k: must be a whole number of features, got {k!r}")
    if not 1 <= int(k) <= features:
        raise ValueError(f"k: must be from 1 to the {features} features there are, got {k}")
    return int(k)


@dataclass(frozen=True)
class FeatureBlocks:
    """Which columns each feature owns: ``feature_of[c]`` is the feature of column c."""

    feature_of: NDArray[np.intp]
    count: int
    single: bool

    def columns(self, features: Any) -> NDArray[np.intp]:
        """Columns of some features, in the features' order."""
        if self.single:
            return np.atleast_1d(np.asarray(features, dtype=np.intp))
        return np.concatenate([np.flatnonzero(self.feature_of == f) for f in np.atleast_1d(features)])

    def norms(self, cross: Floats) -> Floats:
        """The length of each feature's block of ``cross`` (columns, targets)."""
        if self.single:
            return np.abs(cross[:, 0]) if cross.shape[1] == 1 else np.sqrt(np.sum(cross**2, axis=1))
        return np.sqrt(np.bincount(self.feature_of, np.sum(cross**2, axis=1), self.count))

    def most(self, values: Floats) -> Floats:
        """The largest of each feature's columns' values."""
        if self.single:
            return values
        out = np.zeros(self.count)
        np.maximum.at(out, self.feature_of, values)
        return out


def read_blocks(groups: Any, columns: int) -> FeatureBlocks:
    """``groups[c]`` is the feature that column c belongs to; None: each column is one."""
    if groups is None:
        return FeatureBlocks(np.arange(columns), columns, True)
    feature_of = np.asarray(groups)
    if feature_of.shape != (columns,) or feature_of.dtype.kind not in "iu" or feature_of.min() < 0:
        raise ValueError(f"groups: must be {columns} whole numbers from 0 on, the feature of each column")
    count = int(feature_of.max()) + 1
    if len(np.unique(feature_of)) != count:
        raise ValueError(f"groups: every number from 0 to {count - 1} must own a column")
    single = count == columns and bool((feature_of == np.arange(columns)).all())
    return FeatureBlocks(feature_of.astype(np.intp), count, single)


def make_design(
    X: Any, y: Any, weights: Any, *, centre: bool, scale: bool
) -> tuple[DesignMatrix, Floats, bool]:
    """Rows and targets as the methods want them: centred, scaled and weighted as asked."""
    rows = read_rows(X)
    targets, flat = read_targets(y, rows.shape[0])
    w = read_weights(weights, rows.shape[0])
    raw = DesignMatrix(rows, ((0, rows.shape[0]),))
    if w is None and not centre and not scale:
        return raw, targets, flat
    even = np.full(rows.shape[0], 1.0) if w is None else w
    total = even.sum()
    if total <= 0:
        raise ValueError("sample_weight: every weight is zero; there is nothing to learn from")
    none = np.empty(0, dtype=np.intp)
    mean = raw.products(none, even[:, None])[0] / total if centre or scale else None
    if mean is not None:
        insist_on_finite(mean)
    root = None if w is None else np.sqrt(w)
    around = DesignMatrix(raw.data, raw.spans, mean, None, root)
    unit = None
    if scale:
        assert mean is not None
        deviation = np.sqrt(around.norms() / total)
        unit = np.where(deviation > 1e-12 * np.abs(mean), deviation, 1.0)
    if centre:
        targets = targets - even @ targets / total
    if root is not None:
        targets = targets * root[:, None]
    return DesignMatrix(raw.data, raw.spans, mean if centre else None, unit, root), targets, flat
