"""Options of files, restricted to some of their columns."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from seqatt.api.lookup import find_positions
from seqatt.data.files.file_set import FileSet
from seqatt.data.files.options import FileOptions


def ignore_unselected(files: FileSet, targets: list[str], features: Any, options: FileOptions) -> FileOptions:
    """The options, with all unselected features in ``ignore`` and absent from the other options."""
    if features is None:
        return options
    roles = (options.sample_weight, options.groups_of_rows, options.time)
    no_features = (*targets, *roles, *options.ignore)
    names = [name for name in files.types if name not in no_features]
    positions = find_positions(
        features, names, named=True, kind="column", argument="indices", table="the training files"
    )
    if not positions:
        raise ValueError("indices: at least one feature is needed")
    selected = {names[position] for position in positions}
    unselected = [name for name in names if name not in selected]
    column_types = {name: kind for name, kind in options.column_types.items() if name not in unselected}
    return replace(
        options,
        ignore=(*options.ignore, *unselected),
        log1p=only_columns(options.log1p, selected),
        column_types=column_types,
    )


def only_columns(log1p: bool | tuple[str, ...], names: set[str]) -> bool | tuple[str, ...]:
    """The option ``log1p`` without columns that are not in ``names``."""
    return log1p if isinstance(log1p, bool) else tuple(name for name in log1p if name in names)
