"""Parts shared by several commands: how arguments are read, Ctrl-C while a command runs, the width of tables."""

from __future__ import annotations

import ast
import contextlib
import csv
import json
import logging
import os
import signal
import sys
from collections.abc import Callable, Iterator
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from seqatt.data.tables.options import TASKS
from seqatt.display_text import NO_NAME

if TYPE_CHECKING:
    from rich.console import Console

FILES_HELP = (
    "CSV, TSV, Parquet or Arrow/Feather; text may be .gz, .bz2 or .zst. Also several files, a folder, a quoted pattern "
    "or a URL."
)
CATEGORICAL_HELP = "Columns that are categories, with commas."
NUMERIC_HELP = "Columns of text that are numbers, such as codes with leading zeros, with commas."

TaskName = StrEnum("TaskName", {task: task for task in ("classification", *TASKS)})  # type: ignore[misc]
TASK_HELP = f"Kind of target, where it cannot be inferred: {', '.join(TaskName)}."


def start_log() -> None:
    """Show what the logger "seqatt" logs about progress on stderr."""
    logging.basicConfig(format="%(asctime)s %(message)s", datefmt="%Y-%m-%d %H:%M:%S")
    logging.getLogger("seqatt").setLevel(logging.INFO)


def make_console() -> Console:
    """The console that tables are printed on; to a file or a pipe it is 110 characters wide."""
    from rich.console import Console  # here: many commands print no table

    return Console(width=None if sys.stdout.isatty() else 110, highlight=False)


@contextlib.contextmanager
def interrupts_as_exceptions() -> Iterator[None]:
    """Raise KeyboardInterrupt on Ctrl-C, on which ``select`` and ``compare`` return what is finished."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def read_amount(k: str, allowed: str = "a number such as 20 or 0.25") -> int | float:
    """A number of features (an integer), or a fraction of them (a float); else an error names what is ``allowed``."""
    try:
        return int(k)
    except ValueError:
        pass
    try:
        return float(k)
    except ValueError:
        raise typer.BadParameter(f"{k!r} is not {allowed}", param_hint="-k") from None


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


def read_names(text: str) -> list[str]:
    """The names in a text, separated by commas; a name that holds a comma is in double quotes, as in a CSV file.

    A column without a name is given as it is shown, "(no name)".
    """
    return [_given(name) for line in csv.reader([text], skipinitialspace=True) for name in line if name]


def _given(name: str) -> str:
    return "" if name == NO_NAME else name


def read_types(categorical: str, numeric: str) -> dict[str, str]:
    """The types of the columns that --categorical and --numeric name."""
    types: dict[str, str] = {}
    for kind, text in (("categorical", categorical), ("numeric", numeric)):
        for name in read_names(text):
            if types.setdefault(name, kind) != kind:
                raise typer.BadParameter(f"{name!r} is named by --categorical too", param_hint="--numeric")
    return types


def read_features(given: list[str] | None, flag: str) -> Any:
    """Features of a flag that can be repeated: names, @FILE with one name per line, or a selection.json."""
    names: list[str] = []
    for text in given or []:
        if text.endswith(".json") and given == [text]:
            from seqatt.selection import Selection  # here, because only this needs it

            return Selection.load(text)
        names += _read_lines(text[1:], flag) if text.startswith("@") else read_names(text)
    return tuple(names)


def _read_lines(path: str, flag: str) -> list[str]:
    try:
        lines = Path(path).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise typer.BadParameter(f"cannot read {path} ({error})", param_hint=flag) from None
    return [_given(line) for line in lines if line.strip()]


def _read_each(
    given: list[str] | None, flag: str, read_text: Callable[[str], dict[str, Any]]
) -> dict[str, Any]:
    """The values by name of all uses of a flag, as text or as a file of JSON; no name may be given twice."""
    everything: dict[str, Any] = {}
    for text in given or []:
        objects = _read_objects(text, flag) if text.endswith(".json") else read_text(text)
        for name in objects:
            if name in everything:
                raise typer.BadParameter(f"{name!r} is given twice", param_hint=flag)
        everything |= objects
    return everything


def read_quotas(given: list[str] | None) -> dict[str, Any]:
    """Quotas NAME:LEAST:MOST=FEATURE,..., where LEAST and MOST may be empty, or files of JSON that hold some."""
    return _read_each(given, "--quota", _read_quota)


def _read_quota(text: str) -> dict[str, Any]:
    name, equals, features = text.partition("=")
    parts = name.rsplit(":", 2)
    if not (equals and len(parts) == 3 and all(part.isdigit() or not part for part in parts[1:])):
        raise typer.BadParameter(
            f"{text!r} is not of the form NAME:LEAST:MOST=FEATURE,FEATURE, such as lab:0:3=hdl,ldl",
            param_hint="--quota",
        )
    least, most = (int(part) if part else None for part in parts[1:])
    return {parts[0]: {"features": read_names(features), "least": least or 0, "most": most}}


def read_costs(given: list[str] | None) -> dict[str, Any]:
    """Costs FEATURE=COST, NAME=COST:FEATURE,... of what several features share, or files of JSON that hold some."""
    return _read_each(given, "--cost", _read_cost)


def _read_cost(text: str) -> dict[str, Any]:
    name, _, value = text.rpartition("=") if ":" not in text else text.partition("=")
    price, shared, features = value.partition(":")
    try:
        cost = float(price)
    except ValueError:
        raise typer.BadParameter(
            f"{text!r} is not of the form FEATURE=COST, such as mri=500, or NAME=COST:FEATURE,FEATURE",
            param_hint="--cost",
        ) from None
    name = _given(name)
    return {name: {"cost": cost, "features": read_names(features)} if shared else cost}


def _read_objects(path: str, flag: str) -> dict[str, Any]:
    """A JSON object."""
    try:
        objects = json.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise typer.BadParameter(f"cannot read {path} ({error})", param_hint=flag) from None
    if not isinstance(objects, dict):
        raise typer.BadParameter(f"{path} must hold a JSON object", param_hint=flag)
    return objects


def make_folder(out: Path) -> None:
    """Make the folder, and check before any work that files can be written to it."""
    try:
        out.mkdir(parents=True, exist_ok=True)
        probe = out / f".probe-{os.getpid()}"
        probe.touch()
        probe.unlink()
    except OSError as error:
        raise ValueError(f"--out: cannot write to {out} ({error.strerror})") from None
