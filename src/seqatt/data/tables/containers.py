"""Input tables: NumPy arrays, SciPy sparse matrices, and pandas, polars and Arrow data frames.

An ``InputTable`` wraps any of these. It knows the name and kind of each column and returns columns as arrays. Data
frames of every library are read into an Arrow table, which shares the memory of their numbers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, get_args

import narwhals.stable.v1 as nw
import numpy as np
from numpy.typing import NDArray

from seqatt.column_names import is_sparse, plain_name
from seqatt.data.tables.objects import COMPLEX, refuse_batches, refuse_dicts, tensor_values
from seqatt.validation import list_names, show, suggest

if TYPE_CHECKING:  # Arrow is imported when the first data frame is read
    from seqatt.data.tables.arrow_columns import CategoricalValues

Kind = Literal["numeric", "boolean", "categorical"]
KINDS: tuple[str, ...] = get_args(Kind)
SAME_LENGTH = (
    "its rows have different numbers of values, but all need the same; lists of labels become columns of 0 and 1 by "
    "scikit-learn's MultiLabelBinarizer().fit_transform"
)
WRITE_PARQUET = {  # by package: how its data, which many machines may hold, becomes files
    "dask": "X.to_parquet(folder)",
    "pyspark": "X.write.parquet(folder)",
    "ray": "X.write_parquet(folder)",
}
WIDE_COLUMNS = 500  # columns from which on a data frame of numbers with fewer rows is read as an array
BLOCK_CELLS = 1 << 22  # numbers of a data frame that are converted to float64 at a time (32 MiB)


@dataclass(frozen=True)
class InputTable:
    """A table of (rows, columns) with unique column names.

    ``data`` is a NumPy array, a SciPy sparse matrix or an Arrow table. ``named`` is True if the names come from the
    user, False if they were made up (``x0``, ``x1``, ...). ``given_names`` are the user's names that are not text, such
    as 3, by their text. ``texts`` are text columns (not categorical dtype) that have not been examined for numbers yet.
    """

    data: Any
    names: tuple[str, ...]
    kinds: tuple[Kind, ...]
    rows: int
    named: bool
    argument: str = "X"
    given_names: Mapping[str, Any] = field(default_factory=dict)
    texts: frozenset[str] = frozenset()

    @property
    def sparse(self) -> bool:
        return is_sparse(self.data)

    @property
    def framed(self) -> bool:
        """Whether ``data`` is an Arrow table."""
        return not (self.sparse or isinstance(self.data, np.ndarray))

    def numbers(self, positions: Sequence[int]) -> NDArray[Any]:
        """Numeric and boolean columns as one array (rows, len(positions)); missing values are NaN."""
        return next(block for _, block in self.number_blocks(positions, self.rows, self.rows))

    def number_blocks(
        self, positions: Sequence[int], step: int, max_rows: int | None = None
    ) -> Iterator[tuple[int, NDArray[Any]]]:
        """The numbers of ``positions`` in blocks of rows, each with its first row.

        A block has a multiple of ``step`` rows, by default as many as fit ``BLOCK_CELLS``, and is overwritten by the
        next one; an array is one block and is not copied.
        """
        if isinstance(self.data, np.ndarray):
            yield 0, self.data if len(positions) == self.data.shape[1] else self.data[:, positions]
            return
        from seqatt.data.tables.arrow_columns import NumberColumn

        columns = [NumberColumn(self.data.column(p), self.names[p], self.argument) for p in positions]
        size = max_rows or step * max(1, BLOCK_CELLS // max(1, step * len(positions)))
        buffer = np.empty((min(size, self.rows), len(positions)), dtype=np.float64, order="F")
        for start in range(0, self.rows, size):
            block = buffer[: self.rows - start]
            for j, column in enumerate(columns):
                column.write(start, block[:, j])
            yield start, block

    def categories(self, position: int) -> CategoricalValues:
        """A column of any kind as distinct texts, and the position of each row's text."""
        import pyarrow as pa

        from seqatt.data.tables.arrow_columns import categorical_values

        return categorical_values(
            self.data.column(position) if self.framed else pa.array(self.data[:, position])
        )

    def labels(self, position: int) -> NDArray[np.object_]:
        """A categorical column as strings (rows,); missing values are None."""
        texts, positions = self.categories(position)
        return np.array([*texts.to_pylist(), None], dtype=object)[positions]

    def column(self, name: str) -> Any:
        """The values of one column: an Arrow chunked array for a data frame, else a NumPy array."""
        position = self.names.index(name)
        if self.framed:
            return self.data.column(position)
        return self.data[:, [position]].toarray()[:, 0] if self.sparse else self.data[:, position]

    def select(self, positions: Sequence[int]) -> InputTable:
        """The columns at ``positions``, in that order."""
        names = tuple(self.names[p] for p in positions)
        kinds = tuple(self.kinds[p] for p in positions)
        data = self.data.select(list(positions)) if self.framed else self.data[:, list(positions)]
        return replace(self, data=data, names=names, kinds=kinds)

    def select_rows(self, mask: NDArray[np.bool_]) -> InputTable:
        """The rows where ``mask`` is True."""
        data = self.data.filter(mask) if self.framed else self.data[mask]
        return replace(self, data=data, rows=int(mask.sum()))


