"""Options about the table, the same for every method."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, get_args

from seqatt.options import SELECTION, Options, option
from seqatt.validation import anything, boolean, integer

if TYPE_CHECKING:  # the command line reads options without importing numpy
    from seqatt.data.tables.groups import Groups

Task = Literal["binary", "multiclass", "multilabel", "regression"]
TASKS: tuple[str, ...] = get_args(Task)


@dataclass(frozen=True)
class TableOptions(Options):
    """What the table's rows and columns are; the values are checked against the table when it is read."""

    sample_weight: Any = option(None, anything, "One weight per row.", group=SELECTION)
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
        "classification, binary, multiclass, multilabel or regression; by default inferred from the target.",
        group=SELECTION,
    )
    missing_indicator: bool = option(
        False, boolean(), "Add a column per feature that marks missing values.", group=SELECTION
    )
    max_categories: int = option(
        64, integer(1), "Categories per column that get a column of their own.", group=SELECTION
    )

    def to_settings(self) -> dict[str, Any]:
        """Row weights only as a fact; the task is recorded as it was resolved."""
        settings = super().to_settings() | {"sample_weight": self.sample_weight is not None}
        return {name: value for name, value in settings.items() if name != "task" and value is not None}
