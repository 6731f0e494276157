"""A table and its target, checked and encoded for training.

Features of a data frame are sorted by name, so that a selection does not depend on the order of its columns.
All methods work in this order; ``user_position`` maps it back to the order of the user's columns.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from seqatt.data.tables.containers import read_input_table
from seqatt.data.tables.encoding import Columns, Encoder, SparseColumns, fit_encoder
from seqatt.data.tables.groups import Groups, list_features
from seqatt.data.tables.target import Target, read_target, target_array

__all__ = ["Groups", "SparseColumns", "TableData", "read_table_data", "resolve_k"]


@dataclass(frozen=True)
class TableData:
    """Encoded training rows, target and weights, and how encoded columns map to features.

    ``columns`` are (rows, encoded columns). ``feature_of[c]`` is the feature of encoded column c,
    ``input_columns[f]`` are the input columns of feature f (several for a group), and ``user_position[f]`` is
    the position of feature f in the user's order. ``input_names`` are the names of all input columns, and
    ``column_order`` the input columns in the order in which they are encoded. ``effective_rows`` is the
    effective sample size: how many rows of weight 1 carry as much information.
    """

    columns: Columns
    feature_of: NDArray[np.int64]
    names: tuple[str, ...]
    input_columns: tuple[tuple[int, ...], ...]
    user_position: NDArray[np.int64]
    constant: NDArray[np.bool_]
    target: Target
    weights: NDArray[np.float32] | None
    encoder: Encoder
    column_order: tuple[int, ...]
    input_names: tuple[str, ...]
    effective_rows: float

    @property
    def rows(self) -> int:
        return int(self.columns.shape[0])

    @property
    def features(self) -> int:
        return len(self.names)

    def encode(self, X: Any, argument: str = "X") -> Columns:
        """Encode other rows of the same table."""
        return self.encoder.encode(read_input_table(X, argument).select(self.column_order), argument)


def read_table_data(
    X: Any,
    y: Any,
    *,
    sample_weight: Any = None,
    class_weight: Mapping[Any, float] | str | None = None,
    groups: Groups | None = None,
    task: str | None = None,
    missing_indicator: bool = False,
    max_categories: int = 64,
    by_name: bool = True,
    arguments: tuple[str, str] = ("X", "y"),
) -> TableData:
    """Check all arguments, then encode the table. ``by_name`` sorts the features of a data frame by name."""
    whole = hasattr(max_categories, "__index__") and not isinstance(max_categories, bool)
    if not whole or max_categories < 1:
        raise ValueError(f"max_categories: must be a whole number of at least 1, got {max_categories!r}")
    table = read_input_table(X, arguments[0])
    labels = target_array(y, arguments[1])
    if len(labels) != table.rows:
        raise ValueError(
            f"{arguments[0]} has {table.rows} rows and {arguments[1]} has {len(labels)}: "
            "they must have the same length"
        )
    weights = _row_weights(sample_weight, table.rows)
    if weights is not None and not weights.all():
        used = weights > 0
        table, labels, weights = table.select_rows(used), labels[used], weights[used]
    if table.rows < 2:
        raise ValueError(f"{arguments[0]}: at least 2 rows are needed, got {table.rows}")
    features = list_features(table, groups)
    order = np.arange(len(features))
    if table.named and by_name:
        order = np.array(sorted(order, key=lambda f: features[f][0]))
    input_columns = tuple(features[f][1] for f in order)
    column_order = tuple(column for columns in input_columns for column in columns)
    ordered = table if column_order == tuple(range(len(table.names))) else table.select(column_order)
    target = read_target(labels, weights, task, arguments[1])
    row_weights, weights = weights, _with_class_weight(weights, class_weight, target)
    effective_rows = _effective_rows(row_weights, weights, table.rows)
    if weights is not None and not weights.all():  # classes of weight zero
        used = weights > 0
        ordered, weights = ordered.select_rows(used), weights[used]
        target = replace(target, values=target.values[used])
        if ordered.rows < 2:
            raise ValueError("class_weight: only one row has a weight above zero; at least 2 are needed")
    encoder = fit_encoder(
        ordered,
        weights,
        missing_indicator=missing_indicator,
        max_categories=max_categories,
        argument=arguments[0],
    )
    feature_of = np.repeat(np.arange(len(features)), [len(columns) for columns in input_columns])
    constant = np.ones(len(features), dtype=bool)
    np.logical_and.at(constant, feature_of, encoder.constant)
    if constant.all():
        raise ValueError(f"{arguments[0]}: every feature is constant; there is nothing to choose from")
    return TableData(
        columns=encoder.encode(ordered, arguments[0]),
        feature_of=feature_of[encoder.input_of],
        names=tuple(features[f][0] for f in order),
        input_columns=input_columns,
        user_position=order,
        constant=constant,
        target=target,
        weights=None if weights is None else weights.astype(np.float32),
        encoder=encoder,
        column_order=column_order,
        input_names=table.names,
        effective_rows=effective_rows,
    )


def resolve_k(k: Any, features: int, argument: str = "k") -> int:
    """The number of features to select: ``k``, or that fraction of ``features`` if ``k`` is a float."""
    if isinstance(k, bool | np.bool_) or not isinstance(k, int | float | np.integer | np.floating):
        raise TypeError(f"{argument}: must be a whole number or a fraction, got {k!r}")
    if isinstance(k, float | np.floating):
        if not 0 < k <= 1:
            raise ValueError(
                f"{argument}: a float is a fraction of the features, above 0 and at most 1, got {k}; "
                f"use a whole number for that many features"
            )
        return max(1, int(k * features))
    if k < 1:
        raise ValueError(f"{argument}: must be at least 1, got {k}")
    if k > features:
        raise ValueError(
            f"{argument}: {k} features requested, but the table has {features}; use at most {features}"
        )
    return int(k)


def _row_weights(sample_weight: Any, rows: int) -> NDArray[np.float64] | None:
    if sample_weight is None:
        return None
    try:
        weights = np.asarray(sample_weight, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError("sample_weight: must hold numbers, one per row") from None
    if weights.shape != (rows,):
        raise ValueError(
            f"sample_weight: must have one value for each of the {rows} rows, got shape {weights.shape}"
        )
    if not np.isfinite(weights).all() or (weights < 0).any():
        raise ValueError("sample_weight: must be finite and not negative")
    if not weights.any():
        raise ValueError("sample_weight: every weight is zero; there is nothing to learn from")
    return weights


def _effective_rows(
    row_weights: NDArray[np.float64] | None, weights: NDArray[np.float64] | None, rows: int
) -> float:
    """Kish's effective sample size, ``(sum w)^2 / sum w^2``; whole row weights count as repeated rows.

    ``row_weights`` are the user's, ``weights`` are multiplied by class weights.
    """
    if weights is None:
        return float(rows)
    row_weights = np.ones(rows) if row_weights is None else row_weights
    repeats = row_weights if not (row_weights % 1).any() else np.ones(rows)
    each = weights / weights.max() / np.maximum(repeats, 1)
    return float((repeats * each).sum() ** 2 / (repeats * each**2).sum())


def _with_class_weight(
    weights: NDArray[np.float64] | None,
    class_weight: Mapping[Any, float] | str | None,
    target: Target,
) -> NDArray[np.float64] | None:
    """Row weights times class weights, with mean 1; None if neither is given."""
    if class_weight is not None:
        if target.classes is None:
            raise ValueError(f"class_weight: needs a target of classes, but the task is {target.task}")
        codes = target.values.reshape(len(target.values)).astype(np.int64)
        base = np.ones(len(codes)) if weights is None else weights
        weights = base * compute_class_weights(class_weight, target.classes, codes, base)[codes]
        if not weights.any():
            raise ValueError(
                "class_weight: every row has weight zero; give a class that occurs a weight above zero"
            )
    return None if weights is None else weights / weights.mean()


def compute_class_weights(
    class_weight: Mapping[Any, float] | str,
    classes: NDArray[Any],
    codes: NDArray[np.int64],
    base: NDArray[np.float64],
) -> NDArray[np.float64]:
    """One weight per class; "balanced" gives all classes the same total of ``base`` (row weights)."""
    if class_weight == "balanced":
        totals = np.array([base[codes == code].sum() for code in range(len(classes))])
        return np.asarray(base.sum() / (len(classes) * totals))
    if not isinstance(class_weight, Mapping):
        raise ValueError(f"class_weight: use 'balanced' or a dict, got {class_weight!r}")
    labels = classes.tolist()
    unknown = [label for label in class_weight if label not in labels]
    if unknown:
        raise ValueError(f"class_weight: {unknown[0]!r} is not a label; the labels are {labels}")
    values = np.array([float(class_weight.get(label, 1.0)) for label in labels])
    if not np.isfinite(values).all() or (values < 0).any():
        raise ValueError("class_weight: must be finite and not negative")
    return values
