"""Files written completely or not at all; JSON files read with errors that name the file, and their values checked."""

from __future__ import annotations

import errno
import json
import math
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

MAX_DEPTH = 64  # nested lists and objects; what seqatt writes has 6


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
        level = [v for each in level for v in (each.values() if isinstance(each, dict) else each)]
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
    check(isinstance(values, list) and are_integers(values), name, "must be a list of integers")
    inside = all(start <= value < stop for value in values)
    check(inside, name, f"must be between {start} and {stop - 1}")


def read_numbers(raw: dict[str, Any], name: str) -> list[float]:
    values = raw[name]
    check(isinstance(values, list) and are_numbers(values), name, "must be a list of numbers")
    return list(values)


def are_integers(values: list[Any]) -> bool:
    return all(isinstance(value, int) and not isinstance(value, bool) for value in values)


def are_numbers(values: list[Any]) -> bool:
    """Whether all are numbers that fit in a float, as 10**400 does not; NaN and infinity do."""
    for value in values:
        if isinstance(value, bool) or not isinstance(value, int | float):
            return False
        try:
            math.isnan(value)
        except OverflowError:
            return False
    return True
