"""Writes the page of the commands from their declarations: ``docs/conf.py`` calls it."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path
from typing import Any

import typer

from seqatt.cli.app import app

START = """# Command line

What `seqatt COMMAND --help` shows, or `--help-all` where a command has many options. `seqatt select` and
`seqatt compare` take every option of a method by name as well, with `--set`. [Errors, progress and
repeatability](../../running.md) has the exit codes.
"""


def write_page(path: Path) -> None:
    """One section per command, with a table of its arguments and options."""
    sections = [
        _section(f"seqatt {name}", command) for name, command in _commands(typer.main.get_command(app))
    ]
    path.parent.mkdir(parents=True, exist_ok=True)
    text = "\n".join([START, *sections])
    if not path.exists() or path.read_text(encoding="utf-8") != text:  # else Sphinx would read it again
        path.write_text(text, encoding="utf-8")


def _commands(group: Any, prefix: str = "") -> list[tuple[str, Any]]:
    found = []
    for name, command in group.commands.items():
        inner = hasattr(command, "commands")
        found += _commands(command, f"{prefix}{name} ") if inner else [(f"{prefix}{name}", command)]
    return found


def _section(title: str, command: Any) -> str:
    rows = [f"| {_flags(each)} | {_plain(each.help or '')}{_default(each)} |" for each in command.params]
    table = ["| argument or option | |", "|---|---|", *rows] if rows else []
    return "\n".join([f"## {title}", "", *textwrap.wrap(_plain(command.help or ""), 120), "", *table, ""])


def _flags(parameter: Any) -> str:
    if parameter.param_type_name == "argument":
        return f"`{parameter.name.upper()}`"
    return ", ".join(f"`{flag}`" for flag in [*parameter.opts, *parameter.secondary_opts])


def _default(parameter: Any) -> str:
    stated = "default" in (parameter.help or "")
    value = parameter.default
    hidden = stated or value is None or value is False or callable(value) or value in ("", [], ())
    return "" if hidden else f" (default: {value})"


def _plain(text: str) -> str:
    """Help text without Rich's markup, as Markdown in one line."""
    text = re.sub(r"(?<!\\)\[/?\w+\]", "", text).replace("\\[", "[").replace("\b", "")
    text = re.sub(r"\s+", " ", text).strip()
    return re.sub(r"([|<>*_\[\]])", r"\\\1", text)
