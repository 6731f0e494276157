"""Encodes input columns as the columns a model trains on; everything is fitted on the training rows.

Numbers are standardised; numbers far from all others are clipped first. Missing numbers become the training mean, with
an indicator column on request. Categories are one-hot encoded, or become codes for an embedding. The column of a number
has variance 1, and the one-hot columns of a category have variance 1 in sum.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from seqatt.data.tables.categories import ONE_HOT_VALUES, FittedCategory, find_values, fit_category
from seqatt.data.tables.containers import InputTable
from seqatt.data.tables.numbers.extremes import Extremes, clipped_moments
from seqatt.data.tables.numbers.moments import (
    CHUNK_CELLS,
    WORKERS,
    Floats,
    check_finite,
    check_not_too_large,
    check_sparse,
    map_numbers,
    sparse_log1p,
    sparse_moments,
    to_floats,
)
from seqatt.data.tables.options import Categories

DENSE_CELLS = 1 << 28  # cells (1 GiB as float32) up to which a sparse table is made dense once

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

    def select(self, columns: NDArray[np.int64]) -> SparseColumns:
        """These columns alone."""
        return SparseColumns(self.data[:, columns], self.shift[columns], self.scale[columns])

    @property
    def shape(self) -> tuple[int, int]:
        return tuple(self.data.shape)


Columns = NDArray[np.float32] | SparseColumns


class EncodedTable(NamedTuple):
    """Encoded rows: ``columns`` (rows, c), and ``codes`` (rows, m) of the categories that are not one-hot."""

    columns: Columns
    codes: NDArray[np.int32]


@dataclass(frozen=True)
class Encoder:
    """Fitted encoding of every input column.

    ``input_of[c]`` is the input column from which encoded column c is made. ``numeric`` are the numeric input
    columns; ``shift`` and ``scale`` have one value for each. ``log1p`` are the positions in ``numeric`` of
    columns whose logarithms are taken first, ``indicated`` the input columns with a missing-value indicator column.
    ``levels`` are the categorical input columns that are one-hot encoded, ``coded`` those that become codes.
    ``missing_shares`` is, per encoded column, the share of training rows whose number is missing and replaced by
    the mean. ``extremes`` are numbers far from all others, which are clipped.
    """

    numeric: list[int]
    log1p: list[int]
    shift: Floats
    scale: Floats
    indicated: list[int]
    indicator_shift: Floats
    indicator_scale: Floats
    levels: dict[int, FittedCategory]
    coded: dict[int, FittedCategory]
    input_of: NDArray[np.int64]
    constant: NDArray[np.bool_]
    missing_shares: Floats
    extremes: Extremes = field(default_factory=Extremes)

    @property
    def is_number(self) -> NDArray[np.bool_]:
        """Mask of the encoded columns that hold a standardised number, not a category or an indicator."""
        first = np.diff(self.input_of, prepend=-1) > 0
        return np.asarray(first & np.isin(self.input_of, self.numeric))

    def take_inputs(self, inputs: NDArray[np.int64]) -> Encoder:
        """The encoding of some input columns, in the order of all; ``inputs`` are their numbers, rising."""
        numbers, encoded = np.isin(self.numeric, inputs), np.isin(self.input_of, inputs)
        indicated = np.isin(self.indicated, inputs)

        def renumber(positions: Iterable[int]) -> list[int]:
            return [int(n) for n in np.searchsorted(inputs, [p for p in positions if p in kept])]

        kept = set(inputs.tolist())
        levels = {p: category for p, category in self.levels.items() if p in kept}
        coded = {p: category for p, category in self.coded.items() if p in kept}
        return Encoder(
            renumber(self.numeric),
            np.flatnonzero(np.isin(np.flatnonzero(numbers), self.log1p)).tolist(),
            self.shift[numbers],
            self.scale[numbers],
            renumber(self.indicated),
            self.indicator_shift[indicated],
            self.indicator_scale[indicated],
            dict(zip(renumber(levels), levels.values(), strict=True)),
            dict(zip(renumber(coded), coded.values(), strict=True)),
            np.searchsorted(inputs, self.input_of[encoded]),
            self.constant[inputs],
            self.missing_shares[encoded],
            self.extremes.take(numbers),
        )

    def encode(self, table: InputTable, argument: str = "X") -> EncodedTable:
        """The encoded rows of a table with the same input columns."""
        codes = np.empty((table.rows, len(self.coded)), dtype=np.int32)
        if table.sparse:
            return EncodedTable(self._encode_sparse(table, argument), codes)
        out = np.empty((table.rows, len(self.input_of)), dtype=np.float32)
        first = np.searchsorted(self.input_of, np.arange(len(table.names)))  # encoded column per input column
        self._encode_numbers(table, out, first, argument)
        coded = list(self.coded)

        def encode_category(position: int) -> None:
            category = self.coded.get(position) or self.levels[position]
            found = find_values(table.categories(position), category.values)
            if category.coded:
                codes[:, coded.index(position)] = found + 1
                return
            rows = category.one_hot_rows()
            columns = slice(first[position], first[position] + rows.shape[1])
            step = max(1, CHUNK_CELLS // max(1, rows.shape[1]))
            for start in range(0, table.rows, step):
                chunk = slice(start, start + step)
                out[chunk, columns] = rows[found[chunk]]

        _for_each(encode_category, [*self.levels, *coded])
        return EncodedTable(out, codes)

    def _encode_numbers(
        self, table: InputTable, out: NDArray[np.float32], first: NDArray[np.int64], argument: str
    ) -> None:
        """Write standardised numbers and indicators into their columns of ``out``."""
        whole = len(self.numeric) == len(self.input_of)
        number_columns = slice(None) if whole else first[self.numeric]
        indicator_columns = first[self.indicated] + 1
        indicated = np.searchsorted(self.numeric, self.indicated)

        def standardise(rows: slice, raw: NDArray[Any]) -> None:
            values = to_floats(raw, self.log1p)
            self.extremes.clip(values)
            with np.errstate(over="ignore", invalid="ignore"):  # the result is checked below
                values -= self.shift
                values /= self.scale
                encoded = values.astype(np.float32)
            is_missing = np.zeros((1, encoded.shape[1]), dtype=bool)
            if not np.isfinite(encoded).all():
                values = to_floats(raw, self.log1p)
                is_missing = np.isnan(values)
                check_finite(values, is_missing, self.numeric, table, argument)
                encoded[is_missing] = 0.0  # the training mean, standardised
                check_not_too_large(np.abs(encoded).max(0), self.numeric, table, argument)
            out[rows, number_columns] = encoded
            if len(indicated):
                indicators = is_missing[:, indicated] - self.indicator_shift
                out[rows, indicator_columns] = indicators / self.indicator_scale

        for _ in map_numbers(table, self.numeric, standardise):
            pass

    def _encode_sparse(self, table: InputTable, argument: str) -> Columns:
        sparse = SparseColumns(sparse_log1p(table.data, self.log1p), self.shift, self.scale)
        check_sparse(sparse.data, self.shift, self.scale, table, argument)
        if table.rows * len(self.input_of) > DENSE_CELLS:
            return sparse
        return sparse.to_dense(np.arange(table.rows))


def fit_encoder(
    table: InputTable,
    weights: Floats | None,
    *,
    missing_indicator: bool,
    categories: Categories,
    max_categories: int,
    log1p: Sequence[int],
    argument: str,
) -> Encoder:
    """Fit means, standard deviations and categories on the training rows; ``log1p`` are input columns."""
    numeric = [i for i, kind in enumerate(table.kinds) if kind != "categorical"]
    logarithms = np.flatnonzero(np.isin(numeric, log1p)).tolist()
    if table.sparse:
        moments, extremes = sparse_moments(table, logarithms, weights, argument), Extremes()
    else:
        moments, extremes = clipped_moments(table, numeric, logarithms, weights, argument)
    mean, spread, missing = moments.mean, moments.spread, moments.missing
    indicated = [p for p, share in zip(numeric, missing, strict=True) if missing_indicator and 0 < share < 1]
    indicator_mean = np.array([share for share in missing if missing_indicator and 0 < share < 1])
    constant = np.zeros(len(table.names), dtype=bool)
    constant[numeric] = spread == 0
    constant[indicated] = False
    categorical = [i for i, kind in enumerate(table.kinds) if kind == "categorical"]
    one_hot_values = {"one_hot": table.rows, "mixed": ONE_HOT_VALUES, "codes": 0}[categories]

    def fit(position: int) -> FittedCategory:
        return fit_category(table.categories(position), weights, one_hot_values, max_categories)

    fitted = dict(zip(categorical, _for_each(fit, categorical), strict=True))
    levels = {position: category for position, category in fitted.items() if not category.coded}
    coded = {position: category for position, category in fitted.items() if category.coded}
    constant[categorical] = [category.constant for category in fitted.values()]
    widths = np.ones(len(table.names), dtype=np.int64)
    widths[indicated] = 2
    for position, category in fitted.items():
        widths[position] = 0 if category.coded else len(category.values)
    missing_shares = np.zeros(widths.sum())
    missing_shares[(np.cumsum(widths) - widths)[numeric]] = missing  # the first encoded column is the number
    return Encoder(
        numeric,
        logarithms,
        mean,
        np.where(spread > 0, spread, 1.0),
        indicated,
        indicator_mean,
        np.sqrt(indicator_mean * (1 - indicator_mean)),
        levels,
        coded,
        np.repeat(np.arange(len(widths)), widths),
        constant,
        missing_shares,
        extremes,
    )


def _for_each(work: Callable[[int], Result], positions: list[int]) -> list[Result]:
    """``work`` of each position, on several threads."""
    with ThreadPoolExecutor(WORKERS) as pool:
        return list(pool.map(work, positions))
