"""Encodes input columns as the numeric columns a model trains on; everything is fitted on the training rows.

Numbers are standardised. Missing numbers become the training mean, with an indicator column on request.
Categories are one-hot encoded. A number's column has variance 1; so have the columns of one category in sum.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from seqatt.data.tables.containers import InputTable

CHUNK_CELLS = 1 << 17  # float64 cells per chunk, so that a chunk fits into one core's cache
MIN_CHUNK_ROWS = 16  # rows per chunk, at least: the result of each chunk is as wide as the table
WORKERS = min(8, os.cpu_count() or 1)  # threads, each with one chunk at a time
DENSE_CELLS = 1 << 28  # cells (1 GiB as float32) up to which a sparse table is made dense once

Floats = NDArray[np.float64]
Moments = tuple[Floats, Floats, Floats]  # mean, standard deviation and share of missing values per column
Result = TypeVar("Result")


@dataclass(frozen=True)
class SparseColumns:
    """A sparse table too large to make dense as a whole: only requested rows are made dense."""

    data: Any
    shift: Floats
    scale: Floats

    def to_dense(self, rows: NDArray[np.int64]) -> NDArray[np.float32]:
        """The rows with these numbers, dense and standardised."""
        dense = self.data[rows].toarray()
        return np.asarray((dense - self.shift) / self.scale, dtype=np.float32)

    @property
    def shape(self) -> tuple[int, int]:
        return tuple(self.data.shape)


Columns = NDArray[np.float32] | SparseColumns


@dataclass(frozen=True)
class Encoder:
    """Fitted encoding of every input column.

    ``input_of[c]`` is the input column from which encoded column c is made. ``numeric`` are the numeric input
    columns; ``shift`` and ``scale`` have one value for each. ``indicated`` are those with a missing-value
    indicator column, and ``levels`` the one-hot categories of each categorical input column. ``missing_shares``
    is, per encoded column, the share of training rows whose number is missing and replaced by the mean.
    """

    numeric: list[int]
    shift: Floats
    scale: Floats
    indicated: list[int]
    indicator_shift: Floats
    indicator_scale: Floats
    levels: dict[int, list[str | None]]
    level_shift: dict[int, Floats]
    level_scale: dict[int, float]
    input_of: NDArray[np.int64]
    constant: NDArray[np.bool_]
    missing_shares: Floats

    @property
    def is_number(self) -> NDArray[np.bool_]:
        """Mask of the encoded columns that hold a standardised number, not a category or an indicator."""
        first = np.diff(self.input_of, prepend=-1) > 0
        return np.asarray(first & np.isin(self.input_of, self.numeric))

    def encode(self, table: InputTable, argument: str = "X") -> Columns:
        """The encoded columns of a table with the same input columns."""
        if table.sparse:
            return self._encode_sparse(table)
        if len(self.numeric) == len(self.input_of):
            return self._encode_numbers(table, argument)[0]
        out = np.empty((table.rows, len(self.input_of)), dtype=np.float32)
        values, missing = self._encode_numbers(table, argument)
        columns: dict[int, list[int]] = {}  # encoded columns per input column
        for column, position in enumerate(self.input_of):
            columns.setdefault(int(position), []).append(column)
        for j, position in enumerate(self.numeric):
            out[:, columns[position][0]] = values[:, j]
        for j, position in enumerate(self.indicated):
            is_missing = missing[:, self.numeric.index(position)]
            out[:, columns[position][1]] = (is_missing - self.indicator_shift[j]) / self.indicator_scale[j]
        for position, levels in self.levels.items():
            hot = _one_hot(table.labels(position), levels)
            out[:, columns[position]] = (hot - self.level_shift[position]) / self.level_scale[position]
        return out

    def _encode_numbers(self, table: InputTable, argument: str) -> tuple[NDArray[np.float32], Any]:
        """Standardised numbers, and where they are missing if any column has an indicator."""
        raw = table.numbers(self.numeric)
        out = np.empty(raw.shape, dtype=np.float32)
        missing = np.zeros(raw.shape, dtype=bool) if self.indicated else None

        def standardise(rows: slice) -> None:
            values = raw[rows].astype(np.float64)
            with np.errstate(over="ignore", invalid="ignore"):  # the result is checked below
                values -= self.shift
                values /= self.scale
                out[rows] = values
            if np.isfinite(out[rows]).all():
                return
            values = raw[rows].astype(np.float64)
            is_missing = np.isnan(values)
            _check_finite(values, is_missing, self.numeric, table, argument)
            out[rows][is_missing] = 0.0  # the training mean, standardised
            _check_not_too_large(np.abs(out[rows]).max(0), self.numeric, table, argument)
            if missing is not None:
                missing[rows] = is_missing

        for _ in map_chunks(raw, standardise):
            pass
        return out, missing

    def _encode_sparse(self, table: InputTable) -> Columns:
        sparse = SparseColumns(table.data, self.shift, self.scale)
        if table.rows * len(self.input_of) > DENSE_CELLS:
            return sparse
        return sparse.to_dense(np.arange(table.rows))


def fit_encoder(
    table: InputTable,
    weights: Floats | None,
    *,
    missing_indicator: bool = False,
    max_categories: int = 64,
    argument: str = "X",
) -> Encoder:
    """Fit means, standard deviations and categories on the training rows."""
    numeric = [i for i, kind in enumerate(table.kinds) if kind != "categorical"]
    if table.sparse:
        mean, spread, missing = _sparse_moments(table, weights, argument)
    else:
        mean, spread, missing = _moments(table, numeric, weights, argument)
    indicated = [p for p, share in zip(numeric, missing, strict=True) if missing_indicator and 0 < share < 1]
    indicator_mean = np.array([share for share in missing if missing_indicator and 0 < share < 1])
    constant = np.zeros(len(table.names), dtype=bool)
    constant[numeric] = spread == 0
    constant[indicated] = False
    levels: dict[int, list[str | None]] = {}
    level_shift: dict[int, Floats] = {}
    level_scale: dict[int, float] = {}
    for position, kind in enumerate(table.kinds):
        if kind == "categorical":
            levels[position] = _levels(table.labels(position), max_categories)
            hot = _one_hot(table.labels(position), levels[position])
            level_shift[position] = np.average(hot, axis=0, weights=weights)
            variance = float(np.sum(level_shift[position] * (1 - level_shift[position])))
            constant[position] = variance <= 0
            level_scale[position] = np.sqrt(variance) if variance > 0 else 1.0
    widths = [len(levels.get(p, "x")) + (p in indicated) for p in range(len(table.names))]
    missing_shares = np.zeros(sum(widths))
    missing_shares[(np.cumsum(widths) - widths)[numeric]] = missing  # the first encoded column is the number
    return Encoder(
        numeric,
        mean,
        np.where(spread > 0, spread, 1.0),
        indicated,
        indicator_mean,
        np.sqrt(indicator_mean * (1 - indicator_mean)),
        levels,
        level_shift,
        level_scale,
        np.repeat(np.arange(len(widths)), widths),
        constant,
        missing_shares,
    )


def _moments(table: InputTable, numeric: list[int], weights: Floats | None, argument: str) -> Moments:
    """In two passes over chunks of rows."""
    raw = table.numbers(numeric)

    def sums(rows: slice) -> tuple[Any, ...]:
        values = raw[rows].astype(np.float64)
        w = np.ones(len(values)) if weights is None else weights[rows]
        low, high = values.min(0), values.max(0)
        if np.isfinite(low).all() and np.isfinite(high).all():
            return low, high, w @ values, w.sum(), 0.0, False
        is_missing = np.isnan(values)
        _check_finite(values, is_missing, numeric, table, argument)
        low = np.min(np.where(is_missing, np.inf, values), axis=0)
        high = np.max(np.where(is_missing, -np.inf, values), axis=0)
        values[is_missing] = 0.0
        return low, high, w @ values, w @ ~is_missing, w @ is_missing, True

    width = raw.shape[1]
    total, present, missing = np.zeros(width), np.zeros(width), np.zeros(width)
    low, high, any_missing = np.full(width, np.inf), np.full(width, -np.inf), False
    for chunk_low, chunk_high, chunk_total, chunk_present, chunk_missing, some_missing in map_chunks(
        raw, sums
    ):
        low, high = np.minimum(low, chunk_low), np.maximum(high, chunk_high)
        total, present, missing = total + chunk_total, present + chunk_present, missing + chunk_missing
        any_missing = any_missing or some_missing
    mean = total / np.where(present > 0, present, 1.0)
    # Squares of very large or very small deviations leave float64; relative to the largest they never do.
    max_deviation = np.where(low < high, np.maximum(high - mean, mean - low), 1.0)
    _check_not_too_large(mean + max_deviation, numeric, table, argument)

    def squares(rows: slice) -> Floats:
        values = raw[rows].astype(np.float64)
        values -= mean
        values /= max_deviation
        np.square(values, out=values)
        if any_missing:
            values[np.isnan(values)] = 0.0
        return np.asarray(values.sum(0) if weights is None else weights[rows] @ values)

    square = np.zeros(width)
    for chunk_square in map_chunks(raw, squares):
        square += chunk_square
    spread = max_deviation * np.sqrt(square / (present + missing))
    return mean, np.where(low < high, spread, 0.0), missing / (present + missing)


def _sparse_moments(table: InputTable, weights: Floats | None, argument: str) -> Moments:
    data = table.data.astype(np.float64)
    if not np.isfinite(data.data).all():
        raise ValueError(f"{argument}: a sparse matrix must not hold NaN or infinity; fill them in")
    w = np.ones(table.rows) if weights is None else weights
    mean = np.asarray(w @ data).ravel() / w.sum()
    # Squared deviations: (x - mean)^2 for stored cells, mean^2 for all others.
    low, high = (np.asarray(m.todense()).ravel() for m in (data.min(0), data.max(0)))
    max_deviation = np.where(low < high, np.maximum(high - mean, mean - low), 1.0)
    _check_not_too_large(mean + max_deviation, list(range(len(mean))), table, argument)
    centred = data.copy()
    centred.data = ((centred.data - mean[centred.indices]) / max_deviation[centred.indices]) ** 2
    pattern = data.copy()
    pattern.data = np.ones_like(pattern.data)
    stored = np.asarray(w @ pattern).ravel()
    rest = (w.sum() - stored) * (mean / max_deviation) ** 2
    spread = max_deviation * np.sqrt((np.asarray(w @ centred).ravel() + rest) / w.sum())
    return mean, np.where(low < high, spread, 0.0), np.zeros(len(mean))


def map_chunks(raw: NDArray[Any], work: Callable[[slice], Result]) -> Iterator[Result]:
    """``work`` of each chunk of rows, computed on several threads, in the order of the rows."""
    step = max(MIN_CHUNK_ROWS, CHUNK_CELLS // max(1, raw.shape[1]))
    chunks = [slice(start, start + step) for start in range(0, len(raw), step)]
    if len(chunks) < 2 * WORKERS:
        yield from map(work, chunks)
        return
    with ThreadPoolExecutor(WORKERS) as pool:
        yield from pool.map(work, chunks)


def _check_finite(
    values: Floats, is_missing: NDArray[np.bool_], numeric: list[int], table: InputTable, argument: str
) -> None:
    bad = ~np.isfinite(values) & ~is_missing
    if bad.any():
        name = table.names[numeric[int(np.argmax(bad.any(0)))]]
        raise ValueError(
            f"{argument}: column {name!r} contains infinity; replace infinite values, for example "
            "by NaN, which is read as missing"
        )


def _check_not_too_large(values: Floats, numeric: list[int], table: InputTable, argument: str) -> None:
    bad = ~np.isfinite(values)
    if bad.any():
        name = table.names[numeric[int(np.argmax(bad))]]
        raise ValueError(f"{argument}: column {name!r} holds values too large to work with; rescale it")


def _levels(labels: NDArray[np.object_], max_levels: int) -> list[str | None]:
    """The most frequent categories; missing counts as one. All others are encoded as a row of zeros."""
    counts: dict[str | None, int] = {}
    for label in labels:
        counts[label] = counts.get(label, 0) + 1
    ranked = sorted(counts, key=lambda level: (-counts[level], level is None, str(level)))
    if len(ranked) == 2:
        return ranked[1:]  # one column distinguishes two categories
    return ranked[:max_levels]


def _one_hot(labels: NDArray[np.object_], levels: list[str | None]) -> Floats:
    column = {level: j for j, level in enumerate(levels)}
    hot = np.zeros((len(labels), len(levels)))
    for i, label in enumerate(labels):
        if (j := column.get(label)) is not None:
            hot[i, j] = 1.0
    return hot
