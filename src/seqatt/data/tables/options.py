"""Options about the table, the same for every method."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, get_args

from seqatt.options import SELECTION, Options, option
from seqatt.validation import (
    anything,
    boolean,
    column_names,
    integer,
    name_text,
    number,
    show,
    values_or_name,
)

if TYPE_CHECKING:  # the command line reads options without importing numpy
    from seqatt.data.tables.groups import Groups

Task = Literal[
    "binary",
    "multiclass",
    "multilabel",
    "regression",
    "poisson",
    "quantile",
    "ordinal",
    "survival",
    "ranking",
    "reconstruction",
]
TASKS: tuple[str, ...] = get_args(Task)
Categories = Literal["one_hot", "mixed", "codes"]


def types_by_column(name: str, value: Any) -> Mapping[str, str]:
    """Check: a dict from columns to types; the names are checked against the data when it is read."""
    if not isinstance(value, Mapping):
        raise TypeError(f"{name}: must be a dict such as {{'site': 'categorical'}}, got {value!r}")
    return {name_text(column): kind for column, kind in value.items()}


def all_or_columns(name: str, value: Any) -> bool | tuple[str, ...]:
    """Check: True for every column, False for none, or the names of some."""
    return value if isinstance(value, bool) else column_names(name, value)


@dataclass(frozen=True)
class TableOptions(Options):
    """Options about the rows and columns of a table; the values are checked against it when it is read."""

    sample_weight: Any = option(
        None,
        values_or_name,
        "One weight per row, or the name of the column that holds them.",
        group=SELECTION,
    )
    class_weight: Mapping[Any, float] | str | None = option(
        None,
        anything,
        '"balanced", for the same total weight per class, or a dict of weights.',
        group=SELECTION,
    )
    groups: Groups | None = option(
        None, anything, "{name: columns} to be selected together, as one feature.", group=SELECTION
    )
    task: str | None = option(
        None,
        anything,
        f"What the target is: classification, {', '.join(TASKS)}; by default one of the first five, inferred from it.",
        group=SELECTION,
    )
    groups_of_rows: Any = option(
        None,
        values_or_name,
        "Group of each row (a patient, a day), or the name of the column that holds them: rows of a group stay "
        "together wherever rows are held out.",
        group=SELECTION,
    )
    time: Any = option(
        None,
        values_or_name,
        "Time of each row, or the name of the column that holds them: rows are held out from earlier rows only.",
        group=SELECTION,
    )
    quantile: float = option(
        0.5, number(above=0, below=1), 'The quantile that task="quantile" predicts.', group=SELECTION
    )
    ignore: tuple[str, ...] = option(
        (), column_names, "Columns that are not features (ids).", group=SELECTION
    )
    column_types: Mapping[str, str] = option(
        {},
        types_by_column,
        "{column: numeric, boolean or categorical}, where a column's own type is wrong.",
        group=SELECTION,
    )
    log1p: bool | tuple[str, ...] = option(
        False,
        all_or_columns,
        "Numeric columns to take logarithms of, sign(x) log(1 + |x|); "
        "True (on the command line: all) for every one.",
        group=SELECTION,
    )
    negatives_kept: float = option(
        1.0,
        number(above=0, maximum=1),
        "Share of the negative rows that a down-sampled log kept.",
        group=SELECTION,
    )
    missing_indicator: bool = option(
        False, boolean(), "Add a column per feature that marks missing values.", group=SELECTION
    )
    max_categories: int = option(
        64,
        integer(1),
        "Categories per column that get a column of their own, where a method does not embed them.",
        group=SELECTION,
    )

    def check_together(self) -> None:
        super().check_together()
        if self.quantile != 0.5 and self.task != "quantile":
            raise ValueError(
                f"quantile: is for task='quantile', got task={show(self.task)}; add task='quantile' or leave it out"
            )

    def to_settings(self) -> dict[str, Any]:
        """Row weights only as a fact; the task is recorded as it was resolved."""
        settings = super().to_settings() | {"sample_weight": self.sample_weight is not None}
        for name in ("groups_of_rows", "time"):
            value = getattr(self, name)
            settings[name] = value if value is None or isinstance(value, str) else True
        settings = {name: value for name, value in settings.items() if name != "task" and value is not None}
        # What is rarely given is recorded only where it was.
        rare = {"ignore": [], "column_types": {}, "log1p": False, "negatives_kept": 1.0, "quantile": 0.5}
        return {name: value for name, value in settings.items() if rare.get(name, ...) != value}
