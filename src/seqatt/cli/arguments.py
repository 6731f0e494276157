"""Arguments shared by several commands: numbers of features, settings, names, folders."""

from __future__ import annotations

import ast
import contextlib
import json
import logging
import os
from enum import StrEnum
from pathlib import Path
from typing import Any

import typer

from seqatt.data.tables.options import TASKS

FILES_HELP = (
    "CSV, TSV, Parquet or Arrow/Feather; text may be .gz, .bz2 or .zst. Also several files, a folder, a quoted pattern "
    "or a URL."
)


TaskName = StrEnum("TaskName", {task: task for task in ("classification", *TASKS)})  # type: ignore[misc]


def start_log() -> None:
    """Show what the logger "seqatt" logs about progress on stderr."""
    logging.basicConfig(format="%(asctime)s %(message)s", datefmt="%Y-%m-%d %H:%M:%S")
    logging.getLogger("seqatt").setLevel(logging.INFO)


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
    """The names in a text, separated by commas."""
    return [name for name in text.split(",") if name]


def make_folder(out: Path) -> None:
    """Make the folder, and check before any work that files can be written to it."""
    try:
        out.mkdir(parents=True, exist_ok=True)
        probe = out / f".probe-{os.getpid()}"
        probe.touch()
        probe.unlink()
    except OSError as error:
        raise ValueError(f"--out: cannot write to {out} ({error.strerror})") from None
