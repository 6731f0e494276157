"""Files and a target, checked in a bounded first look and ready to be read."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from seqatt.files import UnreadableFile
from seqatt.source import weight_of_class
from seqatt.stream.columns import Category, Number, comparable, fit_category, fit_number, read_numbers
from seqatt.stream.files import Files, Part, open_files, read_part
from seqatt.stream.kinds import decide_kinds, kind_of
from seqatt.stream.labels import Labels, fit_labels, insist_on_values, read_weights
from seqatt.stream.options import Reading
from seqatt.stream.pieces import Piece
from seqatt.stream.rows import Rows
from seqatt.table import Kind
from seqatt.target import Target

LOOKED_AT = 8  # parts, spread over all of them: files are often sorted by time


@dataclass(frozen=True)
class Stream:
    """What is known of files before they are read, in the words of ``Source``.

    Features are laid out by name; ``place`` leads back to the order in the files. ``expected`` is the
    number of rows, or an estimate where no file says.
    """

    files: Files
    types: dict[str, Any]
    kinds: dict[str, Kind]
    names: tuple[str, ...]
    place: NDArray[np.int64]
    members: tuple[tuple[int, ...], ...]
    inputs: tuple[str, ...]
    constant: NDArray[np.bool_]
    numbers: tuple[Number, ...]
    categories: tuple[Category, ...]
    labels: Labels
    expected: float

    @property
    def features(self) -> int:
        return len(self.names)

    @property
    def target(self) -> Target:
        return self.labels.target

    @property
    def number_owner(self) -> NDArray[np.int64]:
        """The feature of each column of ``Rows.numbers``."""
        owners = [self.names.index(number.name) for number in self.numbers]
        return np.repeat(np.array(owners, dtype=np.int64), [number.width for number in self.numbers])

    @property
    def category_owner(self) -> NDArray[np.int64]:
        """The feature of each column of ``Rows.places``."""
        return np.array([self.names.index(c.name) for c in self.categories], dtype=np.int64)

    def read(self, part: Part) -> Iterator[tuple[Rows, float]]:
        """A part, decoded, and how much of it has been read by then."""
        return self.read_piece(Piece(part), 0)

    def read_piece(self, piece: Piece, skip: int) -> Iterator[tuple[Rows, float]]:
        """The same for some of its rows, without the first ``skip``; wrong values are told with the file."""
        first = 0
        for batch, share in read_part(piece.part, self.types, self.kinds):
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

    def no_rows(self) -> Rows:
        """A batch of none, in the shapes of all others."""
        kind = np.int64 if self.target.task == "multiclass" else np.float32
        return Rows(
            np.empty((0, sum(n.width for n in self.numbers)), dtype=np.float32),
            np.empty((0, len(self.categories)), dtype=np.int32),
            np.empty(0, dtype=kind),
            np.empty(0, dtype=np.float32),
        )

    def decode(self, batch: Any) -> Rows:
        # A line for each column, written whole, then turned: single cells of rows are far apart.
        numbers = np.empty((sum(n.width for n in self.numbers), batch.num_rows), dtype=np.float32)
        start = 0
        for number in self.numbers:
            number.write(batch.column(number.name), numbers[start : start + number.width])
            start += number.width
        places = np.empty((len(self.categories), batch.num_rows), dtype=np.int32)
        for j, category in enumerate(self.categories):
            places[j] = category.places(batch.column(category.name))
        return Rows(
            np.ascontiguousarray(numbers.T), np.ascontiguousarray(places.T), *self.labels.decode(batch)
        )


def read_stream(where: Any, target: Any, options: Reading, most_places: int) -> Stream:
    """Check all that can be checked before any work: names, types, and what the first look shows."""
    skip = options.on_bad_file == "skip"
    files = where if isinstance(where, Files) else open_files(where, skip=skip)
    inputs = _features(files, target, options)
    kinds = decide_kinds(files.types, inputs, options.kinds)
    options.insist_on_kinds(kinds)
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
    place = np.array([inputs.index(name) for name in names])
    return Stream(
        files=files,
        types=types,
        kinds=kinds,
        names=tuple(names),
        place=place,
        members=tuple((int(p),) for p in place),
        inputs=tuple(inputs),
        constant=np.array([constant[name] for name in names]),
        numbers=numbers,
        categories=categories,
        labels=fit_labels(target, table[target], weights, options, weight_of_class),
        expected=expected,
    )


def look_again(stream: Stream, options: Reading) -> Rows:
    """The rows of the first look, decoded."""
    apart = [name for name in stream.types if name not in stream.kinds]
    skip = options.on_bad_file == "skip"
    table, _ = _look(stream.files, stream.types, stream.kinds, apart, options.look, skip)
    return stream.decode(pa.RecordBatch.from_pydict(table))


def _features(files: Files, target: Any, options: Reading) -> list[str]:
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
    files: Files,
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
            for batch, share in read_part(part, types, kinds):  # noqa: B007
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
    insist_on_values(batch.column(target), target)
    if weight is not None:
        read_weights(batch.column(weight), weight)
    columns = {}
    for name in batch.schema.names:
        column = batch.column(name)
        if kinds.get(name, "categorical") != "categorical":
            columns[name] = pa.array(read_numbers(column, name))
        elif name in kinds or kind_of(column.type) == "categorical":
            columns[name] = comparable(column).cast(pa.string())
        else:
            columns[name] = comparable(column)
    return pa.table(columns)
