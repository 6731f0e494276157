"""Arguments that several commands have: numbers of features, settings, columns, folders."""

from __future__ import annotations

import ast
import contextlib
import json
import os
from enum import StrEnum
from pathlib import Path
from typing import Any

import typer


class TaskName(StrEnum):
    binary = "binary"
    multiclass = "multiclass"
    multilabel = "multilabel"
    regression = "regression"


def read_amount(k: str) -> int | float:
    """A number of features, or a fraction of them."""
    try:
        return int(k)
    except ValueError:
        pass
    try:
        return float(k)
    except ValueError:
        raise typer.BadParameter(f"{k!r} is not a number", param_hint="-k") from None


def read_settings(given: list[str], form: str) -> dict[str, Any]:
    """NAME=VALUE of --set. A value is read as Python or JSON, else as text; ``form`` is shown in errors."""
    settings: dict[str, Any] = {}
    for setting in given:
        name, equals, value = setting.partition("=")
        if not (equals and name):
            raise typer.BadParameter(f"{setting!r} is not {form}", param_hint="--set")
        if name in settings:
            raise typer.BadParameter(f"{name!r} is set twice", param_hint="--set")
        settings[name] = value
        for read in (ast.literal_eval, json.loads):
            with contextlib.suppress(ValueError, SyntaxError):
                settings[name] = read(value)
    return settings


def make_folder(out: Path) -> None:
    """Make the folder, and check before any work that it can be written to."""
    try:
        out.mkdir(parents=True, exist_ok=True)
        probe = out / f".probe-{os.getpid()}"
        probe.touch()
        probe.unlink()
    except OSError as error:
        raise ValueError(f"--out: cannot write to {out} ({error.strerror})") from None


def split_columns(
    table: Any, target: str, ignore: str, named: dict[str, str | None]
) -> tuple[Any, Any, list[Any]]:
    """Features, target, and the columns that the options in ``named`` name, which are neither."""
    names = [str(name) for name in table.column_names]
    targets = [target] if target in names else target.split(",")
    ignored = [name for name in ignore.split(",") if name]
    others = {option: [name or ""] for option, name in named.items()}
    for option, columns in {"--target": targets, "--ignore": ignored, **others}.items():
        for name in columns:
            if name and name not in names:
                raise ValueError(f"{option}: no column {name!r}; the columns are {_some(names)}")
            if names.count(name) > 1:
                raise ValueError(f"{option}: column {name!r} stands twice in the file; rename one")
    not_features = {*targets, *ignored, *named.values()}
    X = table.select([i for i, name in enumerate(names) if name not in not_features])
    y = table.select(targets) if len(targets) > 1 else table.column(targets[0])
    return X, y, [name if name is None else table.column(name) for name in named.values()]


def _some(names: list[str]) -> str:
    return ", ".join(names[:8]) + (f" and {len(names) - 8} more" if len(names) > 8 else "")
