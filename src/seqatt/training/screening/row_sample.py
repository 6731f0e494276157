"""A sample of a table's rows for statistical tests.

Sums over the rows do not depend on the number of threads.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from seqatt.data.tables.table_data import SparseColumns, TableData, constant_within, take_rows
from seqatt.training.backend.matmul import matmul

Floats = NDArray[np.float64]

BLOCK_CELLS = 1 << 24, 1 << 19  # rows times columns processed at a time, on an accelerator and on a CPU
MAX_CELLS = 1 << 22  # rows times columns of a sample, at most,
MIN_ROWS = 1 << 11  # but a sample has at least this many rows, or all
MAX_HOT_VALUES = 64  # most frequent values of a category that a sample distinguishes as columns
MAX_CODED_ROWS = 1 << 18  # rows on which categories with codes are tested, at most


@dataclass(frozen=True)
class RowSample:
    """Row numbers of a table, with weights that sum to the effective sample size.

    Sums over the rows are computed in double precision on the device of ``values`` (n, c), the sampled rows of a dense
    table on an accelerator. None: they are read from ``data``, a few columns at a time. ``coded`` are rows of the table
    with its codes, of which ``data`` has the most frequent values as columns; None where there are no codes.
    """

    data: TableData
    rows: NDArray[np.int64]
    weights: Floats
    values: Tensor | None = None
    coded: RowSample | None = None

    @cached_property
    def effective_rows(self) -> float:
        """The effective sample size: the number of rows of weight 1 that are as informative."""
        return float(self.weights.sum())

    @cached_property
    def columns_per_feature(self) -> NDArray[np.int64]:
        return np.bincount(self.data.feature_of, minlength=self.data.features)

    def on_device(self, vectors: Floats) -> Tensor:
        """Vectors (rows, m) where sums over the rows are computed."""
        tensor = torch.from_numpy(np.ascontiguousarray(vectors))
        return tensor if self.values is None else tensor.to(self.values.device)

    @cached_property
    def row_weights(self) -> Tensor:
        """The weights (rows, 1) where sums over the rows are computed."""
        return self.on_device(self.weights[:, None])

    def centred_columns(self, columns: slice | NDArray[np.int64]) -> Tensor:
        """These columns (rows, m) of the sampled rows, minus their weighted means."""
        table = self.data.columns
        if self.values is not None:
            number = (
                columns if isinstance(columns, slice) else torch.from_numpy(columns).to(self.values.device)
            )
            return self.centre(self.values[:, number].double())
        if isinstance(table, SparseColumns):
            dense = table.data[:, columns].toarray()
            values = np.asarray((dense - table.shift[columns]) / table.scale[columns], dtype=np.float64)
        elif isinstance(columns, slice):
            every_row = len(self.rows) == len(table)
            values = table[slice(None) if every_row else self.rows, columns].astype(np.float64)
        else:
            values = table[np.ix_(self.rows, columns)].astype(np.float64)
        return self.centre(torch.from_numpy(values))

    def column_blocks(self, columns: int) -> Iterator[slice]:
        """Slices of the numbers of so many columns, for which a block of cells takes little memory."""
        size = max(1, BLOCK_CELLS[self.values is None] // max(1, len(self.rows)))
        return (slice(start, min(start + size, columns)) for start in range(0, columns, size))

    def centre(self, values: Tensor) -> Tensor:
        """Values (rows, m) minus their weighted means."""
        return values - transposed_product(values, self.row_weights).T / self.effective_rows

    def gram_matrix(self, centred: Tensor) -> Floats:
        """Weighted inner products (m, m) of centred columns (rows, m)."""
        return transposed_product(centred, self.row_weights * centred).cpu().numpy()

    def kept_unit_columns(self, columns: NDArray[np.int64]) -> Tensor:
        """``unit_columns``, kept after the first call with these columns."""
        key = columns.tobytes()
        if key not in self._kept_units:
            self._kept_units[key] = self.unit_columns(columns)
        return self._kept_units[key]

    @cached_property
    def _kept_units(self) -> dict[bytes, Tensor]:
        return {}

    def unit_columns(self, columns: NDArray[np.int64]) -> Tensor:
        """These columns as (columns, rows) in float32, weighted, centred and of norm 1; constant columns are 0."""
        norms, roots = np.sqrt(self.moments[0]), self.row_weights.sqrt()
        out = torch.empty(len(columns), len(self.rows), device=roots.device)
        for block in self.column_blocks(len(columns)):
            norm = norms[columns[block]]
            scale = torch.from_numpy(np.where(norm > 0, norm, np.inf)).to(roots.device)
            out[block] = (self.centred_columns(columns[block]) * roots / scale).T
        return out

    def inner_products(self, vectors: Tensor) -> Floats:
        """Weighted inner products (c, m) of all columns with centred vectors (rows, m)."""
        columns, weighted = self.data.columns, self.row_weights * vectors
        if isinstance(columns, SparseColumns):
            data = columns.data.astype(np.float64, copy=False)
            return np.asarray(data.T @ weighted.numpy() / columns.scale[:, None])
        blocks = map(self.centred_columns, self.column_blocks(columns.shape[1]))
        return torch.cat([transposed_product(block, weighted) for block in blocks]).cpu().numpy()

    @cached_property
    def moments(self) -> tuple[Floats, Floats]:
        """Each column's weighted sum of squares around the mean, and its skewness; 0 for constant columns."""
        columns = self.data.columns
        if isinstance(columns, SparseColumns):
            squares, cubes = self._sparse_moments(columns)
        else:
            blocks = []
            for block in self.column_blocks(columns.shape[1]):
                centred = self.centred_columns(block)
                squared = centred**2
                sums = [transposed_product(power, self.row_weights) for power in (squared, squared * centred)]
                sums[0][centred.amax(0) == centred.amin(0)] = 0  # in any unit: columns may be unscaled
                blocks.append(torch.cat(sums, 1))
            squares, cubes = torch.cat(blocks).cpu().numpy().T
        divisor = np.where(squares > 0, squares, np.inf)
        return squares, np.asarray(cubes * np.sqrt(self.effective_rows) / divisor**1.5)

    def _sparse_moments(self, columns: SparseColumns) -> tuple[Floats, Floats]:
        """Sums of squares and of cubes around the mean, from the raw moments of the stored cells."""
        data = columns.data.astype(np.float64, copy=False)
        first, second, third = (data.power(n).T @ self.weights for n in (1, 2, 3))
        mean = first / self.effective_rows
        squares = second - mean * first
        squares[squares < 1e-9 * second] = 0
        cubes = third - 3 * mean * second + 2 * mean**2 * first
        return squares / columns.scale**2, cubes / columns.scale**3


