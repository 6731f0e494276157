"""Input tables: NumPy arrays, SciPy sparse matrices, and pandas, polars and Arrow data frames.

An ``InputTable`` wraps any of these. It knows the name and kind of each column and returns columns as arrays.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import narwhals.stable.v1 as nw
import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

Kind = Literal["numeric", "boolean", "categorical"]


@dataclass(frozen=True)
class InputTable:
    """A table of (rows, columns) with unique column names.

    ``named`` is True if the names come from the user, False if they were made up (``x0``, ``x1``, ...).
    """

    data: Any
    names: tuple[str, ...]
    kinds: tuple[Kind, ...]
    rows: int
    named: bool

    @property
    def sparse(self) -> bool:
        return bool(sp.issparse(self.data))

    def numbers(self, positions: Sequence[int]) -> NDArray[Any]:
        """Numeric and boolean columns as one array (rows, len(positions)); missing values are NaN."""
        if isinstance(self.data, np.ndarray):
            return self.data if len(positions) == self.data.shape[1] else self.data[:, positions]
        out = np.empty((self.rows, len(positions)), dtype=np.float64, order="F")
        for j, position in enumerate(positions):
            out[:, j] = _as_floats(self.data[self.names[position]])
        return out

    def labels(self, position: int) -> NDArray[np.object_]:
        """A categorical column as strings (rows,); missing values are None."""
        values = self.data[self.names[position]].to_list()
        return np.array([None if is_missing(v) else str(v) for v in values], dtype=object)

    def select(self, positions: Sequence[int]) -> InputTable:
        """The columns at ``positions``, in that order."""
        names = tuple(self.names[p] for p in positions)
        kinds = tuple(self.kinds[p] for p in positions)
        if isinstance(self.data, nw.DataFrame):
            return InputTable(self.data.select(names), names, kinds, self.rows, self.named)
        return InputTable(self.data[:, list(positions)], names, kinds, self.rows, self.named)

    def select_rows(self, mask: NDArray[np.bool_]) -> InputTable:
        """The rows where ``mask`` is True."""
        data = self.data.filter(mask.tolist()) if isinstance(self.data, nw.DataFrame) else None
        data = self.data[mask] if data is None else data
        return InputTable(data, self.names, self.kinds, int(mask.sum()), self.named)


def read_input_table(X: Any, argument: str = "X") -> InputTable:
    """Check any supported container and wrap it as an ``InputTable``."""
    if isinstance(X, InputTable):
        return X
    if sp.issparse(X):
        return _read_sparse(X.tocsr(), argument)
    _check_unique_names(X, argument)
    frame = nw.from_native(X, eager_only=True, pass_through=True)
    if isinstance(frame, nw.DataFrame):
        return _read_frame(frame, argument)
    return _read_array(X, argument)


def check_same_columns(train: InputTable, test: InputTable, arguments: tuple[str, str]) -> None:
    """Check that test columns have the names and contents of the training columns.

    Otherwise the text "1" would count as an unknown category of a column that held the number 1.0.
    """
    train_argument, test_argument = arguments
    if train.names != test.names:
        raise ValueError(
            f"{test_argument}: must have the same columns as {train_argument}, in the same order"
        )
    pairs = zip(_contents(train), _contents(test), strict=True)
    for position, (expected, actual) in enumerate(pairs):
        if expected != actual and not _is_empty(test, position):
            raise ValueError(
                f"{test_argument}: column {train.names[position]!r} holds {actual}, but {expected} in "
                f"{train_argument}; convert it to {expected}"
            )


def _contents(table: InputTable) -> list[str]:
    """What each column holds, for error messages: "text", "numbers" or "times"."""
    contents = ["text" if kind == "categorical" else "numbers" for kind in table.kinds]
    if isinstance(table.data, nw.DataFrame):
        for position, dtype in enumerate(table.data.schema.dtypes()):
            contents[position] = "times" if dtype.is_temporal() else contents[position]
    return contents


def _is_empty(table: InputTable, position: int) -> bool:
    """Whether a column has only missing values, which mean the same in a column of any kind."""
    if not isinstance(table.data, nw.DataFrame) or table.kinds[position] == "categorical":
        return False
    return bool(np.isnan(table.numbers([position])).all())


def _read_array(X: Any, argument: str) -> InputTable:
    array = np.asarray(X)
    if array.ndim != 2:
        raise ValueError(
            f"{argument}: must be a table of rows and columns, got {array.ndim} dimension(s); "
            "reshape it with .reshape(-1, 1) if it is a single feature"
        )
    _check_size(array.shape, argument)
    if array.dtype.kind not in "biuf":
        try:
            array = array.astype(np.float64)
        except (TypeError, ValueError):
            raise ValueError(
                f"{argument}: an array must hold numbers, got {array.dtype}; "
                "use a DataFrame for tables with categories"
            ) from None
    kind: Kind = "boolean" if array.dtype == bool else "numeric"
    names = tuple(f"x{i}" for i in range(array.shape[1]))
    return InputTable(array, names, (kind,) * len(names), len(array), named=False)


def _read_sparse(X: Any, argument: str) -> InputTable:
    _check_size(X.shape, argument)
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    if X.dtype.kind not in "biuf":
        raise ValueError(f"{argument}: a sparse matrix must hold numbers, got {X.dtype}")
    names = tuple(f"x{i}" for i in range(X.shape[1]))
    kind: Kind = "numeric"
    return InputTable(X, names, (kind,) * len(names), X.shape[0], named=False)


def _read_frame(frame: nw.DataFrame[Any], argument: str) -> InputTable:
    native_names = [str(c) for c in frame.columns]
    _check_size(frame.shape, argument)
    if any(not isinstance(c, str) for c in frame.columns):
        frame = frame.rename(dict(zip(frame.columns, native_names, strict=True)))
    kinds = tuple(_kind(frame[name], argument) for name in native_names)
    return InputTable(frame, tuple(native_names), kinds, frame.shape[0], named=True)


def _check_unique_names(X: Any, argument: str) -> None:
    """Check this on the user's own frame: libraries differ in what they do with a repeated name."""
    names = getattr(X, "column_names", getattr(X, "columns", None))
    counts = Counter(str(name) for name in names) if isinstance(names, Iterable) else {}
    repeated = [name for name, count in counts.items() if count > 1]
    if repeated:
        raise ValueError(
            f"{argument}: column names must be unique, {repeated[0]!r} appears twice; rename one"
        )


