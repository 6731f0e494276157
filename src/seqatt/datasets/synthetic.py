"""A synthetic click log of any size, with known feature importances.

39 features as in public click logs: 13 counts and 26 categories of 3 to 100,000 values, all with missing
values. Eight features determine the clicks, each with a smaller effect than the one before.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from seqatt.json_files import atomic_file
from seqatt.validation import show

CHUNK = 1 << 16  # rows per chunk, which has its own seed and is one row group of a file
COUNTS = tuple(f"count{i:02d}" for i in range(1, 14))
CARDINALITIES = (3, 10, 30, 100, 300, 1_000, 3_000, 10_000, 30_000, 100_000, 4, 8, 16)
CATEGORIES = {f"category{i:02d}": CARDINALITIES[(i - 1) % 13] for i in range(1, 27)}
PLANTED = {  # effect on the log odds of a click, per standard deviation
    "category04": 1.6,
    "count03": 1.3,
    "category02": 1.05,
    "count09": 0.85,
    "category17": 0.7,
    "category05": 0.55,
    "count12": 0.45,
    "category11": 0.35,
}
BASE_LOG_ODDS = -1.5  # log odds of a click if every effect is zero
MISSING = 0.05  # share of missing values per feature


@dataclass(frozen=True)
class ClickLog:
    """The files, the target column, and the features that determine it, the most important first."""

    files: tuple[Path, ...]
    target: str
    planted: tuple[str, ...]


def click_log(
    folder: str | os.PathLike[str], rows: int, *, seed: int = 0, rows_per_file: int = 1_000_000
) -> ClickLog:
    """Write ``rows`` rows as Parquet files, in memory that does not depend on the number of rows.

    The rows depend only on the seed; the first rows of a long log are those of a short one.

    Examples
    --------
    >>> import tempfile
    >>> from seqatt.datasets.synthetic import click_log
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     log = click_log(folder, 1_000)
    >>> log.planted[:2]
    ('category04', 'count03')
    """
    for name, value in {"rows": rows, "rows_per_file": rows_per_file}.items():
        if isinstance(value, bool) or not hasattr(value, "__index__") or value < 1:
            raise ValueError(f"{name}: must be a whole number of at least 1, got {show(value)}")
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / f"clicks-{number:05d}.parquet" for number in range(-(-rows // rows_per_file))]
    names = {size: _names(size) for size in set(CATEGORIES.values())}

    def write(number: int) -> None:
        first = number * rows_per_file
        _write(paths[number], _chunks(first, min(first + rows_per_file, rows), seed, names))

    # Threads suffice: NumPy and Arrow release Python's global interpreter lock.
    with ThreadPoolExecutor(min(len(paths), os.cpu_count() or 1)) as pool:
        list(pool.map(write, range(len(paths))))
    return ClickLog(tuple(paths), "click", tuple(PLANTED))


def _write(path: Path, chunks: Iterator[Any]) -> None:
    with atomic_file(path) as file, pq.ParquetWriter(file, _schema()) as writer:
        for chunk in chunks:
            writer.write_table(chunk)


def _schema() -> Any:
    fields = [("click", pa.int8()), *((name, pa.float32()) for name in COUNTS)]
    return pa.schema([*fields, *((name, pa.string()) for name in CATEGORIES)])


def _chunks(first: int, last: int, seed: int, names: dict[int, Any]) -> Iterator[Any]:
    """Rows ``first`` to ``last`` of the log; a chunk that lies in two files is drawn for each of them."""
    for number in range(first // CHUNK, -(-last // CHUNK)):
        start = number * CHUNK
        chunk = _chunk(np.random.default_rng([seed, number]), names)
        yield chunk.slice(max(0, first - start), min(CHUNK, last - start) - max(0, first - start))


def _names(size: int) -> Any:
    return pa.array([f"{(i * 2654435761 + size) % 2**32:08x}" for i in range(size)])


def _chunk(rng: np.random.Generator, names: dict[int, Any]) -> Any:
    log_odds = np.full(CHUNK, BASE_LOG_ODDS)
    columns: dict[str, Any] = {}
    for name in COUNTS:
        level = rng.standard_normal(CHUNK)
        is_missing = rng.random(CHUNK) < MISSING
        log_odds += PLANTED.get(name, 0.0) * np.where(is_missing, 0.0, level)
        columns[name] = pa.array(np.floor(np.exp(2.0 + level)).astype(np.float32), mask=is_missing)
    for name, size in CATEGORIES.items():
        # Squares of uniform numbers: the first values are frequent, the last ones rare.
        drawn = (size * rng.random(CHUNK) ** 2).astype(np.int64)
        is_missing = rng.random(CHUNK) < MISSING
        if name in PLANTED:
            log_odds += PLANTED[name] * np.where(is_missing, 0.0, _effects(size)[drawn])
        columns[name] = names[size].take(pa.array(drawn, mask=is_missing))
    click = rng.random(CHUNK) < 1 / (1 + np.exp(-log_odds))
    return pa.table({"click": pa.array(click.astype(np.int8)), **columns}, schema=_schema())


def _effects(size: int) -> NDArray[np.float64]:
    """The effect of each value of a category; mean 0 and standard deviation 1 over rows."""
    effects = np.random.default_rng(size).standard_normal(size)
    edges = np.sqrt(np.arange(size + 1) / size)
    shares = np.diff(edges)
    effects -= shares @ effects
    return np.asarray(effects / np.sqrt(shares @ effects**2))
