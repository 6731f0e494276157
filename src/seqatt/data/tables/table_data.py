"""A table and its target, checked and encoded for training.

Features of a data frame are sorted by name, so that a selection does not depend on the order of its columns.
All methods work in this order; ``user_position`` maps it back to the order of the user's columns.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from seqatt.data.tables.column_notes import note_columns
from seqatt.data.tables.column_roles import log1p_columns, read_columns
from seqatt.data.tables.containers import read_input_table
from seqatt.data.tables.encoding import Columns, EncodedTable, Encoder, SparseColumns, fit_encoder
from seqatt.data.tables.groups import Groups, given_feature_names, list_features
from seqatt.data.tables.options import Categories
from seqatt.data.tables.row_units import RowUnits, read_row_units, with_queries
from seqatt.data.tables.target import Target, is_structured, read_target, target_array
from seqatt.data.tables.weights import effective_sample_size, read_row_weights, with_class_weights
from seqatt.validation import integer, show

__all__ = [
    "SparseColumns",
    "TableData",
    "constant_within",
    "read_table_data",
    "resolve_k",
    "take_features",
    "take_rows",
]

FEW_ROWS = 1024  # rows in which nearly every feature varies that varies in all rows


@dataclass(frozen=True)
class TableData:
    """Encoded training rows, target and weights, and how encoded columns map to features.

    ``columns`` are (rows, encoded columns) and ``feature_of[c]`` is the feature of encoded column c. ``codes`` are
    (rows, m), one column per category that is not one-hot encoded, and ``coded_features[j]`` is its feature.
    ``input_columns[f]`` are the input columns of feature f (several for a group), and ``user_position[f]`` is
    the position of feature f in the user's order. ``input_names`` are the names of all input columns, and
    ``column_order`` the input columns in the order in which they are encoded. ``effective_rows`` is the
    effective sample size: how many rows of weight 1 carry as much information. ``given_names`` and
    ``given_input_names`` are ``names`` and ``input_names`` as the user gave them, such as 3 for "3". ``units`` are rows
    that stay together wherever some are held out. ``notes`` are sentences about defects of the columns.
    """

    columns: Columns
    codes: NDArray[np.int32]
    feature_of: NDArray[np.int64]
    coded_features: NDArray[np.int64]
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
    given_names: tuple[Any, ...]
    given_input_names: tuple[Any, ...]
    units: RowUnits | None = None
    notes: tuple[str, ...] = ()

    @property
    def rows(self) -> int:
        return int(self.columns.shape[0])

    @property
    def features(self) -> int:
        return len(self.names)

    @property
    def encoded_columns(self) -> int:
        """Columns of numbers and of codes."""
        return len(self.feature_of) + len(self.coded_features)

    @property
    def code_counts(self) -> tuple[int, ...]:
        """The number of codes of each column of ``codes``."""
        return tuple(1 + len(category.values) for category in self.encoder.coded.values())

    def encode(self, X: Any, argument: str = "X") -> EncodedTable:
        """Encode other rows of the same table; a data frame may have more columns, in any order."""
        table = read_input_table(X, argument)
        if table.named and table.names != self.input_names:
            missing = [name for name in self.input_names if name not in table.names]
            if missing:
                raise ValueError(f"{argument}: column {missing[0]!r} is missing; the training rows have it")
            table = table.select([table.names.index(name) for name in self.input_names])
        return self.encoder.encode(table.select(self.column_order), argument)


def read_table_data(
    X: Any,
    y: Any,
    *,
    sample_weight: Any = None,
    class_weight: Mapping[Any, float] | str | None = None,
    groups: Groups | None = None,
    task: str | None = None,
    groups_of_rows: Any = None,
    time: Any = None,
    quantile: float = 0.5,
    missing_indicator: bool = False,
    categories: Categories = "one_hot",
    max_categories: int = 64,
    column_types: Mapping[str, str] = MappingProxyType({}),
    ignore: Sequence[str] = (),
    log1p: bool | Sequence[str] = False,
    negatives_kept: float = 1.0,
    by_name: bool = True,
    arguments: tuple[str, str] = ("X", "y"),
) -> TableData:
    """Check all arguments, then encode the table.

    ``y``, ``sample_weight``, ``groups_of_rows`` and ``time`` may be names of columns of ``X``, which are then no
    features. ``categories`` says which categories are one-hot encoded: all, with ``max_categories`` columns each
    ("one_hot"), those of a few values ("mixed") or none ("codes"). ``by_name`` sorts the features of a data frame by
    name.
    """
    integer(1)("max_categories", max_categories)  # other options are checked where they are declared
    of_rows = {"groups_of_rows": groups_of_rows, "time": time}
    table, y, sample_weight, of_rows = read_columns(
        X, y, sample_weight, ignore, column_types, arguments, of_rows
    )
    reconstruct = task == "reconstruction"
    if reconstruct:
        categories = "one_hot"
    labels = np.empty((table.rows, 0)) if reconstruct and y is None else target_array(y, arguments[1])
    task = "survival" if task is None and is_structured(y) else task
    if len(labels) != table.rows:
        raise ValueError(
            f"{arguments[0]} has {table.rows} rows and {arguments[1]} has {len(labels)}: "
            "they must have the same length"
        )
    weights = read_row_weights(sample_weight, table.rows)
    units = read_row_units(**with_queries(of_rows, labels, task), rows=table.rows)
    if weights is not None and not weights.all():
        used = weights > 0
        table, labels, weights = table.select_rows(used), labels[used], weights[used]
        units = units and units.take(used)
    if table.rows < 2:
        raise ValueError(f"{arguments[0]}: at least 2 rows are needed, got {table.rows}")
    features = list_features(table.names, groups)
    given_input_names = tuple(table.given_names.get(name, name) for name in table.names)
    given_names = given_feature_names(features, table.names, given_input_names, groups)
    order = np.arange(len(features))
    if table.named and by_name:
        order = np.array(sorted(order, key=lambda f: features[f][0]))
    input_columns = tuple(features[f][1] for f in order)
    column_order = tuple(column for columns in input_columns for column in columns)
    ordered = table if column_order == tuple(range(len(table.names))) else table.select(column_order)
    if reconstruct and y is None:
        target = Target("reconstruction", labels, 0)  # the columns follow when they are encoded
    else:
        target = read_target(labels, weights, task, arguments[1], quantile)
    row_weights, weights = weights, with_class_weights(weights, class_weight, negatives_kept, target)
    effective_rows = effective_sample_size(row_weights, weights, table.rows)
    if weights is not None and not weights.all():  # classes of weight zero
        used = weights > 0
        ordered, weights = ordered.select_rows(used), weights[used]
        target, units = replace(target, values=target.values[used]), units and units.take(used)
        if ordered.rows < 2:
            raise ValueError("class_weight: only one row has a weight above zero; at least 2 are needed")
    encoder = fit_encoder(
        ordered,
        weights,
        missing_indicator=missing_indicator,
        categories=categories,
        max_categories=max_categories,
        log1p=log1p_columns(log1p, ordered.names, ordered.kinds),
        argument=arguments[0],
    )
    feature_of_input = np.repeat(np.arange(len(features)), [len(columns) for columns in input_columns])
    constant = np.ones(len(features), dtype=bool)
    np.logical_and.at(constant, feature_of_input, encoder.constant)
    if constant.all():
        raise ValueError(
            f"{arguments[0]}: every feature is constant, or text that never repeats; there is nothing to choose from"
        )
    columns, codes = encoder.encode(ordered, arguments[0])
    feature_of = feature_of_input[encoder.input_of]
    if reconstruct:
        if isinstance(columns, SparseColumns):
            raise ValueError(f"{arguments[0]}: is too large a sparse table for task='reconstruction'")
        target = Target("reconstruction", columns, columns.shape[1])
    return TableData(
        columns=columns,
        codes=codes,
        feature_of=feature_of,
        coded_features=feature_of_input[list(encoder.coded)],
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
        given_names=tuple(given_names[f] for f in order),
        given_input_names=given_input_names,
        units=units,
        notes=note_columns(ordered, encoder, target, missing_indicator=missing_indicator),
    )


def take_rows(data: TableData, rows: NDArray[np.int64]) -> TableData:
    """Some rows of a table, encoded as all are; features that are constant there are marked."""
    columns, codes = data.columns, data.codes[rows]
    if isinstance(columns, SparseColumns):
        columns = SparseColumns(columns.data[rows], columns.shift, columns.scale)
        lowest, highest = (columns.data.min(axis=0), columns.data.max(axis=0))
        differs = (lowest != highest).toarray().ravel()
    else:
        columns = columns[rows]
        differs = columns.min(0) < columns.max(0)
    varies = np.zeros(data.features, dtype=bool)
    np.logical_or.at(varies, data.feature_of, differs)
    if codes.shape[1]:
        np.logical_or.at(varies, data.coded_features, codes.min(0) < codes.max(0))
    return replace(
        data,
        columns=columns,
        codes=codes,
        constant=data.constant | ~varies,
        target=replace(data.target, values=data.target.values[rows]),
        weights=None if data.weights is None else data.weights[rows],
        units=data.units and data.units.take(rows),
        effective_rows=data.effective_rows * len(rows) / data.rows,
    )


def constant_within(data: TableData, rows: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Which features (d,) are constant in these rows of a table."""
    few = rows[:: max(1, len(rows) // FEW_ROWS)]
    constant = take_rows(data, few).constant
    # A feature that varies in a few rows varies in all of them, so that a large table is seldom copied as a whole.
    return constant if (constant == data.constant).all() else take_rows(data, rows).constant


def take_features(data: TableData, features: NDArray[np.int64]) -> TableData:
    """Some features of a table, in the order of the table; ``features`` are their numbers, rising."""
    columns = np.flatnonzero(np.isin(data.feature_of, features))
    codes = np.flatnonzero(np.isin(data.coded_features, features))
    feature_of_input = np.repeat(np.arange(data.features), [len(inputs) for inputs in data.input_columns])
    inputs = np.flatnonzero(np.isin(feature_of_input, features))
    table = data.columns
    return replace(
        data,
        columns=table.select(columns) if isinstance(table, SparseColumns) else table[:, columns],
        codes=data.codes[:, codes],
        feature_of=np.searchsorted(features, data.feature_of[columns]),
        coded_features=np.searchsorted(features, data.coded_features[codes]),
        names=tuple(data.names[f] for f in features),
        input_columns=tuple(data.input_columns[f] for f in features),
        user_position=np.argsort(np.argsort(data.user_position[features])),
        constant=data.constant[features],
        encoder=data.encoder.take_inputs(inputs),
        column_order=tuple(data.column_order[i] for i in inputs),
        given_names=tuple(data.given_names[f] for f in features),
    )


def resolve_k(k: Any, features: int) -> int:
    """The number of features to select: ``k``, or that fraction of ``features`` if ``k`` is a float."""
    if isinstance(k, bool | np.bool_) or not isinstance(k, int | float | np.integer | np.floating):
        raise TypeError(f"k: must be a whole number or a fraction, got {show(k)}")
    if isinstance(k, float | np.floating):
        if not 0 < k <= 1:
            remedy = f"use {k:.0f}" if k >= 1 and float(k).is_integer() else "use a whole number"
            raise ValueError(
                f"k: a float is a fraction of the features, above 0 and at most 1, got {k}; "
                f"{remedy} for that many features"
            )
        return max(1, int(k * features))
    if k < 1:
        raise ValueError(f"k: must be at least 1, got {k}")
    if k > features:
        raise ValueError(f"k: {k} features requested, but the table has {features}; use at most {features}")
    return int(k)
