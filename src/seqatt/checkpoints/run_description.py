"""The description of a run: two runs with the same description give the same result, so one can continue the other."""

from __future__ import annotations

import hashlib
import json
from itertools import groupby
from pathlib import Path
from typing import Any

from seqatt.data.files.file_data import FileData


def describe_run(
    data: FileData, method: str, k: int, seeds: list[int], resolved: dict[str, Any]
) -> dict[str, Any]:
    """Method, resolved options, files and schema, as plain values that survive JSON unchanged."""
    arguments = {"method": method, "k": k, "target": data.target_column.column, "seeds": seeds}
    inputs = {"files": _digest_files(data), "schema_sample": _digest_schema(data)}
    return dict(json.loads(json.dumps(arguments | resolved | inputs)))


def check_same_run(saved: dict[str, Any], current: dict[str, Any], path: Path) -> None:
    """Raise an error that names the first difference between the run in a checkpoint and this one."""
    for name in current:
        if name not in saved or saved[name] != current[name]:
            difference = f"{name} was {saved.get(name)!r} and is {current[name]!r}"
            if name == "files":
                difference = f"the files have changed ({_changed_file(saved.get(name, []), current[name])})"
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
        [path.name, _digest([[g.group, g.rows, g.size, *g.stamp] for g in groups])]
        for path, groups in row_groups
    ]


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
    """What the schema sample counts, not the means it measures, which another machine may round differently."""
    columns: list[Any] = [[n.name, n.log1p, n.indicator, n.constant] for n in data.numbers]
    columns += [[c.name, c.known.tolist(), c.shared, c.constant] for c in data.categories]
    classes = data.target.classes
    return _digest([columns, data.target.task, None if classes is None else [str(c) for c in classes]])


def _digest(values: Any) -> str:
    return hashlib.sha256(json.dumps(values).encode()).hexdigest()[:32]
