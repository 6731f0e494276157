"""Arguments shared by several commands: numbers of features, settings, columns, folders."""

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
    """Choices of --task."""

    binary = "binary"
    multiclass = "multiclass"
    multilabel = "multilabel"
    regression = "regression"


def read_amount(k: str) -> int | float:
    """A number of features (an integer), or a fraction of them (a float)."""
    try:
        return int(k)
    except ValueError:
        pass
    try:
        return float(k)
    except ValueError:
        raise typer.BadParameter(f"{k!r} is not a number", param_hint="-k") from None


def read_settings(given: list[str], form: str) -> dict[str, Any]:
    """The settings NAME=VALUE of --set, by name.

    A value is read as a Python or JSON literal, else as text. ``form`` is the expected form, for error messages.
    """
    settings: dict[str, Any] = {}
    for setting in given:
        name, equals, value = setting.partition("=")
        if not (equals and name):
            raise typer.BadParameter(f"{setting!r} is not of the form {form}", param_hint="--set")
        if name in settings:
            raise typer.BadParameter(f"{name!r} is set twice", param_hint="--set")
        settings[name] = value
        for read in (ast.literal_eval, json.loads):
            with contextlib.suppress(ValueError, SyntaxError):
                settings[name] = read(value)
    return settings


def make_folder(out: Path) -> None:
    """Make the folder, and check before any work that files can be written to it."""
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
    """Features, target, and the columns named by the options in ``named`` (option -> column), which are neither."""
    names = [str(name) for name in table.column_names]
    targets = [target] if target in names else target.split(",")
    ignored = [name for name in ignore.split(",") if name]
    other_columns = {option: [name or ""] for option, name in named.items()}
    for option, columns in {"--target": targets, "--ignore": ignored, **other_columns}.items():
        for name in columns:
            if name and name not in names:
                raise ValueError(f"{option}: no column {name!r}; the columns are {_shorten(names)}")
            if names.count(name) > 1:
                raise ValueError(f"{option}: column {name!r} appears twice in the file; rename one")
    not_features = {*targets, *ignored, *named.values()}
    X = table.select([i for i, name in enumerate(names) if name not in not_features])
    y = table.select(targets) if len(targets) > 1 else table.column(targets[0])
    return X, y, [name if name is None else table.column(name) for name in named.values()]


def _shorten(names: list[str]) -> str:
    """The first eight names, and how many more there are."""
    return ", ".join(names[:8]) + (f" and {len(names) - 8} more" if len(names) > 8 else "")
