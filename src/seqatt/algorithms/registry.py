"""The registry of selection methods.

A method is one file in this package. It registers a function with ``@register``; nothing else has to know of it::

    @register("forest", title="Random forest", summary="...", options=ForestOptions)
    def random_forest(request: SelectionRequest, plan: Plan, advance: Advance) -> list[Trace]:
        ...
"""

from __future__ import annotations

import pkgutil
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

import torch

from seqatt.checkpoints.options import CheckpointOptions
from seqatt.data.files.options import FileOptions
from seqatt.data.tables.table_data import TableData
from seqatt.distributed.process_group import SINGLE_PROCESS, ProcessGroup
from seqatt.options import Options
from seqatt.progress import Advance
from seqatt.selection import Trace
from seqatt.training.build import StreamSource
from seqatt.training.loop import TrainingHook
from seqatt.validation import suggest

if TYPE_CHECKING:  # files need pyarrow, tables do not
    from seqatt.data.files.file_data import FileData

DEFAULT = "sequential_attention"
SUMS = "seqatt.algorithms.sums"  # imported when files are read: it needs pyarrow


@dataclass(frozen=True)
class Running:
    """How a run on files is carried out: how they are read, by which ranks, and with which checkpoints."""

    file_options: FileOptions = field(default_factory=FileOptions)
    checkpoint_options: CheckpointOptions = field(default_factory=CheckpointOptions)
    ranks: ProcessGroup = SINGLE_PROCESS


@dataclass(frozen=True)
class SelectionRequest:
    """The input of a method: select ``k`` features of ``data``, once per seed.

    ``data`` is a table or, for a method with a ``select_files``, files; then ``source`` reads them. ``hook`` shows
    progress and saves checkpoints.
    """

    data: TableData | FileData
    k: int
    seeds: list[int]
    options: Any
    device: torch.device
    hook: TrainingHook = field(default_factory=TrainingHook)
    source: StreamSource | None = None
    running: Running = field(default_factory=Running)

    @property
    def table(self) -> TableData:
        """The data of a method that needs a table."""
        assert isinstance(self.data, TableData)
        return self.data


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

    ``select`` returns one trace per seed. ``trains`` says that it uses the training loop, which embeds categories of
    many values. ``title`` is shown beside the progress bar, ``summary`` is one line for lists of methods.
    """

    name: str
    title: str
    summary: str
    options: type[Options]
    plan: Callable[[SelectionRequest], Any]
    select: Callable[[SelectionRequest, Any, Advance], list[Trace]]
    trains: bool = False

    @property
    def select_files(self) -> Callable[[SelectionRequest, Any, Advance], list[Trace]] | None:
        """The same for files that are read batch by batch; None if the method needs a table."""
        if self.trains:
            return self.select
        import_module(f"{SUMS}.methods")
        return _ON_FILES.get(self.name)


SelectFunction = Callable[..., list[Trace]]

_METHODS: dict[str, Method] = {}
_ON_FILES: dict[str, SelectFunction] = {}


def register(
    name: str,
    *,
    title: str,
    summary: str,
    options: type[Options] = Options,
    plan: Callable[[SelectionRequest], Any] = plan_per_seed,
    trains: bool = False,
) -> Callable[[SelectFunction], SelectFunction]:
    """Register the decorated function as the method ``name``.

    A method that ``trains`` by the training loop runs on tables and on files.
    """

    def decorate(select: SelectFunction) -> SelectFunction:
        if name in _METHODS:
            raise ValueError(f"two methods are called {name!r}")
        _METHODS[name] = Method(name, title, summary, options, plan, select, trains)
        return select

    return decorate


def register_files(*names: str) -> Callable[[SelectFunction], SelectFunction]:
    """Register the decorated function as what these methods do on files that are read batch by batch."""

    def decorate(select_files: SelectFunction) -> SelectFunction:
        _ON_FILES.update(dict.fromkeys(names, select_files))
        return select_files

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
        if not module.name.startswith(SUMS):
            import_module(module.name)


def get_method(name: str) -> Method:
    """A method by name; an unknown name is an error that lists the known ones."""
    known = all_methods()
    if name not in known:
        hint = suggest(name, known)
        listed = f"{f'{hint} Use' if hint else 'use'} one of {', '.join(known)}"
        raise ValueError(f"method: unknown {name!r}; {listed}")
    return known[name]


def methods() -> list[str]:
    """The names that ``select`` takes as ``method``."""
    return list(all_methods())
