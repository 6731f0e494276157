"""A digest of a user's model, loss or optimizer: what its code does, as far as that can be compared.

Neither the place of the code in a file counts, nor the parameters of a module, which a checkpoint holds, nor global
variables. Another version of Python compiles the same code to other bytes.
"""

from __future__ import annotations

import functools
import hashlib
import re
from types import BuiltinFunctionType, CellType, CodeType, FunctionType, MethodType
from typing import Any

from torch import nn

LIBRARIES = ("torch", "builtins")  # whose functions and classes are known by their names
MAX_DEPTH = 12  # of functions within functions, which may be recursive


def digest_code(value: Any) -> str:
    """A digest that is the same for the same code in another process."""
    return hashlib.sha256(repr(_describe(value, MAX_DEPTH)).encode()).hexdigest()[:16]


def _describe(value: Any, depth: int) -> Any:
    if depth == 0:
        return None

    def inside(items: Any) -> list[Any]:
        return [_describe(item, depth - 1) for item in items]

    if isinstance(value, functools.partial):
        return inside([value.func, value.args, value.keywords])
    if isinstance(value, nn.Module):
        plain = {
            name: each for name, each in vars(value).items() if isinstance(each, bool | int | float | str)
        }
        return [_without_addresses(repr(value)), *inside([type(value), plain])]
    if isinstance(value, BuiltinFunctionType) or (
        isinstance(value, FunctionType | type) and (value.__module__ or "").partition(".")[0] in LIBRARIES
    ):
        return value.__qualname__
    if isinstance(value, type):
        methods = [member for _, member in sorted(vars(value).items()) if isinstance(member, FunctionType)]
        return [value.__qualname__, *inside([*methods, *value.__bases__])]
    if isinstance(value, MethodType):
        return inside([value.__func__, value.__self__])
    if isinstance(value, FunctionType):
        enclosed = [_contents(cell) for cell in value.__closure__ or ()]
        return inside([value.__code__, value.__defaults__, value.__kwdefaults__, enclosed])
    if isinstance(value, CodeType):
        return [value.co_code.hex(), value.co_names, *inside(value.co_consts)]
    if isinstance(value, tuple | list):
        return inside(value)
    if isinstance(value, set | frozenset):
        return sorted(map(repr, inside(value)))
    if isinstance(value, dict):
        return inside(sorted(value.items(), key=repr))
    if isinstance(value, str | bytes | int | float | complex | None):
        return repr(value)
    return [type(value).__qualname__, *inside([type(value)])]


def _contents(cell: CellType) -> Any:
    """What a closure holds; None where it was never assigned."""
    try:
        return cell.cell_contents
    except ValueError:
        return None


def _without_addresses(text: str) -> str:
    return re.sub(r" at 0x[0-9a-f]+", "", text)
