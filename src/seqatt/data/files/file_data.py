"""Files and a target, checked and fitted on a schema sample, ready to be read batch by batch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from seqatt.data.files.encoding.categories import (
    CategoricalColumn,
    CodeTable,
    OneHotColumn,
    fit_codes,
    fit_one_hot,
)
from seqatt.data.files.encoding.numbers import NumericColumn, fit_number, write_numbers
from seqatt.data.files.encoding.rows import EncodedRows
from seqatt.data.files.encoding.target_column import (
    TargetColumn,
    fit_target,
    read_weights,
)
from seqatt.data.files.file_columns import find_numbers, open_columns
from seqatt.data.files.file_set import FileSet, read_row_group
from seqatt.data.files.formats.file_format import numbers_of_text
from seqatt.data.files.options import FileOptions
from seqatt.data.files.schema_sample import note_sample, read_sample
from seqatt.data.files.shards import ShardSlice
from seqatt.data.tables.categories import MIN_CATEGORY_ROWS
from seqatt.data.tables.column_roles import log1p_columns
from seqatt.data.tables.containers import Kind
from seqatt.data.tables.groups import list_features
from seqatt.data.tables.target import Target

Column = NumericColumn | OneHotColumn | CategoricalColumn


@dataclass(frozen=True)
class FileData:
    """Encoding of the columns of files; for files what ``TableData`` is for a table in memory.

    Features are sorted by name; ``user_position`` maps them back to the order of the columns in the files.
    ``types`` are the Arrow types of all columns that are read, ``kinds`` the kinds of the features.
    Categorical features in ``one_hot`` become columns of numbers, those in ``categories`` codes.
    ``expected_rows`` is the number of rows, estimated if some file does not store it.
    """

    files: FileSet
    types: dict[str, Any]
    kinds: dict[str, Kind]
    names: tuple[str, ...]
    user_position: NDArray[np.int64]
    input_columns: tuple[tuple[int, ...], ...]
    input_names: tuple[str, ...]
    feature_of_column: dict[str, int]
    constant: NDArray[np.bool_]
    numbers: tuple[NumericColumn, ...]
    one_hot: tuple[OneHotColumn, ...]
    categories: tuple[CategoricalColumn, ...]
    target_column: TargetColumn
    expected_rows: float
    held_out: tuple[ShardSlice, ...] = ()  # rows for validation, which otherwise have weight zero
    notes: tuple[str, ...] = ()  # sentences about defects of the columns

    @property
    def rows(self) -> int:
        """The expected number of rows."""
        return max(1, round(self.expected_rows))

    @property
    def features(self) -> int:
        return len(self.names)

    @property
    def given_names(self) -> tuple[str, ...]:
        """The names as the user gave them: those of columns of files are text."""
        return self.names

    @property
    def given_input_names(self) -> tuple[str, ...]:
        return self.input_names

    @property
    def encoded_columns(self) -> int:
        """Columns of numbers and of codes."""
        return len(self.feature_of) + len(self.categories)

    @property
    def target(self) -> Target:
        return self.target_column.target

    @cached_property
    def feature_of(self) -> NDArray[np.int64]:
        """The feature (c,) of each column of ``EncodedRows.numbers``: the numbers first, then one-hot columns."""
        widths = [number.width for number in self.numbers] + [category.width for category in self.one_hot]
        return np.repeat(self._positions([*self.numbers, *self.one_hot]), widths)

    @cached_property
    def coded_features(self) -> NDArray[np.int64]:
        """The feature (m,) of each column of ``EncodedRows.codes``."""
        return self._positions(self.categories)

    @property
    def code_counts(self) -> tuple[int, ...]:
        """The number of codes of each column of ``EncodedRows.codes``."""
        return tuple(category.size for category in self.categories)

    @property
    def row_bytes(self) -> int:
        """Bytes per encoded row: of numbers, codes, target and weight."""
        return 4 * (len(self.feature_of) + len(self.categories) + 3)

    def scaled(self, scaling: str) -> FileData:
        """This encoding with numbers in the range from 0 to 1 ("min-max") or as they are ("none").

        The range is that of the schema sample; values beyond it are clipped. One-hot columns are 0 or 1. With
        "standard" it is the encoding itself.
        """
        if scaling == "standard":
            return self
        numbers = tuple(number.scaled(scaling) for number in self.numbers)
        return replace(self, numbers=numbers, one_hot=tuple(column.unscaled() for column in self.one_hot))

    def take_features(self, features: NDArray[np.int64]) -> FileData:
        """Some features, in the order of all; the columns of the others are not read."""
        number_of = {int(feature): number for number, feature in enumerate(features)}
        kept = {c: number_of[f] for c, f in self.feature_of_column.items() if f in number_of}
        left_out = self.feature_of_column.keys() - kept
        return replace(
            self,
            types={name: kind for name, kind in self.types.items() if name not in left_out},
            kinds={name: kind for name, kind in self.kinds.items() if name in kept},
            names=tuple(self.names[f] for f in features),
            user_position=np.argsort(np.argsort(self.user_position[features])),
            input_columns=tuple(self.input_columns[f] for f in features),
            feature_of_column=kept,
            constant=self.constant[features],
            numbers=tuple(column for column in self.numbers if column.name in kept),
            one_hot=tuple(column for column in self.one_hot if column.name in kept),
            categories=tuple(column for column in self.categories if column.name in kept),
        )

    @cached_property
    def _code_table(self) -> CodeTable:
        return CodeTable(self.categories)

    def _positions(self, columns: Sequence[Column]) -> NDArray[np.int64]:
        return np.array([self.feature_of_column[column.name] for column in columns], dtype=np.int64)

    def read_slice(self, shard_slice: ShardSlice, skip: int) -> Iterator[tuple[EncodedRows, float]]:
        """Encoded rows of a slice without its first ``skip`` rows, in blocks.

        Each block comes with the share of the row group read so far (0 to 1). An error about a value names the file.
        """
        first = 0
        for batch, share in read_row_group(shard_slice.row_group, self.types, self.kinds, self.row_bytes):
            part = shard_slice.cut(batch, first)
            first += batch.num_rows
            skipped = min(skip, part.num_rows)
            skip -= skipped
            if part.num_rows > skipped:
                try:
                    rows = self.encode(part.slice(skipped))
                except ValueError as error:
                    raise ValueError(f"{shard_slice.row_group.path}: {error}") from None
                for held_out in self.held_out:
                    if held_out.row_group == shard_slice.row_group:
                        numbers = shard_slice.row_numbers(first - batch.num_rows, batch.num_rows)[skipped:]
                        rows.weights[held_out.contains(numbers)] = 0.0
                yield rows, share
            if shard_slice.ends_before(first):
                return

    def empty_rows(self) -> EncodedRows:
        """A batch of zero rows."""
        dtype = np.int64 if self.target.task == "multiclass" else np.float32
        return EncodedRows(
            np.empty((0, len(self.feature_of)), dtype=np.float32),
            np.empty((0, len(self.categories)), dtype=np.int32),
            np.empty(0, dtype=dtype),
            np.empty(0, dtype=np.float32),
        )

    def encode(self, batch: Any) -> EncodedRows:
        """Encode an Arrow record batch."""
        # Columns are written contiguously and transposed at the end: writing cells of rows would be slower.
        numbers = np.empty((len(self.feature_of), batch.num_rows), dtype=np.float32)
        write_numbers(self.numbers, batch, numbers)
        start = sum(number.width for number in self.numbers)
        for category in self.one_hot:
            category.write(batch.column(category.name), numbers[start : start + category.width])
            start += category.width
        codes = np.empty((len(self.categories), batch.num_rows), dtype=np.int32)
        self._code_table.write(batch, codes)
        return EncodedRows(
            np.ascontiguousarray(numbers.T), np.ascontiguousarray(codes.T), *self.target_column.encode(batch)
        )


def read_file_data(
    where: Any,
    target: Any,
    options: FileOptions,
    max_codes: int,
    *,
    one_hot: bool = False,
    share_rare: bool = False,
) -> FileData:
    """Check names, types and values as far as the schema sample shows them, and fit the encoding on it.

    Categorical features become at most ``max_codes`` codes each, or one-hot columns. With ``share_rare``, values of
    fewer than ``MIN_CATEGORY_ROWS`` rows in all files share a code, so that a network cannot memorise them.
    """
    for name in ("groups_of_rows", "time"):
        if getattr(options, name) is not None:
            raise ValueError(f"{name}: needs a table; raise memory so that the files are read into one")
    files, inputs, [target], kinds, types, texts = open_columns(where, target, options)
    sample, expected_rows = read_sample(files, types, kinds, options)
    numeric_texts = find_numbers({name: sample[name] for name in texts}, files, expected_rows)
    kinds |= numeric_texts
    sample |= {name: numbers_of_text(sample[name])[0] for name in numeric_texts}
    logarithms = {inputs[i] for i in log1p_columns(options.log1p, inputs, list(kinds.values()))}
    listed = sorted(list_features(inputs, options.groups), key=lambda feature: feature[0])
    feature_of_column = {inputs[c]: f for f, (_, columns) in enumerate(listed) for c in columns}
    names = sorted(inputs)
    numbers = tuple(
        fit_number(name, sample[name], log1p=name in logarithms, indicator=options.missing_indicator)
        for name in names
        if kinds[name] != "categorical"
    )
    categorical = [name for name in names if kinds[name] == "categorical"]
    # The sample has this share of all rows, and so about this share of the rows of each value.
    share = len(sample[target]) / max(expected_rows, 1.0)
    min_rows = MIN_CATEGORY_ROWS * min(1.0, share) if share_rare else 0.0
    hot: tuple[OneHotColumn, ...] = ()
    coded: tuple[CategoricalColumn, ...] = ()
    if one_hot:
        hot = tuple(fit_one_hot(name, sample[name], options.max_categories) for name in categorical)
    else:
        coded = tuple(fit_codes(name, sample[name], max_codes, min_rows) for name in categorical)
    fitted: list[Column] = [*numbers, *hot, *coded]
    constant = np.ones(len(listed), dtype=bool)
    for column in fitted:
        constant[feature_of_column[column.name]] &= column.constant
    if constant.all():
        raise ValueError(
            "X: every feature is constant, or text that never repeats, in the schema sample; there is nothing to "
            "choose from"
        )
    weights = (
        read_weights(sample[options.sample_weight], options.sample_weight) if options.sample_weight else None
    )
    target_column = fit_target(target, sample[target], weights, options, expected_rows)
    by_position = sorted(range(len(listed)), key=lambda f: listed[f][1][0])
    user_position = np.empty(len(listed), dtype=np.int64)
    user_position[by_position] = np.arange(len(listed))
    return FileData(
        files=files,
        types=types,
        kinds=kinds,
        names=tuple(name for name, _ in listed),
        user_position=user_position,
        input_columns=tuple(columns for _, columns in listed),
        input_names=tuple(inputs),
        feature_of_column=feature_of_column,
        constant=constant,
        numbers=numbers,
        one_hot=hot,
        categories=coded,
        target_column=target_column,
        expected_rows=expected_rows,
        notes=note_sample(
            sample,
            numbers,
            categorical,
            target_column.target,
            missing_indicator=options.missing_indicator,
        ),
    )


def read_sample_columns(data: FileData, options: FileOptions) -> dict[str, Any]:
    """The columns of the schema sample, read again."""
    return read_sample(data.files, data.types, data.kinds, options)[0]


def read_schema_sample(data: FileData, options: FileOptions) -> EncodedRows:
    """The encoded rows of the schema sample, read again."""
    return data.encode(pa.RecordBatch.from_pydict(read_sample_columns(data, options)))
