"""Checks and conversion of the arguments of the linear functions, before any computation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from seqatt.linear.design_matrix import NO_COLUMNS, DesignMatrix
from seqatt.linear.threads import Floats
from seqatt.validation import show


def read_rows(X: Any) -> Any:
    """A numeric matrix of any dtype, dense or CSR. The caller checks for NaN with ``check_finite``."""
    rows = X.tocsr() if sp.issparse(X) else np.asarray(X)
    if rows.ndim != 2 or 0 in rows.shape:
        raise ValueError(f"X: must have rows and columns, at least one of each, got shape {rows.shape}")
    if rows.dtype.kind not in "fiub":
        raise TypeError(f"X: must hold numbers, got {rows.dtype}; use seqatt.select for other tables")
    return rows


def check_finite(sums: Floats) -> None:
    """Raise if X has NaN or infinity. Sums over rows reveal both, so X needs no pass of its own."""
    if not np.isfinite(sums).all():
        raise ValueError(
            "X: contains NaN, infinity or numbers too large to square; fill them in or rescale, or use "
            "seqatt.select, which accepts missing values"
        )


def read_targets(y: Any, rows: int) -> tuple[Floats, bool]:
    """The targets as finite float64 (n, o), and whether ``y`` had one dimension."""
    if y is None:
        raise ValueError("y: a target is needed unless X is a Gram")
    targets = np.asarray(y)
    if targets.dtype.kind not in "fiub":
        raise TypeError(f"y: must hold numbers, got {targets.dtype}; use seqatt.select for classes")
    flat = targets.ndim == 1
    targets = (
        targets.astype(np.float64, copy=False).reshape(len(targets), -1)
        if targets.ndim in (1, 2)
        else targets
    )
    if targets.ndim != 2 or targets.shape[1] == 0:
        raise ValueError(f"y: must have shape (rows,) or (rows, targets), got shape {targets.shape}")
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
        raise TypeError(f"k: must be a whole number of features, got {show(k)}")
    if not 1 <= int(k) <= features:
        raise ValueError(f"k: must be from 1 to the {features} features of X, got {k}")
    return int(k)


@dataclass(frozen=True)
class FeatureBlocks:
    """The columns of each feature.

    ``feature_of[c]`` is the feature of column c, ``count`` the number of features, and ``single`` says that
    column c is feature c. The NumPy counterpart of training.feature_columns.FeatureColumns.
    """

    feature_of: NDArray[np.intp]
    count: int
    single: bool

    def columns(self, features: Any) -> NDArray[np.intp]:
        """Columns of some features, in the order of the features."""
        if self.single:
            return np.atleast_1d(np.asarray(features, dtype=np.intp))
        return np.concatenate([np.flatnonzero(self.feature_of == f) for f in np.atleast_1d(features)])

    def norms(self, cross: Floats) -> Floats:
        """The Euclidean length of each feature's block of ``cross`` (columns, targets)."""
        if self.single:
            return np.abs(cross[:, 0]) if cross.shape[1] == 1 else np.sqrt(np.sum(cross**2, axis=1))
        return np.sqrt(np.bincount(self.feature_of, np.sum(cross**2, axis=1), self.count))

    def block_max(self, values: Floats) -> Floats:
        """The largest value among each feature's columns; ``values`` are not negative."""
        if self.single:
            return values
        out = np.zeros(self.count)
        np.maximum.at(out, self.feature_of, values)
        return out


def read_blocks(groups: Any, columns: int) -> FeatureBlocks:
    """``groups[c]`` is the feature of column c; None makes every column a feature."""
    if groups is None:
        return FeatureBlocks(np.arange(columns), columns, True)
    feature_of = np.asarray(groups)
    if feature_of.shape != (columns,) or feature_of.dtype.kind not in "iu" or feature_of.min() < 0:
        raise ValueError(f"groups: must be {columns} whole numbers from 0 on, the feature of each column")
    count = int(feature_of.max()) + 1
    if len(np.unique(feature_of)) != count:
        raise ValueError(f"groups: every number from 0 to {count - 1} must have at least one column")
    single = count == columns and bool((feature_of == np.arange(columns)).all())
    return FeatureBlocks(feature_of.astype(np.intp), count, single)


def make_design(
    X: Any, y: Any, weights: Any, *, centre: bool, scale: bool
) -> tuple[DesignMatrix, Floats, bool]:
    """X and the targets (n, o), centred, scaled and weighted; and whether ``y`` had one dimension."""
    rows = read_rows(X)
    targets, flat = read_targets(y, rows.shape[0])
    sample_weight = read_weights(weights, rows.shape[0])
    raw = DesignMatrix(rows)
    if sample_weight is None and not centre and not scale:
        return raw, targets, flat
    row_weights = np.full(rows.shape[0], 1.0) if sample_weight is None else sample_weight
    total = row_weights.sum()
    if total <= 0:
        raise ValueError("sample_weight: every weight is zero; at least one row needs a positive weight")
    mean = raw.products(NO_COLUMNS, row_weights[:, None])[0] / total if centre or scale else None
    if mean is not None:
        check_finite(mean)
    root = None if sample_weight is None else np.sqrt(sample_weight)
    centred = DesignMatrix(raw.data, mean, None, root)
    unit = None
    if scale:
        assert mean is not None
        deviation = np.sqrt(centred.squared_norms() / total)
        unit = np.where(deviation > 1e-12 * np.abs(mean), deviation, 1.0)
    if centre:
        targets = targets - row_weights @ targets / total
    if root is not None:
        targets = targets * root[:, None]
    return DesignMatrix(raw.data, mean if centre else None, unit, root), targets, flat
