"""Means, standard deviations and shares of missing values of numeric columns, in chunks of rows on several threads."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from seqatt.data.tables.containers import InputTable

CHUNK_CELLS = 1 << 17  # float64 cells per chunk, so that a chunk fits into one core's cache
MIN_CHUNK_ROWS = 16  # rows per chunk, at least: the result of each chunk is as wide as the table
WORKERS = min(8, os.cpu_count() or 1)  # threads, each with one chunk at a time

Floats = NDArray[np.float64]


class Moments(NamedTuple):
    """Per column: mean, standard deviation, share of missing values, the smallest and the largest value."""

    mean: Floats
    spread: Floats
    missing: Floats
    low: Floats
    high: Floats


Result = TypeVar("Result")


def dense_moments(
    table: InputTable,
    numeric: list[int],
    logarithms: list[int],
    weights: Floats | None,
    argument: str,
    clip: Callable[[Floats], None] = lambda values: None,
) -> Moments:
    """The moments of a dense table, in two passes over chunks of rows; ``clip`` first clips each chunk in place."""

    @np.errstate(over="ignore", invalid="ignore")  # a sum that is too large is found below
    def sums(rows: slice, raw: NDArray[Any]) -> tuple[Any, ...]:
        values = to_floats(raw, logarithms)
        clip(values)
        w = np.ones(len(values)) if weights is None else weights[rows]
        low, high = values.min(0), values.max(0)
        if np.isfinite(low).all() and np.isfinite(high).all():
            return low, high, w @ values, w.sum(), 0.0, False
        is_missing = np.isnan(values)
        check_finite(values, is_missing, numeric, table, argument)
        low = np.min(np.where(is_missing, np.inf, values), axis=0)
        high = np.max(np.where(is_missing, -np.inf, values), axis=0)
        values[is_missing] = 0.0
        return low, high, w @ values, w @ ~is_missing, w @ is_missing, True

    width = len(numeric)
    total, present, missing = np.zeros(width), np.zeros(width), np.zeros(width)
    low, high, any_missing = np.full(width, np.inf), np.full(width, -np.inf), False
    for chunk_low, chunk_high, chunk_total, chunk_present, chunk_missing, some_missing in map_numbers(
        table, numeric, sums
    ):
        low, high = np.minimum(low, chunk_low), np.maximum(high, chunk_high)
        with np.errstate(over="ignore", invalid="ignore"):
            total = total + chunk_total
        present, missing = present + chunk_present, missing + chunk_missing
        any_missing = any_missing or some_missing
    mean = total / np.where(present > 0, present, 1.0)
    # Squares of very large or very small deviations leave float64; relative to the largest they never do.
    with np.errstate(over="ignore", invalid="ignore"):
        max_deviation = np.where(low < high, np.maximum(high - mean, mean - low), 1.0)
        largest = mean + max_deviation
    check_not_too_large(largest, numeric, table, argument)

    def squares(rows: slice, raw: NDArray[Any]) -> Floats:
        values = to_floats(raw, logarithms)
        clip(values)
        values -= mean
        values /= max_deviation
        np.square(values, out=values)
        if any_missing:
            values[np.isnan(values)] = 0.0
        return np.asarray(values.sum(0) if weights is None else weights[rows] @ values)

    square = np.zeros(width)
    for chunk_square in map_numbers(table, numeric, squares):
        square += chunk_square
    spread = max_deviation * np.sqrt(square / (present + missing))
    return Moments(mean, np.where(low < high, spread, 0.0), missing / (present + missing), low, high)


def to_floats(raw: NDArray[Any], logarithms: list[int]) -> Floats:
    """A copy as float64, with logarithms of the columns at these positions."""
    values = raw.astype(np.float64)
    if logarithms:
        values[:, logarithms] = signed_log1p(values[:, logarithms])
    return values


def signed_log1p(values: Floats) -> Floats:
    """``sign(x) log(1 + |x|)``."""
    return np.asarray(np.sign(values) * np.log1p(np.abs(values)))


def sparse_log1p(data: Any, logarithms: list[int]) -> Any:
    if not logarithms:
        return data
    data = data.astype(np.float64)
    cells = np.isin(data.indices, logarithms)
    data.data[cells] = signed_log1p(data.data[cells])
    return data


def sparse_moments(
    table: InputTable, logarithms: list[int], weights: Floats | None, argument: str
) -> Moments:
    data = sparse_log1p(table.data.astype(np.float64), logarithms)
    _check_sparse_finite(data, argument)
    w = np.ones(table.rows) if weights is None else weights
    # Squared deviations: (x - mean)^2 for stored cells, mean^2 for all others.
    low, high = (np.asarray(m.todense()).ravel() for m in (data.min(0), data.max(0)))
    with np.errstate(over="ignore", invalid="ignore"):
        mean = np.asarray(w @ data).ravel() / w.sum()
        max_deviation = np.where(low < high, np.maximum(high - mean, mean - low), 1.0)
        largest = mean + max_deviation
    check_not_too_large(largest, list(range(len(mean))), table, argument)
    centred = data.copy()
    centred.data = ((centred.data - mean[centred.indices]) / max_deviation[centred.indices]) ** 2
    pattern = data.copy()
    pattern.data = np.ones_like(pattern.data)
    stored = np.asarray(w @ pattern).ravel()
    rest = (w.sum() - stored) * (mean / max_deviation) ** 2
    spread = max_deviation * np.sqrt((np.asarray(w @ centred).ravel() + rest) / w.sum())
    return Moments(mean, np.where(low < high, spread, 0.0), np.zeros(len(mean)), low, high)


def check_sparse(data: Any, shift: Floats, scale: Floats, table: InputTable, argument: str) -> None:
    """Refuse stored values that are not finite, or too large once they are standardised as float32."""
    _check_sparse_finite(data, argument)
    with np.errstate(over="ignore"):
        standardised = ((data.data - shift[data.indices]) / scale[data.indices]).astype(np.float32)
    if not np.isfinite(standardised).all():
        largest = np.zeros(data.shape[1])
        np.maximum.at(largest, data.indices, np.abs(standardised))
        check_not_too_large(largest, list(range(len(largest))), table, argument)


def _check_sparse_finite(data: Any, argument: str) -> None:
    if not np.isfinite(data.data).all():
        raise ValueError(f"{argument}: a sparse matrix must not hold NaN or infinity; fill them in")


def map_chunks(raw: NDArray[Any], work: Callable[[slice], Result]) -> Iterator[Result]:
    """``work`` of each chunk of rows, computed on several threads, in the order of the rows."""
    step = _chunk_rows(raw.shape[1])
    chunks = [slice(start, start + step) for start in range(0, len(raw), step)]
    if len(chunks) < 2 * WORKERS:
        yield from map(work, chunks)
        return
    with ThreadPoolExecutor(WORKERS) as pool:
        yield from pool.map(work, chunks)


def map_numbers(
    table: InputTable, numeric: list[int], work: Callable[[slice, NDArray[Any]], Result]
) -> Iterator[Result]:
    """``work`` of each chunk of rows and its numbers, in the order of the rows.

    The chunks are those of ``map_chunks`` for the whole table, but only a block of it is converted at a time.
    """
    for start, block in table.number_blocks(numeric, _chunk_rows(len(numeric))):

        def work_on(rows: slice, start: int = start, block: NDArray[Any] = block) -> Result:
            return work(slice(start + rows.start, start + min(rows.stop, len(block))), block[rows])

        yield from map_chunks(block, work_on)


def _chunk_rows(columns: int) -> int:
    return max(MIN_CHUNK_ROWS, CHUNK_CELLS // max(1, columns))


def check_finite(
    values: Floats, is_missing: NDArray[np.bool_], numeric: list[int], table: InputTable, argument: str
) -> None:
    bad = ~np.isfinite(values) & ~is_missing
    if bad.any():
        name = table.names[numeric[int(np.argmax(bad.any(0)))]]
        raise ValueError(infinity_message(name, argument))


def infinity_message(name: str, argument: str = "X") -> str:
    return (
        f"{argument}: column {name!r} contains infinity; replace infinite values, for example by NaN, "
        "which is read as missing"
    )


def check_not_too_large(values: Floats, numeric: list[int], table: InputTable, argument: str) -> None:
    bad = ~np.isfinite(values)
    if bad.any():
        name = table.names[numeric[int(np.argmax(bad))]]
        raise ValueError(f"{argument}: column {name!r} holds values too large to work with; rescale it")
