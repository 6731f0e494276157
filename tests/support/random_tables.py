"""Random tables, targets and arguments: every kind of column, container and mistake that users may bring."""

from __future__ import annotations

import datetime
import decimal
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import scipy.sparse as sp
import torch
from hypothesis import strategies as st

Rng = np.random.Generator
ROWS = st.one_of(st.integers(8, 40), st.integers(0, 8))  # most tables are large enough to train on


def _words(rng: Rng, rows: int) -> list[str]:
    return rng.choice(["a", "b", "ünï", "", "x\ny", "1", " a", "\x1b[31m"], rows).tolist()


def _holes(values: list[Any], rng: Rng) -> list[Any]:
    return [
        None if hole else value for value, hole in zip(values, rng.random(len(values)) < 0.3, strict=True)
    ]


NUMBERS: dict[str, Callable[[Rng, int], Any]] = {  # columns that a network can train on
    "normal": lambda rng, n: rng.normal(size=n),
    "float32": lambda rng, n: rng.normal(size=n).astype(np.float32),
    "float16": lambda rng, n: rng.normal(size=n).astype(np.float16),
    "holes": lambda rng, n: np.where(rng.random(n) < 0.3, np.nan, rng.normal(size=n)),
    "integer": lambda rng, n: rng.integers(-3, 3, n),
    "int8": lambda rng, n: rng.integers(-128, 128, n).astype(np.int8),
    "uint64": lambda rng, n: rng.integers(0, 2**64, n, dtype=np.uint64),
    "boolean": lambda rng, n: rng.random(n) < 0.5,
    "constant": lambda rng, n: np.ones(n),
    "almost constant": lambda rng, n: 1 + np.arange(n) * 1e-15,
    "missing": lambda rng, n: np.full(n, np.nan),
    "huge": lambda rng, n: rng.normal(size=n) * 1e300,
    "largest": lambda rng, n: rng.choice([1.7e308, -1.7e308], n),
    "tiny": lambda rng, n: rng.normal(size=n) * 1e-310,
    "skewed": lambda rng, n: np.exp(30 * rng.normal(size=n)),
    "infinite": lambda rng, n: np.where(rng.random(n) < 0.1, np.inf, rng.normal(size=n)),
    "sorted": lambda rng, n: np.arange(n, dtype=float),
}
OBJECTS: dict[str, Callable[[Rng, int], Any]] = {  # columns of data frames
    "words": _words,
    "words with holes": lambda rng, n: _holes(_words(rng, n), rng),
    "booleans with holes": lambda rng, n: _holes((rng.random(n) < 0.5).tolist(), rng),
    "integers with holes": lambda rng, n: _holes(rng.integers(0, 9, n).tolist(), rng),
    "identifiers": lambda rng, n: [f"id{i}" for i in range(n)],
    "no value": lambda rng, n: [None] * n,
    "dates": lambda rng, n: [
        datetime.datetime(2020, 1, 1) + datetime.timedelta(days=int(d)) for d in rng.integers(0, 99, n)
    ],
    "durations": lambda rng, n: [datetime.timedelta(seconds=int(d)) for d in rng.integers(0, 99, n)],
    "decimals": lambda rng, n: [decimal.Decimal(int(d)) / 4 for d in rng.integers(0, 99, n)],
    "bytes": lambda rng, n: [bytes([d]) for d in rng.integers(0, 255, n)],
    "lists": lambda rng, n: [[int(d)] for d in rng.integers(0, 9, n)],
    "mixed": lambda rng, n: [[1, "a", None, 2.5][d] for d in rng.integers(0, 4, n)],
    "large integers": lambda rng, n: [10**30 + int(d) for d in rng.integers(0, 9, n)],
    "complex": lambda rng, n: (rng.normal(size=n) + 1j).tolist(),
}
TARGETS: dict[str, Callable[[Rng, int], Any]] = {
    "two classes": lambda rng, n: rng.integers(0, 2, n),
    "three classes": lambda rng, n: rng.integers(0, 3, n),
    "words": _words,
    "booleans": lambda rng, n: rng.random(n) < 0.5,
    "numbers": lambda rng, n: rng.normal(size=n),
    "large numbers": lambda rng, n: rng.normal(size=n) * 1e200,
    "small numbers": lambda rng, n: rng.normal(size=n) * 1e-200,
    "labels": lambda rng, n: rng.integers(0, 2, (n, 3)),
    "many outputs": lambda rng, n: rng.normal(size=(n, 2)),
    "one column": lambda rng, n: rng.integers(0, 2, (n, 1)),
    "one class": lambda rng, n: np.zeros(n),
    "identifiers": lambda rng, n: [f"id{i}" for i in range(n)],
    "holes": lambda rng, n: _holes(rng.integers(0, 2, n).tolist(), rng),
    "infinite": lambda rng, n: np.where(rng.random(n) < 0.1, np.inf, rng.normal(size=n)),
    "too short": lambda rng, n: np.zeros(max(0, n - 1)),
    "mixed": lambda rng, n: [[1, "a", 2.5][d] for d in rng.integers(0, 3, n)],
    "complex": lambda rng, n: rng.normal(size=n) + 1j,
    "dates": lambda rng, n: np.datetime64("2020-01-01") + rng.integers(0, 99, n).astype("m8[D]"),
    "nothing": lambda rng, n: None,
}
CONTAINERS = ("array", "frame", "list", "polars", "arrow", "sparse", "tensor", "transposed", "object array")
COLUMN_NAMES = st.one_of(
    st.text(max_size=4),
    st.sampled_from(["y", "x0", "x1", "target", "[bold]", "\x1b[2J", "a,b"]),
    st.integers(-2, 9),
)


