"""Options about files: how they are read and what their columns are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from seqatt.data.tables.options import TASKS, TableOptions
from seqatt.options import FILES, RUNNING, SELECTION, Options, option, same_option
from seqatt.validation import choice, column_names, integer, number


def types_by_column(name: str, value: Any) -> Mapping[str, str]:
    """Check: a dict from columns to types; the names are checked against the files when they are read."""
    if not isinstance(value, Mapping):
        raise TypeError(f"{name}: must be a dict such as {{'site': 'categorical'}}, got {value!r}")
    return value


def all_or_columns(name: str, value: Any) -> bool | tuple[str, ...]:
    """Check: True for every column, False for none, or the names of some."""
    return value if isinstance(value, bool) else column_names(name, value)


def weight_column(name: str, value: Any) -> str | None:
    """Check: the name of a column, or None."""
    if value is not None and not isinstance(value, str):
        raise TypeError(f"{name}: must name a column of the files, got {value!r}")
    return value


@dataclass(frozen=True)
class FileOptions(Options):
    """How files are read and what their columns are."""

    column_types: Mapping[str, str] = option(
        {},
        types_by_column,
        "{column: numeric, boolean or categorical}, where a file's own type is wrong.",
        group=FILES,
    )
    ignore: tuple[str, ...] = option(
        (), column_names, "Columns that are not features (ids).", group=SELECTION
    )
    log1p: bool | tuple[str, ...] = option(
        False,
        all_or_columns,
        "Numeric columns to take logarithms of, sign(x) log(1 + |x|); "
        "True (on the command line: all) for every one.",
        group=FILES,
    )
    missing_indicator: bool = same_option(TableOptions, "missing_indicator")
    sample_weight: str | None = option(
        None, weight_column, "Column that holds one weight per row.", group=SELECTION
    )
    class_weight: Mapping[Any, float] | str | None = same_option(TableOptions, "class_weight")
    negatives_kept: float = option(
        1.0, number(above=0), "Share of the negative rows that a down-sampled log kept.", group=FILES
    )
    task: str | None = option(
        None,
        choice([task for task in TASKS if task != "multilabel"], optional=True),
        "binary, multiclass or regression; by default inferred from the target.",
        group=SELECTION,
    )
    schema_rows: int = option(
        1 << 16,
        integer(2),
        "Rows of the schema sample, from which means, categories and classes are fitted.",
        group=FILES,
    )
    shuffle_rows: int = option(1 << 17, integer(2), "Rows that are shuffled at a time.", group=FILES)
    shards: int | None = option(
        None,
        integer(1, optional=True),
        "Shares of the rows, read in parallel; by default one per rank.",
        group=RUNNING,
    )
    on_bad_file: str = option(
        "stop",
        choice(["stop", "skip"]),
        "If data cannot be read: stop, or skip it and report it.",
        group=RUNNING,
    )

    def check_together(self) -> None:
        super().check_together()
        if self.negatives_kept > 1:
            raise ValueError(f"negatives_kept: is a share, at most 1, got {self.negatives_kept}")

    def check_kinds(self, kinds: Mapping[str, str]) -> None:
        """Check that options about columns name features of the right kind; ``kinds`` has the kind of each feature."""
        for name in () if isinstance(self.log1p, bool) else self.log1p:
            if kinds.get(name) != "numeric":
                raise ValueError(
                    f"log1p: {name!r} is not a numeric feature; leave it out, or set its type with column_types"
                )