def transposed_product(a: Tensor, b: Tensor) -> Tensor:
    """``a.T @ b`` for ``b`` of a few columns, with the same result for any number of threads."""
    # As b.T @ a, in which both factors are read in the order of their memory: eight times faster.
    out = a.new_empty(1, b.shape[1], a.shape[1])
    return matmul(b.T.contiguous()[None], a[None], out)[0].T


def draw_sample(
    data: TableData,
    subset: NDArray[np.int64] | None = None,
    *,
    table: Tensor | None = None,
    device: torch.device | None = None,
) -> RowSample:
    """All rows of a sparse or small table, else random rows, the same ones at every call.

    With a ``subset`` of row numbers, the sample is that of a table of these rows. Sums are computed on ``device``, to
    which the sampled rows are copied; ``table`` are the columns of all rows there, where they are there already.
    """
    hot = [min(MAX_HOT_VALUES, count - 1) for count in data.code_counts]
    if subset is not None:
        drawn = subset[_draw_rows(data, len(subset), hot)]
        constant = constant_within(data, subset)
        if hot or isinstance(data.columns, SparseColumns):
            sample = draw_sample(replace(take_rows(data, drawn), constant=constant), device=device)
            return replace(sample, coded=_coded_rows(data, subset) if hot else None)
        data, rows = replace(data, constant=constant), drawn
    else:
        rows = _draw_rows(data, data.rows, hot)
    weights, coded = _weights(data, rows), None
    if hot:
        coded = _coded_rows(data, np.arange(data.rows))
        data, rows, table = _with_hot_codes(data, rows, hot), np.arange(len(rows)), None
    on_host = device is None or device.type == "cpu" or isinstance(data.columns, SparseColumns)
    return RowSample(data, rows, weights, None if on_host else _copy_rows(data, rows, table, device), coded)


def _coded_rows(data: TableData, rows: NDArray[np.int64]) -> RowSample:
    """These rows with their codes, or some of them."""
    most = MAX_CODED_ROWS // -(-data.target.outputs // 8)
    if len(rows) > most:
        rows = np.sort(np.random.default_rng(0).permutation(rows)[:most])
    return RowSample(data, rows, _weights(data, rows))


def _weights(data: TableData, rows: NDArray[np.int64]) -> Floats:
    """The weights of these rows, whose sum is their share of the effective rows."""
    share = len(rows) / data.rows
    weights = np.ones(len(rows)) if data.weights is None else data.weights[rows].astype(np.float64)
    return np.asarray(weights * share * data.effective_rows / weights.sum())


def _copy_rows(
    data: TableData, rows: NDArray[np.int64], table: Tensor | None, device: torch.device | None
) -> Tensor:
    """These rows of a dense table on the device."""
    if table is not None:
        return table.index_select(0, torch.from_numpy(rows).to(table.device))
    assert not isinstance(data.columns, SparseColumns)
    return torch.from_numpy(data.columns[rows]).to(device)


def _draw_rows(data: TableData, count: int, hot: list[int]) -> NDArray[np.int64]:
    """Numbers of the rows of a sample, in order, if the table had ``count`` rows."""
    max_rows = max(MIN_ROWS, MAX_CELLS // (len(data.feature_of) + sum(hot)))
    if count <= max_rows or isinstance(data.columns, SparseColumns):
        return np.arange(count)
    return np.sort(np.random.default_rng(0).permutation(np.arange(count))[:max_rows])


def _with_hot_codes(data: TableData, rows: NDArray[np.int64], hot: list[int]) -> TableData:
    """These rows, with the most frequent values of each column of codes, ``hot`` of them, as columns of 0 and 1."""
    assert not isinstance(data.columns, SparseColumns)
    columns, features = [data.columns[rows]], [data.feature_of]
    for codes, count, feature in zip(data.codes[rows].T, hot, data.coded_features, strict=True):
        columns.append((codes[:, None] == np.arange(1, count + 1)).astype(np.float32))
        features.append(np.full(count, feature))
    feature_of = np.concatenate(features)
    order = np.argsort(feature_of, kind="stable")  # the columns of a feature are adjacent
    target = replace(data.target, values=data.target.values[rows])
    return replace(
        data,
        columns=np.concatenate(columns, axis=1)[:, order],
        feature_of=feature_of[order],
        codes=np.empty((len(rows), 0), dtype=np.int32),
        coded_features=np.empty(0, dtype=np.int64),
        target=target,
        weights=None if data.weights is None else data.weights[rows],
    )