def _container(kind: str, columns: list[Any], names: list[Any]) -> Any:
    """The columns in a container; raises what pandas, polars and others raise about columns they cannot hold."""
    if kind == "frame":
        frame = pd.DataFrame({i: pd.Series(column) for i, column in enumerate(columns)})
        frame.columns = pd.Index(names)
        return frame
    if kind == "polars":
        return pl.DataFrame(
            {str(name): column for name, column in zip(names, columns, strict=True)}, strict=False
        )
    if kind == "arrow":
        return pa.table([pa.array(column) for column in columns], [str(name) for name in names])
    if kind == "list":
        return [list(row) for row in zip(*columns, strict=True)]
    if kind == "object array":
        return np.array([list(row) for row in zip(*columns, strict=True)], dtype=object)
    array = np.column_stack([np.asarray(column, dtype=np.float64) for column in columns])
    if kind == "sparse":
        return sp.csr_matrix(np.nan_to_num(array) * (np.abs(array) > 0.5))
    return {"array": array, "transposed": np.asfortranarray(array), "tensor": torch.tensor(array)}[kind]


@st.composite
def tables(draw: st.DrawFn, *, usual: bool = False) -> tuple[Any, Any, dict[str, Any]]:
    """X, y, and what they are, for the message of a failed property. ``usual``: without mistakes."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    rows = draw(st.integers(12, 40) if usual else ROWS)
    container = draw(st.sampled_from(CONTAINERS))
    kinds = list(NUMBERS) + (
        list(OBJECTS) if container in ("frame", "polars", "arrow", "list", "object array") else []
    )
    kinds = ["normal", "integer", "boolean", "holes", "float32"] if usual else kinds
    chosen = ["normal", *draw(st.lists(st.sampled_from(kinds), max_size=5))]
    names = [f"c{i}" for i in range(len(chosen))]
    if not usual and draw(st.booleans()):
        names = draw(st.lists(COLUMN_NAMES, min_size=len(chosen), max_size=len(chosen)))
    columns = [(NUMBERS | OBJECTS)[kind](rng, rows) for kind in chosen]
    try:
        X = _container(container, columns, names)
    except (TypeError, ValueError, OverflowError, pa.ArrowException, pl.exceptions.PolarsError):
        container, chosen = "array", ["normal", "normal"]
        X = rng.normal(size=(rows, 2))
    targets = ["two classes", "three classes", "numbers"] if usual else list(TARGETS)
    target = draw(st.sampled_from(targets))
    y = TARGETS[target](rng, rows)
    if isinstance(y, np.ndarray) and draw(st.booleans()):
        y = y.tolist()
    about = {"container": container, "columns": chosen, "names": names, "target": target, "rows": rows}
    return X, y, about