def read_input_table(X: Any, argument: str = "X", ignore: Sequence[str] = ()) -> InputTable:
    """Check any supported container and wrap it as an ``InputTable``, without the columns in ``ignore``."""
    if isinstance(X, InputTable):
        return _leave_out(X, ignore)
    if is_sparse(X):
        return _leave_out(_read_sparse(X.tocsr(), argument), ignore)
    package = type(X).__module__.partition(".")[0]
    if package in WRITE_PARQUET and type(X).__name__ in ("DataFrame", "Dataset", "MaterializedDataset"):
        raise TypeError(
            f"{argument}: a {type(X).__name__} of {package} may be larger than memory; write it with "
            f"{WRITE_PARQUET[package].replace('X', argument)} and pass the folder"
        )
    check_unique_names(X, argument)
    frame = nw.from_native(X, eager_only=True, pass_through=True)
    if isinstance(frame, nw.DataFrame):
        return _read_frame(frame, argument, ignore)
    return _leave_out(_read_array(X, argument), ignore)


def to_array(values: Any, argument: str) -> NDArray[Any]:
    """Anything that NumPy reads as an array, or a tensor; rows of different lengths are an error."""
    values = tensor_values(values)
    try:
        return np.asarray(values)
    except ValueError:
        raise ValueError(f"{argument}: {SAME_LENGTH}") from None


def _read_array(X: Any, argument: str) -> InputTable:
    refuse_dicts(X, argument)
    refuse_batches(X, argument)
    if isinstance(X, np.ma.MaskedArray) and X.dtype.kind in "biuf":
        X = np.ma.filled(X.astype(np.float64), np.nan)  # what is masked is missing
    array = to_array(X, argument)
    if array.ndim != 2:
        remedy = (
            f"pass pandas.DataFrame({argument})"
            if array.dtype.names
            else f"reshape it with .reshape(len({argument}), -1) to make each value of a row a feature"
            if array.ndim > 2
            else "reshape it with .reshape(-1, 1) if it is a single feature"
        )
        raise ValueError(
            f"{argument}: must be a table of rows and columns, got {array.ndim} dimension(s); {remedy}"
        )
    _check_size(array.shape, argument)
    if array.dtype.kind == "c":
        raise ValueError(f"{argument}: {COMPLEX}")
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
    return InputTable(array, names, (kind,) * len(names), len(array), named=False, argument=argument)


def _read_sparse(X: Any, argument: str) -> InputTable:
    _check_size(X.shape, argument)
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    if X.dtype.kind == "c":
        raise ValueError(f"{argument}: {COMPLEX}")
    if X.dtype.kind not in "biuf":
        raise ValueError(f"{argument}: a sparse matrix must hold numbers, got {X.dtype}")
    names = tuple(f"x{i}" for i in range(X.shape[1]))
    kind: Kind = "numeric"
    return InputTable(X, names, (kind,) * len(names), X.shape[0], named=False, argument=argument)


