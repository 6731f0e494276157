"""What a run is: two runs of one description give one answer, so one may go on where the other stopped."""

from __future__ import annotations

import hashlib
import json
from itertools import groupby
from pathlib import Path
from typing import Any

from seqatt.data.files.file_data import FileData


def describe_run(
    stream: FileData, method: str, k: int, seeds: list[int], resolved: dict[str, Any]
) -> dict[str, Any]:
    """Plain values, as JSON gives them back."""
    about = {"method": method, "k": k, "target": stream.labels.column, "seeds": seeds}
    found = {"files": _files(stream), "first_look": _look(stream)}
    return dict(json.loads(json.dumps(about | resolved | found)))


def check_same_run(saved: dict[str, Any], ours: dict[str, Any], path: Path) -> None:
    """One sentence says what is different."""
    for name in ours:
        if name not in saved or saved[name] != ours[name]:
            was = f"{name} was {saved.get(name)!r} and is {ours[name]!r}"
            if name == "files":
                was = f"the files have changed ({_change(saved.get(name, []), ours[name])})"
            if name == "first_look":
                was = "the first look at the files found something else"
            raise ValueError(
                f"checkpoint: {path} is of another run: {was}; say what was said then, or use another folder"
            )


def _files(stream: FileData) -> list[list[str]]:
    """Each by its name and a digest, so that one that has changed can be named."""
    parts = groupby(stream.files.parts, lambda part: part.path)
    return [[path.name, _digest([[p.group, p.rows, p.size, *p.stamp] for p in its])] for path, its in parts]


def _change(saved: list[list[str]], ours: list[list[str]]) -> str:
    was, now = ({file[0]: file[1] for file in files} for files in (saved, ours))
    for name in [*was, *now]:
        if name not in now:
            return f"{name} is not there any more; put it back as it was to go on, its time too"
        if name not in was:
            return f"{name} is new"
        if was[name] != now[name]:
            return f"{name} has another size, time or number of rows"
    return "they are named in another order"


def _look(stream: FileData) -> str:
    """What is counted in it, not what is measured: another machine may round a mean otherwise."""
    columns: list[Any] = [[n.name, n.log1p, n.indicator, n.constant] for n in stream.numbers]
    columns += [[c.name, c.known.tolist(), c.shared, c.constant] for c in stream.categories]
    classes = stream.target.classes
    return _digest([columns, stream.target.task, None if classes is None else [str(c) for c in classes]])


def _digest(values: Any) -> str:
    return hashlib.sha256(json.dumps(values).encode()).hexdigest()[:32]
