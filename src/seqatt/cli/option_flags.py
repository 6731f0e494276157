"""Flags of a command, generated from the declarations of options: their names, defaults, choices and help texts."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Collection, Iterator
from enum import Enum
from typing import Annotated, Any

import typer

from seqatt.options import Options

SIMPLE_TYPES = {"float": float, "int": int, "str": str, "bool": bool, "int | str": str, "str | float": str}
WIDTHS = "tuple[int, ...]"


def add_option_flags(
    command: Callable[..., None],
    options: type[Options],
    names: Collection[str] | None = None,
    *,
    before: str | None = None,
) -> None:
    """Add a flag per option in ``names`` to a command, listed before the parameter ``before``; by default all, last.

    The command takes them as ``**kwargs``. A flag that is not given is None.
    """
    signature = inspect.signature(command, eval_str=True)
    declared = [p for p in signature.parameters.values() if p.kind is not inspect.Parameter.VAR_KEYWORD]
    position = len(declared) if before is None else [p.name for p in declared].index(before)
    flags = [flag for flag in _flags(options) if names is None or flag.name in names]
    parameters = [*declared[:position], *flags, *declared[position:]]
    command.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]


def _flags(options: type[Options]) -> Iterator[inspect.Parameter]:
    """One parameter per option that can be written on a command line; functions and modules cannot."""
    for field in dataclasses.fields(options):
        type_name = str(field.type).removesuffix(" | None")
        if type_name not in (*SIMPLE_TYPES, WIDTHS):
            continue
        flag = "--" + field.name.replace("_", "-")
        option = typer.Option(
            f"{flag}/--no-{flag[2:]}" if type_name == "bool" else flag,
            help=field.metadata["help"] + _shown(field.default),
            rich_help_panel=field.metadata["group"],
        )
        value_type: Any = SIMPLE_TYPES.get(type_name, str)  # widths are read as text
        choices = getattr(field.metadata["check"], "choices", None)
        if choices is not None:
            value_type = _make_choice(field.name, choices)
        yield inspect.Parameter(
            field.name,
            inspect.Parameter.POSITIONAL_OR_KEYWORD,
            default=None,
            annotation=Annotated[value_type | None, option],
        )


def _make_choice(name: str, choices: list[str]) -> Any:
    """The type of a flag that takes one of several words."""
    return Enum(name, {choice: choice for choice in choices}, type=str)  # type: ignore[misc]


def _shown(default: Any) -> str:
    if default is None:
        return ""
    text = ",".join(map(str, default)) if isinstance(default, tuple) else str(default)
    return rf" \[default: {text}]"  # escaped: Rich would take it for markup


def read_flags(given: dict[str, Any], *options: type[Options]) -> dict[str, Any]:
    """The flags that were given, of all these classes of options, as ``select`` takes them."""
    types = {field.name: str(field.type) for each in options for field in dataclasses.fields(each)}
    values = {name: v.value if isinstance(v, Enum) else v for name, v in given.items() if v is not None}
    return {name: _widths(v, name) if types[name] == WIDTHS else v for name, v in values.items()}


def _widths(text: str, name: str) -> tuple[int, ...]:
    try:
        return tuple(int(width) for width in text.split(","))
    except ValueError:
        message = f"{text!r} is not a list of widths such as 128,64"
        raise typer.BadParameter(message, param_hint=f"--{name.replace('_', '-')}") from None
