"""Files and a target, checked and fitted on a schema sample, ready to be read batch by batch."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from seqatt.data.files.column_types import column_kind, decide_kinds
from seqatt.data.files.columns import (
    CategoricalColumn,
    NumericColumn,
    as_category_values,
    fit_category,
    fit_number,
    read_numbers,
)
from seqatt.data.files.file_set import FileSet, open_files, read_row_group
from seqatt.data.files.formats.file_format import RowGroup
from seqatt.data.files.options import FileOptions
from seqatt.data.files.rows import EncodedRows
from seqatt.data.files.shards import ShardSlice
from seqatt.data.files.target_column import TargetColumn, check_target_values, fit_target, read_weights
from seqatt.data.tables.containers import Kind
from seqatt.data.tables.target import Target
from seqatt.data.tables.whole_file import UnreadableFile

SAMPLED_GROUPS = 8  # row groups of the schema sample, spread over all of them: files are often sorted by time


@dataclass(frozen=True)
class FileData:
    """Encoding of the columns of files; for files what ``TableData`` is for a table in memory.

    Features are sorted by name; ``user_position`` maps them back to the order of the columns in the files.
    ``types`` are the Arrow types of all columns that are read, ``kinds`` the kinds of the features.
    ``expected_rows`` is the number of rows, estimated if some file does not store it.
    """

    files: FileSet
    types: dict[str, Any]
    kinds: dict[str, Kind]
    names: tuple[str, ...]
    user_position: NDArray[np.int64]
    input_columns: tuple[tuple[int, ...], ...]
    input_names: tuple[str, ...]
    constant: NDArray[np.bool_]
    numbers: tuple[NumericColumn, ...]
    categories: tuple[CategoricalColumn, ...]
    target_column: TargetColumn
    expected_rows: float

    @property
    def features(self) -> int:
        return len(self.names)

    @property
    def target(self) -> Target:
        return self.target_column.target

    @property
    def numeric_feature(self) -> NDArray[np.int64]:
        """The feature of each column of ``EncodedRows.numbers``."""
        features = [self.names.index(number.name) for number in self.numbers]
        return np.repeat(np.array(features, dtype=np.int64), [number.width for number in self.numbers])

    @property
    def categorical_feature(self) -> NDArray[np.int64]:
        """The feature of each column of ``EncodedRows.codes``."""
        return np.array([self.names.index(c.name) for c in self.categories], dtype=np.int64)

    def read(self, row_group: RowGroup) -> Iterator[tuple[EncodedRows, float]]:
        """Encoded rows of a row group, in blocks, each with the share of it read so far (0 to 1)."""
        return self.read_slice(ShardSlice(row_group), 0)

    def read_slice(self, shard_slice: ShardSlice, skip: int) -> Iterator[tuple[EncodedRows, float]]:
        """The same for a slice without its first ``skip`` rows; an error about a value names the file."""
        first = 0
        for batch, share in read_row_group(shard_slice.row_group, self.types, self.kinds):
            own = shard_slice.cut(batch, first)
            first += batch.num_rows
            skipped = min(skip, own.num_rows)
            skip -= skipped
            if own.num_rows > skipped:
                try:
                    yield self.encode(own.slice(skipped)), share
                except ValueError as error:
                    raise ValueError(f"{shard_slice.row_group.path}: {error}") from None
            if shard_slice.ends_before(first):
                return

    def empty_rows(self) -> EncodedRows:
        """A batch of zero rows."""
        dtype = np.int64 if self.target.task == "multiclass" else np.float32
        return EncodedRows(
            np.empty((0, sum(n.width for n in self.numbers)), dtype=np.float32),
            np.empty((0, len(self.categories)), dtype=np.int32),
            np.empty(0, dtype=dtype),
            np.empty(0, dtype=np.float32),
        )

    def encode(self, batch: Any) -> EncodedRows:
        """Encode an Arrow record batch."""
        # Columns are written contiguously and transposed at the end: writing cells of rows would be slower.
        numbers = np.empty((sum(n.width for n in self.numbers), batch.num_rows), dtype=np.float32)
        start = 0
        for number in self.numbers:
            number.write(batch.column(number.name), numbers[start : start + number.width])
            start += number.width
        codes = np.empty((len(self.categories), batch.num_rows), dtype=np.int32)
        for j, category in enumerate(self.categories):
            codes[j] = category.codes(batch.column(category.name))
        return EncodedRows(
            np.ascontiguousarray(numbers.T), np.ascontiguousarray(codes.T), *self.target_column.encode(batch)
        )


def read_file_data(where: Any, target: Any, options: FileOptions, max_codes: int) -> FileData:
    """Check names, types and values as far as the schema sample shows them, and fit the encoding on it.

    ``max_codes`` bounds the codes per categorical feature.
    """
    skip = options.on_bad_file == "skip"
    files = where if isinstance(where, FileSet) else open_files(where, skip=skip)
    inputs = _input_names(files, target, options)
    kinds = decide_kinds(files.types, inputs, options.column_types)
    options.check_kinds(kinds)
    others = [target, *([options.sample_weight] if options.sample_weight else [])]
    types = {name: files.types[name] for name in [*inputs, *others]}
    sample, expected_rows = _read_sample(files, types, kinds, others, options.schema_rows, skip)
    names = sorted(inputs)
    numbers = tuple(
        fit_number(
            name,
            sample[name],
            log1p=kinds[name] == "numeric" and (options.log1p is True or name in (options.log1p or ())),
            indicator=options.missing_indicator,
        )
        for name in names
        if kinds[name] != "categorical"
    )
    categories = tuple(
        fit_category(name, sample[name], max_codes) for name in names if kinds[name] == "categorical"
    )
    constant = {n.name: n.constant for n in numbers} | {c.name: c.constant for c in categories}
    if all(constant.values()):
        raise ValueError("X: every feature is constant in the schema sample; there is nothing to choose from")
    weights = (
        read_weights(sample[options.sample_weight], options.sample_weight) if options.sample_weight else None
    )
    user_position = np.array([inputs.index(name) for name in names])
    return FileData(
        files=files,
        types=types,
        kinds=kinds,
        names=tuple(names),
        user_position=user_position,
        input_columns=tuple((int(p),) for p in user_position),
        input_names=tuple(inputs),
        constant=np.array([constant[name] for name in names]),
        numbers=numbers,
        categories=categories,
        target_column=fit_target(target, sample[target], weights, options),
        expected_rows=expected_rows,
    )


def read_schema_sample(data: FileData, options: FileOptions) -> EncodedRows:
    """The encoded rows of the schema sample, read again."""
    others = [name for name in data.types if name not in data.kinds]
    skip = options.on_bad_file == "skip"
    sample, _ = _read_sample(data.files, data.types, data.kinds, others, options.schema_rows, skip)
    return data.encode(pa.RecordBatch.from_pydict(sample))


def _input_names(files: FileSet, target: Any, options: FileOptions) -> list[str]:
    """The columns that are features, in the order of the files."""
    if not isinstance(target, str):
        raise TypeError(f"target: must name the column of the files to predict, got {target!r}")
    named = {"target": [target], "ignore": options.ignore, "sample_weight": [options.sample_weight or target]}
    for argument, columns in named.items():
        for name in columns:
            if name not in files.types:
                known = ", ".join(list(files.types)[:8])
                several = argument == "target" and "," in name
                hint = "; files have one target, several are for tables in memory" if several else ""
                raise ValueError(f"{argument}: no column {name!r}; the columns are {known}{hint}")
    if target in options.ignore:
        raise ValueError(f"ignore: {target!r} is the target, which is never a feature; leave it out")
    if target == options.sample_weight:
        raise ValueError(f"sample_weight: {target!r} is the target; name a column of weights")
    inputs = [n for n in files.types if n not in (target, options.sample_weight, *options.ignore)]
    if not inputs:
        raise ValueError("X: no columns are left to choose from; ignore fewer columns")
    return inputs


def _read_sample(
    files: FileSet,
    types: dict[str, Any],
    kinds: dict[str, Kind],
    others: list[str],
    rows: int,
    skip: bool = False,
) -> tuple[dict[str, Any], float]:
    """The columns of the schema sample, the first rows of some row groups, and the number of rows of all files.

    ``others`` are the columns of the target and, if any, the weight. An error about a value names the file;
    with ``skip`` it is not raised here but when that row group is read in a pass.
    """
    groups = files.row_groups
    spread = dict.fromkeys(groups[i * len(groups) // SAMPLED_GROUPS] for i in range(SAMPLED_GROUPS))
    rows_per_group = -(-rows // len(spread))
    tables, sampled, seen, size = [], 0, 0, 0.0
    errors: list[ValueError] = []
    for group in dict.fromkeys([*spread, *groups]):
        wanted, share = min(rows_per_group, rows - sampled), 1.0
        if wanted <= 0:
            break
        try:
            for batch, share in read_row_group(group, types, kinds):  # noqa: B007
                head = batch.slice(0, wanted)
                tables.append(_plain_columns(head, kinds, *others))
                wanted -= head.num_rows
                sampled += head.num_rows
                seen += batch.num_rows
                if wanted <= 0:
                    break
        except ValueError as error:
            names_file = isinstance(error, UnreadableFile)
            errors.append(error if names_file else ValueError(f"{group.path}: {error}"))
            if not skip:
                raise errors[0] from None
        size += share * group.size
    if not seen:
        if errors:
            raise errors[0]
        raise UnreadableFile(f"{groups[0].path}: there are no rows")
    table = pa.concat_tables(tables, promote_options="permissive").combine_chunks()
    sample = {name: table[name].combine_chunks() for name in table.column_names}
    return sample, float(files.rows or seen * files.size / max(size, 1.0))


def _plain_columns(batch: Any, kinds: dict[str, Kind], target: str, weight: str | None = None) -> Any:
    """Categories as text and numbers as floats: types of several files, such as dates, do not concatenate."""
    check_target_values(batch.column(target), target)
    if weight is not None:
        read_weights(batch.column(weight), weight)
    columns = {}
    for name in batch.schema.names:
        column = batch.column(name)
        if kinds.get(name, "categorical") != "categorical":
            columns[name] = pa.array(read_numbers(column, name))
        elif name in kinds or column_kind(column.type) == "categorical":
            columns[name] = as_category_values(column).cast(pa.string())
        else:
            columns[name] = as_category_values(column)
    return pa.table(columns)
