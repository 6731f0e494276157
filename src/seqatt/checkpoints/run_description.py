"""The description of a run: two runs with the same description give the same result, so one can continue the other."""

from __future__ import annotations

import hashlib
import json
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from seqatt.checkpoints.code_digest import digest_code
from seqatt.data.tables.table_data import SparseColumns, TableData

if TYPE_CHECKING:  # files need pyarrow, tables do not
    from seqatt.data.files.file_data import FileData


def describe_run(
    data: TableData | FileData,
    method: str,
    k: int,
    seeds: list[int],
    resolved: dict[str, Any],
    device: str = "cpu",
    options: Any = None,
) -> dict[str, Any]:
    """Method, resolved options and data, as plain values that survive JSON unchanged.

    How the files were read is part of it, but not the option ``memory``, which decided that. The target of a table is
    in its digest, whatever its name. The type of the ``device`` counts for a table, whose rows a GPU reads in another
    order. Of the ``options`` of the method, the user's own model, loss and optimizer are compared by their code.
    """
    arguments: dict[str, Any] = {"method": method, "k": k, "seeds": seeds}
    own = {name: getattr(options, name, None) for name in ("model", "loss", "optimizer")}
    arguments["code"] = {name: digest_code(value) for name, value in own.items() if value is not None}
    resolved = {name: value for name, value in resolved.items() if name not in ("memory", "target")}
    if not isinstance(data, TableData):
        arguments["target"] = data.target_column.column
        inputs: dict[str, Any] = {"files": _digest_files(data), "schema_sample": _digest_schema(data)}
    else:
        inputs = {"table": _digest_table(data), "device": device}
    return dict(json.loads(json.dumps(arguments | resolved | inputs)))


def check_same_run(saved: dict[str, Any], current: dict[str, Any], path: Path) -> None:
    """Raise an error that names the first difference between the run in a checkpoint and this one."""
    # A changed file or option says more than what follows from it.
    for name in sorted(
        saved | current, key=lambda name: (name in ("code", "table", "schema_sample"), name != "files")
    ):
        if name not in saved or name not in current or saved[name] != current[name]:
            was, now = (repr(run[name]) if name in run else "not given" for run in (saved, current))
            difference = f"{name} was {was} and is {now}"
            if name == "files":
                changed = _changed_file(saved.get(name, []), current.get(name, []))
                difference = f"the files have changed ({changed})"
            if name == "code":
                others = [own for own in saved[name] if saved[name][own] != current[name].get(own)]
                difference = f"the code of {' and '.join(others)} is another one"
            if name == "table":
                difference = "the table has other columns or values, or other groups or times of rows"
            if name == "schema_sample":
                difference = "the schema sample has other columns, categories or classes"
            raise ValueError(
                f"checkpoint: {path} belongs to another run: {difference}; use the same options and files as "
                "that run, or another folder"
            )


def _digest_files(data: FileData) -> list[list[str]]:
    """Name and digest per file, so that an error can name the one that has changed."""
    row_groups = groupby(data.files.row_groups, lambda row_group: row_group.path)
    return [
        [
            _name(path),
            _digest([[g.group, g.rows, g.size, *g.stamp, str(g.partition), g.subset] for g in groups]),
        ]
        for path, groups in row_groups
    ]


def _name(path: Any) -> str:
    """The name of a file, after its folder where that is a partition, ``key=value``."""
    return f"{path.parent.name}/{path.name}" if "=" in path.parent.name else str(path.name)


def _digest_table(data: TableData) -> str:
    """A digest of everything that training reads."""
    digest = hashlib.sha256(json.dumps([data.names, data.feature_of.tolist()]).encode())
    columns, units = data.columns, data.units
    arrays: list[Any] = [columns]
    if isinstance(columns, SparseColumns):
        arrays = [columns.data.data, columns.data.indices, columns.data.indptr]
    arrays += [data.codes, data.target.values, data.weights]
    arrays += [] if units is None else [units.unit, np.array(units.in_time)]
    for array in arrays:
        if array is not None:
            digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()[:32]


def _changed_file(saved: list[list[str]], current: list[list[str]]) -> str:
    before, now = ({file[0]: file[1] for file in files} for files in (saved, current))
    for name in [*before, *now]:
        if name not in now:
            return f"{name} is missing; to continue, restore it unchanged, with its modification time"
        if name not in before:
            return f"{name} is new"
        if before[name] != now[name]:
            return f"{name} has another size, modification time or number of rows"
    return "their order is different"


def _digest_schema(data: FileData) -> str:
    """A digest of what the schema sample counts; another machine may round the means that it measures differently."""
    columns: list[Any] = [[n.name, n.log1p, n.indicator, n.constant] for n in data.numbers]
    columns += [[c.name, c.known.tolist(), c.shared, c.constant] for c in data.categories]
    columns += [[c.name, c.width, c.constant] for c in data.one_hot]
    classes = data.target.classes
    return _digest([columns, data.target.task, None if classes is None else [str(c) for c in classes]])


def _digest(values: Any) -> str:
    return hashlib.sha256(json.dumps(values).encode()).hexdigest()[:32]
