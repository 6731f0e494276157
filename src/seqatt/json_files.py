"""Files written completely or not at all; JSON files read with errors that name the file, and their values checked."""

from __future__ import annotations

import errno
import json
import math
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any, BinaryIO, NamedTuple

MAX_DEPTH = 64  # nested lists and objects; what seqatt writes has 6
NO_LENGTHS: Mapping[str, int] = MappingProxyType({})

IsValid = Callable[[Any], bool]


def read_json(path: str | os.PathLike[str], description: str) -> dict[str, Any]:
    """The object in a JSON file; ``description`` says in errors what the file should be."""
    try:
        text = Path(path).read_text(encoding="utf-8")
        if not text.strip():
            raise ValueError("the file is empty")
        raw = json.loads(text)
    except OSError as error:
        error.filename = error.filename or str(path)  # a failed read does not name the file
        raise
    except (ValueError, RecursionError) as error:
        reason = "nested too deeply" if isinstance(error, RecursionError) else error
        raise ValueError(f"{path}: not {description} ({reason})") from None
    if not isinstance(raw, dict):
        raise ValueError(f"{path}: not {description} (a {type(raw).__name__} instead of an object)")
    if _is_deeper(raw, MAX_DEPTH):
        raise ValueError(f"{path}: not {description} (nested too deeply)")
    return raw


def _is_deeper(value: Any, depth: int) -> bool:
    """Whether more than ``depth`` lists and objects are nested; level by level, since recursion has a limit."""
    level = [value]
    for _ in range(depth + 1):
        level = [v for parent in level for v in (parent.values() if isinstance(parent, dict) else parent)]
        level = [v for v in level if isinstance(v, dict | list)]
        if not level:
            return False
    return True


@contextmanager
def atomic_file(path: Path) -> Iterator[BinaryIO]:
    """A new file that gets the name ``path`` once its content is on the disk, so that no reader sees a partial file.

    Until then it is ``.NAME.*.part`` in the same folder. An error in the block removes it, and what was at ``path``
    stays; only a process that is killed leaves it behind.
    """
    # Not the number of the process: containers that share a folder may have the same.
    temporary = path.with_name(f".{path.name}.{os.urandom(4).hex()}.part")
    try:
        file = temporary.open("xb")
    except OSError as error:
        error.filename = str(path)  # users do not know the temporary file
        raise
    try:
        with file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def write_atomically(path: Path, content: str | bytes) -> None:
    """Write a file completely or not at all."""
    if not path.parent.is_dir():
        raise FileNotFoundError(
            errno.ENOENT, f"the folder {str(path.parent)!r} does not exist; make it first", str(path)
        )
    with atomic_file(path) as file:
        file.write(content.encode("utf-8") if isinstance(content, str) else content)


def check(condition: bool, name: str, problem: str) -> None:
    """Raise an error about the field ``name`` unless the condition holds."""
    if not condition:
        raise ValueError(f"{name!r} {problem}")


def read_names(raw: dict[str, Any], name: str) -> list[Any]:
    """A list of names: texts, or whatever else names columns of a frame and is plain in JSON."""
    values = raw[name]
    parts = (
        [part for v in values for part in (v if isinstance(v, list) else [v])]
        if isinstance(values, list)
        else [[]]
    )
    plain = all(isinstance(part, str | int | float | bool | None) for part in parts)  # a tuple is a list
    check(plain, name, "must be a list of names")
    return list(values)


def read_integers(raw: dict[str, Any], name: str, start: int, stop: int) -> list[int]:
    check_integers(name, raw[name], start, stop)
    return list(raw[name])


def check_integers(name: str, values: Any, start: int, stop: int) -> None:
    check(list_of(is_integer)(values), name, "must be a list of integers")
    inside = all(start <= value < stop for value in values)
    check(inside, name, f"must be between {start} and {stop - 1}")


class Fields(NamedTuple):
    """Fields of one type, and the error message about them, in which ``{!r}`` is the name of the field.

    With ``per``, a field is a list of valid values: one per "feature", if the caller says how many features there are,
    or one per value of another list, such as one per "size" of the field "sizes".
    """

    names: str  # separated by spaces
    is_valid: IsValid
    problem: str
    per: str | None = None


def check_fields(
    table: Sequence[Fields], values: dict[str, Any], about: str = "", lengths: Mapping[str, int] = NO_LENGTHS
) -> None:
    """Raise unless the fields of an object are as in ``table``.

    Errors are about the field ``about`` that holds the object, by default about each field itself.
    """
    for names, is_valid, problem, per in table:
        for name in names.split():
            value = values.get(name)
            if per is None:
                valid = is_valid(value)
            else:
                length = lengths[per] if per in lengths else len(values[f"{per}s"])
                valid = list_of(is_valid)(value) and len(values[name]) == length
            check(valid, about or name, problem.format(name, per=per))


def is_a(type_: type) -> IsValid:
    return lambda value: isinstance(value, type_)


def list_of(is_valid: IsValid) -> IsValid:
    return lambda values: isinstance(values, list) and all(map(is_valid, values))


def object_of(is_valid: IsValid) -> IsValid:
    return lambda value: isinstance(value, dict) and all(map(is_valid, value.values()))


def or_null(is_valid: IsValid) -> IsValid:
    return lambda value: value is None or is_valid(value)


def is_integer(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def is_number(value: Any) -> bool:
    """Whether this is a number that fits in a float, as 10**400 does not; NaN and infinity do."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    try:
        math.isnan(value)
    except OverflowError:
        return False
    return True


def is_share(value: Any) -> bool:
    return is_number(value) and 0 <= value <= 1
