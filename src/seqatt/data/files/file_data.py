"""Files and a target, checked in a bounded first look and ready to be read."""

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
    comparable,
    fit_category,
    fit_number,
    read_numbers,
)
from seqatt.data.files.file_set import FileSet, RowGroup, open_files, read_row_group
from seqatt.data.files.options import FileOptions
from seqatt.data.files.rows import EncodedRows
from seqatt.data.files.shards import ShardSlice
from seqatt.data.files.target_column import TargetColumn, check_target_values, fit_target, read_weights
from seqatt.data.tables.containers import Kind
from seqatt.data.tables.table_data import class_weights
from seqatt.data.tables.target import Target
from seqatt.data.tables.whole_file import UnreadableFile

LOOKED_AT = 8  # parts, spread over all of them: files are often sorted by time


@dataclass(frozen=True)
class FileData:
    """What is known of files before they are read, in the words of ``Source``.

    Features are laid out by name; ``user_position`` leads back to the order in the files. ``expected`` is the
    number of rows, or an estimate where no file says.
    """

    files: FileSet
    types: dict[str, Any]
    kinds: dict[str, Kind]
    names: tuple[str, ...]
    user_position: NDArray[np.int64]
    members: tuple[tuple[int, ...], ...]
    inputs: tuple[str, ...]
    constant: NDArray[np.bool_]
    numbers: tuple[NumericColumn, ...]
    categories: tuple[CategoricalColumn, ...]
    labels: TargetColumn
    expected: float

    @property
    def features(self) -> int:
        return len(self.names)

    @property
    def target(self) -> Target:
        return self.labels.target

    @property
    def numeric_feature(self) -> NDArray[np.int64]:
        """The feature of each column of ``EncodedRows.numbers``."""
        owners = [self.names.index(number.name) for number in self.numbers]
        return np.repeat(np.array(owners, dtype=np.int64), [number.width for number in self.numbers])

    @property
    def categorical_feature(self) -> NDArray[np.int64]:
        """The feature of each column of ``EncodedRows.places``."""
        return np.array([self.names.index(c.name) for c in self.categories], dtype=np.int64)

    def read(self, part: RowGroup) -> Iterator[tuple[EncodedRows, float]]:
        """A part, decoded, and how much of it has been read by then."""
        return self.read_piece(ShardSlice(part), 0)

    def read_piece(self, piece: ShardSlice, skip: int) -> Iterator[tuple[EncodedRows, float]]:
        """The same for some of its rows, without the first ``skip``; wrong values are told with the file."""
        first = 0
        for batch, share in read_row_group(piece.part, self.types, self.kinds):
            own = piece.cut(batch, first)
            first += batch.num_rows
            passed = min(skip, own.num_rows)
            skip -= passed
            if own.num_rows > passed:
                try:
                    yield self.decode(own.slice(passed)), share
                except ValueError as error:
                    raise ValueError(f"{piece.part.path}: {error}") from None
            if piece.ends_before(first):
                return

    def no_rows(self) -> EncodedRows:
        """A batch of none, in the shapes of all others."""
        kind = np.int64 if self.target.task == "multiclass" else np.float32
        return EncodedRows(
            np.empty((0, sum(n.width for n in self.numbers)), dtype=np.float32),
            np.empty((0, len(self.categories)), dtype=np.int32),
            np.empty(0, dtype=kind),
            np.empty(0, dtype=np.float32),
        )

    def decode(self, batch: Any) -> EncodedRows:
        # A line for each column, written whole, then turned: single cells of rows are far apart.
        numbers = np.empty((sum(n.width for n in self.numbers), batch.num_rows), dtype=np.float32)
        start = 0
        for number in self.numbers:
            number.write(batch.column(number.name), numbers[start : start + number.width])
            start += number.width
        places = np.empty((len(self.categories), batch.num_rows), dtype=np.int32)
        for j, category in enumerate(self.categories):
            places[j] = category.places(batch.column(category.name))
        return EncodedRows(
            np.ascontiguousarray(numbers.T), np.ascontiguousarray(places.T), *self.labels.decode(batch)
        )