def _read_frame(frame: nw.DataFrame[Any], argument: str, ignore: Sequence[str]) -> InputTable:
    import pyarrow as pa

    from seqatt.data.tables.arrow_columns import read_column, read_numbers

    _check_size(frame.shape, argument)
    user_names = [plain_name(name) for name in frame.columns]
    given_names = {str(name): name for name in user_names if not isinstance(name, str)}
    rows, width = frame.shape
    if width >= max(rows, WIDE_COLUMNS) and (numbers := read_numbers(frame)) is not None:
        kind: Kind = "numeric"
        all_names = tuple(map(str, user_names))
        table = InputTable(numbers, all_names, (kind,) * width, rows, True, argument, given_names)
        return _leave_out(table, ignore)
    names = feature_names([str(name) for name in user_names], ignore)
    kept = set(names)
    all_series: Iterable[Any] = frame.iter_columns()
    columns: list[Any] = []
    texts: set[str] = set()
    for name, series in zip(map(str, user_names), all_series, strict=True):
        if name in kept:
            columns.append(read_column(series, argument))
            if series.dtype in (nw.String, nw.Object) and _kind(columns[-1]) == "categorical":
                texts.add(name)
    kinds = tuple(map(_kind, columns))
    table = pa.table(columns, names)
    return InputTable(table, tuple(names), kinds, rows, True, argument, given_names, frozenset(texts))


def _kind(column: Any) -> Kind:
    from pyarrow import types

    if types.is_boolean(column.type):
        return "boolean"
    # Only missing values: a constant column of any kind.
    categorical = types.is_dictionary(column.type) and column.null_count < len(column)
    return "categorical" if categorical else "numeric"


def _leave_out(table: InputTable, ignore: Sequence[str]) -> InputTable:
    if not ignore:
        return table
    kept = set(feature_names(table.names, ignore))
    return table.select([i for i, name in enumerate(table.names) if name in kept])


def feature_names(
    names: Sequence[str],
    ignore: Sequence[str] = (),
    target: str | None = None,
    sample_weight: str | None = None,
    argument: str = "y",
) -> list[str]:
    """The columns that are features: all but those ignored, the target and the weights, if these are columns.

    ``argument`` is the name of the argument that names the target.
    """
    named = {argument: (target,), "ignore": ignore, "sample_weight": (sample_weight,)}
    for option, columns in named.items():
        for name in columns:
            if name is not None and name not in names:
                raise ValueError(
                    f"{option}: no column {show(name)}; {suggest(name, names) or list_names(names)}"
                )
    if target in ignore:
        raise ValueError(f"ignore: {target!r} is the target, which is never a feature; leave it out")
    if target is not None and target == sample_weight:
        raise ValueError(f"sample_weight: {target!r} is the target; name a column of weights")
    not_features = {target, sample_weight, *ignore}
    inputs = [name for name in names if name not in not_features]
    if not inputs:
        raise ValueError("X: no columns are left to choose from; ignore fewer columns")
    return inputs


def check_unique_names(X: Any, argument: str) -> None:
    """Check this on the user's own frame: libraries differ in what they do with a repeated name."""
    names = getattr(X, "column_names", getattr(X, "columns", None))
    counts = Counter(str(plain_name(name)) for name in names) if isinstance(names, Iterable) else {}
    repeated = [name for name, count in counts.items() if count > 1]
    if repeated:
        raise ValueError(
            f"{argument}: column names must be unique, {repeated[0]!r} appears twice; rename one"
        )


def _check_size(shape: tuple[int, ...], argument: str) -> None:
    rows, columns = shape
    if rows == 0:
        raise ValueError(f"{argument}: the table has no rows")
    if columns == 0:
        raise ValueError(f"{argument}: the table has no columns; at least 1 is needed")
