"""The data that ``select`` and ``evaluate`` get: a table or files, and how these are encoded."""

from __future__ import annotations

import os
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from seqatt.algorithms.registry import Method
from seqatt.column_names import plain_name
from seqatt.data.latest_rows import note_latest_target
from seqatt.data.tables.options import Categories, TableOptions
from seqatt.data.tables.table_data import TableData, read_table_data
from seqatt.display_text import LEAVES_RANGE
from seqatt.options import names_of
from seqatt.validation import show

if TYPE_CHECKING:  # files need pyarrow, tables do not
    from seqatt.data.files.file_data import FileData

TABLE_OPTIONS = names_of(TableOptions)
MAX_COUNTED = 1 << 12  # values per category that sums distinguish before they keep the most frequent


class StreamEncoding(NamedTuple):
    """How categories are encoded that are read batch by batch: one-hot, or as at most ``max_codes`` codes.

    ``max_codes`` None is the option ``hash_buckets``.
    """

    one_hot: bool = False
    max_codes: int | None = None
    share_rare: bool = True


EMBEDDED = StreamEncoding()  # for the built-in network
ONE_HOT = StreamEncoding(one_hot=True)  # for a network that trains through autograd
COUNTED = StreamEncoding(max_codes=MAX_COUNTED, share_rare=False)  # for sums


def categories_for(method: Method, own_inputs: str | None = None) -> Categories:
    """How a method takes categories: the built-in network embeds those of many values.

    ``own_inputs`` is what a network that trains through autograd is called with.
    """
    if method.trains and own_inputs != "columns":
        return "codes" if own_inputs == "raw" else "mixed"
    return "one_hot"


def stream_encoding_for(method: Method, own_inputs: str | None) -> StreamEncoding | None:
    """How a method takes categories of files read batch by batch; None if it cannot read them so."""
    if method.trains:
        return ONE_HOT if own_inputs == "columns" else EMBEDDED
    return None if method.select_files is None else COUNTED


@dataclass(frozen=True)
class Reading:
    """Data, and how it was read: facts for ``Selection.settings``, and notes beside those about the columns."""

    data: TableData | FileData
    facts: dict[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @property
    def settings(self) -> dict[str, Any]:
        """The facts, and what was noticed about rows and columns."""
        notes = [*self.notes, *self.data.notes]
        return self.facts | ({"notes": notes} if notes else {})

    def with_latest_rows(self) -> Reading:
        """With a note where the target of the latest of rows in time is out of the range of the earlier ones."""
        note = note_latest_target(self.data)
        return self if note is None else replace(self, notes=(note,), facts=self.facts | {LEAVES_RANGE: True})


def are_files(X: Any) -> bool:
    """Whether ``X`` names files (a path, a pattern, a folder, a URL, or a list of these), or is read like files."""
    if isinstance(X, str | os.PathLike) or type(X).__name__ == "FileSet" or are_streams(X):
        return True
    return isinstance(X, list | tuple) and bool(X) and all(isinstance(x, str | os.PathLike) for x in X)


def are_batches(X: Any) -> bool:
    """Whether ``X`` is an iterable of batches with a length, and no table, array or list of them."""
    # Queries first: to ask a LazyFrame for its columns resolves its schema.
    if isinstance(X, str | bytes | dict | list | tuple) or are_files(X):
        return False
    if hasattr(X, "shape") or hasattr(X, "columns"):
        return False
    return hasattr(X, "__iter__") and hasattr(X, "__len__")


def are_streams(X: Any) -> bool:
    """Whether ``X`` is a query or a stream of rows: a polars LazyFrame, a ``pyarrow.dataset.Dataset``, or an object
    with Arrow's stream interface that is no table, such as a DuckDB relation or a record-batch reader."""
    classes = {(each.__module__.partition(".")[0], each.__name__) for each in type(X).__mro__}
    if classes & {("polars", "LazyFrame"), ("pyarrow", "Dataset")}:
        return True
    return hasattr(X, "__arrow_c_stream__") and not hasattr(X, "__array__")


def choose_target(y: Any, target: Any, *, files: bool = False) -> Any:
    """The target: ``y``, or the name of a column of X that is given as ``target``, as text; several have commas."""
    if target is None:
        return y
    if y is not None:
        raise TypeError("target: names a column of X to predict; pass either target or y")
    if isinstance(target, list):
        names = [str(plain_name(name)) for name in target]
        if not names or (len(names) > 1 and any("," in name for name in names)):
            raise ValueError(f"target: must name columns without commas, got {show(target)}; pass y instead")
        return ",".join(names)
    return target if files or isinstance(target, str) else str(plain_name(target))


def read_table(X: Any, y: Any, options: TableOptions, categories: Categories, **others: Any) -> TableData:
    """A table in memory; ``others`` are further arguments of ``read_table_data``."""
    given = {name: getattr(options, name) for name in TABLE_OPTIONS}
    return read_table_data(X, y, categories=categories, **given, **others)
