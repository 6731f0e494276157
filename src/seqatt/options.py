"""How an option is declared: once, with its type, default, check and help text.

``select``, the scikit-learn selectors and the command line all read these declarations. A method declares its own
options as a frozen dataclass::

    @dataclass(frozen=True)
    class ForestOptions(Options):
        n_estimators: int = option(500, integer(1), "Number of trees.")
"""

from __future__ import annotations

import dataclasses
import re
import textwrap
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from seqatt.validation import Check

SELECTION = "What to select"
TRAINING = "Training"
RARE = "Training, rarely needed"
FILES = "Files"
RUNNING = "Running"
MAX_GIVEN = 100  # items of an option that settings repeat as they were given


def option(default: Any, check: Check, help: str, *, group: str = TRAINING) -> Any:
    """A field of an ``Options`` dataclass; ``group`` is the heading it stands under in ``--help``."""
    metadata = {"check": check, "help": help, "group": group}
    if isinstance(default, dict):
        return dataclasses.field(default_factory=lambda: dict(default), metadata=metadata)
    return dataclasses.field(default=default, metadata=metadata)


def same_option(options: type[Options], name: str, *, default: Any = dataclasses.MISSING) -> Any:
    """The option ``name`` of another class, with the same check, help text and group, and perhaps another default."""
    declared = options.__dataclass_fields__[name]
    value = declared.default if default is dataclasses.MISSING else default
    return option(
        value, declared.metadata["check"], declared.metadata["help"], group=declared.metadata["group"]
    )


@dataclass(frozen=True)
class Options:
    """Options of a method, each checked and brought to its canonical type when an instance is made."""

    # What methods without these options do. Without annotations, because they are no fields.
    scaling = "standard"
    model = None  # type: Any

    @property
    def own_inputs(self) -> str | None:
        """Inputs of a network that trains through autograd, "columns" or "raw"; None for the built-in one."""
        return None

    def __post_init__(self) -> None:
        object.__setattr__(self, "_given", self._changed())
        self.fill_in()
        for field in dataclasses.fields(self):
            checked = field.metadata["check"](field.name, getattr(self, field.name))
            object.__setattr__(self, field.name, checked)
        self.check_together()

    def fill_in(self) -> None:
        """Fill in defaults that depend on other options, which count as not given."""

    def check_together(self) -> None:
        """Checks that involve several options; a subclass that overrides it calls ``super()`` first."""

    def to_settings(self) -> dict[str, Any]:
        """For ``Selection.settings``: values that JSON can hold, functions by their names."""
        values = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        return {name: _name_of(v) if callable(v) else to_json(v) for name, v in values.items()}

    def _changed(self) -> dict[str, Any]:
        """The options that are not at their default; {"code": name} for what JSON cannot hold, such as a function."""
        changed = {}
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            factory = field.default_factory
            default = field.default if factory is dataclasses.MISSING else factory()
            if type(value) is not type(default) or not _is_plain(value) or value != default:
                changed[field.name] = to_json(value) if _is_plain(value) else {"code": field.name}
        return changed


def names_of(options: type[Options]) -> list[str]:
    return [field.name for field in dataclasses.fields(options)]


def help_of(options: type[Options], name: str) -> str:
    """The help text of one option."""
    return str(options.__dataclass_fields__[name].metadata["help"])


def given_options(*options: Options) -> dict[str, Any]:
    """The options that were given and that decide the result, from which it can be repeated."""
    given: dict[str, Any] = {}
    for instance in options:
        if any(field.metadata["group"] != RUNNING for field in dataclasses.fields(instance)):
            given |= instance._given  # type: ignore[attr-defined]
    return given


def describe(options: type[Options], *, skip: Collection[str] = ()) -> list[str]:
    """Lines for a docstring: one paragraph per option that is not in ``skip``, with its default and its help text."""
    fields = [field for field in dataclasses.fields(options) if field.name not in skip]
    return [line for field in fields for line in describe_field(field)]


def describe_field(field: dataclasses.Field[Any], methods: str = "") -> list[str]:
    """Lines for a docstring: one option with its default, its help text and, where given, the ``methods`` it is for."""
    made = field.default_factory() if callable(field.default_factory) else field.default
    default = f"default {made!r}" if made or made in (0, False) else ""
    notes = ", ".join(note for note in (methods, default) if note)
    text = f"{field.name}{f' ({notes})' if notes else ''} : {field.metadata['help']}"
    return textwrap.wrap(text, 112, initial_indent="- ", subsequent_indent="  ")


def fill_in_options(docstring: str | None, lines: list[str]) -> str:
    """The docstring with the line ``{options}`` replaced by ``lines`` at the same indentation."""

    def indented(match: re.Match[str]) -> str:
        return "\n".join(match.group(1) + line for line in lines)

    return re.sub(r"^( *)\{options\}$", indented, docstring or "", flags=re.MULTILINE)


def to_json(value: Any) -> Any:
    """Lists, dicts and Python's own numbers for tuples, sets, arrays and NumPy's numbers."""
    import numpy as np  # here, because the command line reads options before anything else is imported

    if isinstance(value, Mapping):
        return {str(key): to_json(item) for key, item in value.items()}
    if isinstance(value, set | frozenset):
        return sorted(map(to_json, value), key=repr)  # the order of a set differs between processes
    if isinstance(value, list | tuple | np.ndarray):
        return [to_json(item) for item in value]
    return value.item() if isinstance(value, np.generic) else value


def _is_plain(value: Any) -> bool:
    """Whether JSON can hold a value, and it is not long."""
    if isinstance(value, Mapping):
        return len(value) <= MAX_GIVEN and all(map(_is_plain, value.values()))
    if isinstance(value, list | tuple | set | frozenset):
        return len(value) <= MAX_GIVEN and all(map(_is_plain, value))
    return isinstance(value, str | int | float | None)


def _name_of(function: Any) -> str:
    return str(getattr(function, "__qualname__", type(function).__qualname__))