def read_file_data(where: Any, target: Any, options: FileOptions, most_places: int) -> FileData:
    """Check all that can be checked before any work: names, types, and what the first look shows."""
    skip = options.on_bad_file == "skip"
    files = where if isinstance(where, FileSet) else open_files(where, skip=skip)
    inputs = _features(files, target, options)
    kinds = decide_kinds(files.types, inputs, options.kinds)
    options.check_kinds(kinds)
    apart = [target, *([options.sample_weight] if options.sample_weight else [])]
    types = {name: files.types[name] for name in [*inputs, *apart]}
    table, expected = _look(files, types, kinds, apart, options.look, skip)
    names = sorted(inputs)
    numbers = tuple(
        fit_number(
            name,
            table[name],
            log1p=kinds[name] == "numeric" and (options.log1p is True or name in (options.log1p or ())),
            indicator=options.missing_indicator,
        )
        for name in names
        if kinds[name] != "categorical"
    )
    categories = tuple(
        fit_category(name, table[name], most_places) for name in names if kinds[name] == "categorical"
    )
    constant = {n.name: n.constant for n in numbers} | {c.name: c.constant for c in categories}
    if all(constant.values()):
        raise ValueError("X: every feature is constant in the first look; there is nothing to choose from")
    weights = (
        read_weights(table[options.sample_weight], options.sample_weight) if options.sample_weight else None
    )
    user_position = np.array([inputs.index(name) for name in names])
    return FileData(
        files=files,
        types=types,
        kinds=kinds,
        names=tuple(names),
        user_position=user_position,
        members=tuple((int(p),) for p in user_position),
        inputs=tuple(inputs),
        constant=np.array([constant[name] for name in names]),
        numbers=numbers,
        categories=categories,
        labels=fit_target(target, table[target], weights, options, class_weights),
        expected=expected,
    )


def read_schema_sample(stream: FileData, options: FileOptions) -> EncodedRows:
    """The rows of the first look, decoded."""
    apart = [name for name in stream.types if name not in stream.kinds]
    skip = options.on_bad_file == "skip"
    table, _ = _look(stream.files, stream.types, stream.kinds, apart, options.look, skip)
    return stream.decode(pa.RecordBatch.from_pydict(table))


def _features(files: FileSet, target: Any, options: FileOptions) -> list[str]:
    if not isinstance(target, str):
        raise TypeError(f"target: must name the column of the files to predict, got {target!r}")
    told = {"target": [target], "ignore": options.ignore, "sample_weight": [options.sample_weight or target]}
    for argument, wanted in told.items():
        for name in wanted:
            if name not in files.types:
                some = ", ".join(list(files.types)[:8])
                several = argument == "target" and "," in name
                hint = "; files have one target, several are for tables in memory" if several else ""
                raise ValueError(f"{argument}: no column {name!r}; the columns are {some}{hint}")
    if target in options.ignore:
        raise ValueError(f"ignore: {target!r} is the target, which is no feature anyway; leave it out")
    if target == options.sample_weight:
        raise ValueError(f"sample_weight: {target!r} is the target; name a column of weights")
    inputs = [n for n in files.types if n not in (target, options.sample_weight, *options.ignore)]
    if not inputs:
        raise ValueError("X: no columns are left to choose from")
    return inputs


def _look(
    files: FileSet,
    types: dict[str, Any],
    kinds: dict[str, Kind],
    apart: list[str],
    rows: int,
    skip: bool = False,
) -> tuple[Any, float]:
    """A table of the first rows of some parts, and how many rows there seem to be in all.

    ``apart`` are the target and perhaps a weight. What cannot be used is told with its file; with ``skip`` it
    is told of when its turn comes.
    """
    parts = files.parts
    spread = dict.fromkeys(parts[i * len(parts) // LOOKED_AT] for i in range(LOOKED_AT))
    each = -(-rows // len(spread))
    tables, taken, seen, size = [], 0, 0, 0.0
    bad: list[ValueError] = []
    for part in dict.fromkeys([*spread, *parts]):
        wanted, share = min(each, rows - taken), 1.0
        if wanted <= 0:
            break
        try:
            for batch, share in read_row_group(part, types, kinds):  # noqa: B007
                some = batch.slice(0, wanted)
                tables.append(_plain(some, kinds, *apart))
                wanted -= some.num_rows
                taken += some.num_rows
                seen += batch.num_rows
                if wanted <= 0:
                    break
        except ValueError as error:
            named = isinstance(error, UnreadableFile)
            bad.append(error if named else ValueError(f"{part.path}: {error}"))
            if not skip:
                raise bad[0] from None
        size += share * part.size
    if not seen:
        if bad:
            raise bad[0]
        raise UnreadableFile(f"{parts[0].path}: there are no rows")
    table = pa.concat_tables(tables, promote_options="permissive").combine_chunks()
    looked = {name: table[name].combine_chunks() for name in table.column_names}
    return looked, float(files.rows or seen * files.size / max(size, 1.0))


def _plain(batch: Any, kinds: dict[str, Kind], target: str, weight: str | None = None) -> Any:
    """Categories as texts, numbers as floats: dictionaries, dates and times of several files do not join."""
    check_target_values(batch.column(target), target)
    if weight is not None:
        read_weights(batch.column(weight), weight)
    columns = {}
    for name in batch.schema.names:
        column = batch.column(name)
        if kinds.get(name, "categorical") != "categorical":
            columns[name] = pa.array(read_numbers(column, name))
        elif name in kinds or column_kind(column.type) == "categorical":
            columns[name] = comparable(column).cast(pa.string())
        else:
            columns[name] = comparable(column)
    return pa.table(columns)
