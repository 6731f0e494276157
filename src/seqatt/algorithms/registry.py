"""The registry of selection methods.

A method is one file in this package. It registers a function with ``@register``; nothing else has to know of it::

    @register("forest", title="Random forest", summary="...", options=ForestOptions)
    def random_forest(request: SelectionRequest, plan: Plan, advance: Advance) -> list[Trace]:
        ...
"""

from __future__ import annotations

import pkgutil
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Any

import torch

from seqatt.data.tables.table_data import TableData
from seqatt.options import Options
from seqatt.progress import Advance
from seqatt.selection import Trace

DEFAULT = "sequential_attention"


@dataclass(frozen=True)
class SelectionRequest:
    """The input of a method: select ``k`` features of ``data``, once per seed."""

    data: TableData
    k: int
    seeds: list[int]
    options: Any
    device: torch.device


@dataclass(frozen=True)
class Plan:
    """A request with every default resolved, before any work.

    ``settings`` are the resolved options, for ``Selection.settings``. ``steps`` is the total that the progress bar
    counts up to.
    """

    settings: dict[str, Any]
    steps: int


def plan_per_seed(request: SelectionRequest) -> Plan:
    """The plan of a method without a training schedule: its options as they are, and one step per seed."""
    return Plan(request.options.to_settings(), len(request.seeds))


@dataclass(frozen=True)
class Method:
    """A registered method.

    ``select`` returns one trace per seed. ``title`` is shown beside the progress bar, ``summary`` is one line for
    lists of methods.
    """

    name: str
    title: str
    summary: str
    options: type[Options]
    plan: Callable[[SelectionRequest], Any]
    select: Callable[[SelectionRequest, Any, Advance], list[Trace]]


_METHODS: dict[str, Method] = {}


def register(
    name: str,
    *,
    title: str,
    summary: str,
    options: type[Options] = Options,
    plan: Callable[[SelectionRequest], Any] = plan_per_seed,
) -> Callable[[Callable[..., list[Trace]]], Callable[..., list[Trace]]]:
    """Register the decorated function as the method ``name``."""

    def decorate(select: Callable[..., list[Trace]]) -> Callable[..., list[Trace]]:
        if name in _METHODS:
            raise ValueError(f"two methods are called {name!r}")
        _METHODS[name] = Method(name, title, summary, options, plan, select)
        return select

    return decorate


def all_methods() -> dict[str, Method]:
    """Every method by name: the default first, then in alphabetical order."""
    _import_methods()
    return {name: _METHODS[name] for name in sorted(_METHODS, key=lambda name: (name != DEFAULT, name))}


@cache
def _import_methods() -> None:
    """Import every module of this package, so that each registers its methods."""
    package = import_module("seqatt.algorithms")
    for module in pkgutil.walk_packages(package.__path__, "seqatt.algorithms."):
        import_module(module.name)


def get_method(name: str) -> Method:
    """A method by name; an unknown name is an error that lists the known ones."""
    known = all_methods()
    if name not in known:
        raise ValueError(f"method: unknown {name!r}; use one of {', '.join(known)}")
    return known[name]


def methods() -> list[str]:
    """The names that ``select`` takes as ``method``."""
    return list(all_methods())