def _check_size(shape: tuple[int, ...], argument: str) -> None:
    rows, columns = shape
    if rows == 0:
        raise ValueError(f"{argument}: the table has no rows; at least 2 are needed")
    if columns == 0:
        raise ValueError(f"{argument}: the table has no columns; at least 1 is needed")


def _kind(series: nw.Series[Any], argument: str) -> Kind:
    dtype = series.dtype
    if dtype == nw.Boolean:
        return "boolean"
    if dtype.is_numeric() or dtype in (nw.Date, nw.Datetime, nw.Duration):
        return "numeric"
    if series.null_count() == len(series):
        return "numeric"  # only missing values: a constant column of any kind
    if dtype in (nw.String, nw.Categorical, nw.Enum):
        return "categorical"
    if dtype == nw.Object:
        return _kind_of_objects(series, argument)
    raise ValueError(
        f"{argument}: column {series.name!r} has type {dtype}, which cannot be a feature; "
        "convert it to numbers or text, or leave it out"
    )


def _kind_of_objects(series: nw.Series[Any], argument: str) -> Kind:
    present = [v for v in series.to_list() if not is_missing(v)]
    if all(isinstance(v, bool | np.bool_) for v in present):
        return "boolean"
    if all(isinstance(v, int | float | np.number) for v in present):
        return "numeric"
    if all(isinstance(v, str | int | float | bool | np.generic) for v in present):
        return "categorical"
    unsupported = next(v for v in present if not isinstance(v, str | int | float | bool | np.generic))
    raise TypeError(
        f"{argument}: column {series.name!r} holds a {type(unsupported).__name__}; "
        "convert it to numbers or text, or leave it out"
    )


def is_missing(value: Any) -> bool:
    """Whether a value is None, NaN, NaT or pandas' NA (found by its type name: NA has no truth value)."""
    return value is None or type(value).__name__ in ("NAType", "NaTType") or bool(value != value)


def _as_floats(series: nw.Series[Any]) -> NDArray[np.float64]:
    if series.dtype.is_temporal():
        series = _microseconds(series)
    if series.dtype == nw.Object or series.null_count():
        values = [np.nan if is_missing(v) else float(v) for v in series.to_list()]
        return np.array(values, dtype=np.float64)
    return series.to_numpy().astype(np.float64)


def _microseconds(series: nw.Series[Any]) -> nw.Series[Any]:
    """Durations and times (since 1970) in microseconds."""
    if series.dtype == nw.Duration:
        return series.dt.total_microseconds()
    return (series.cast(nw.Datetime("us")) if series.dtype == nw.Date else series).dt.timestamp("us")
