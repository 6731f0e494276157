"""The registry of selection methods.

A method is a row of ``catalogue.py``, which says what it is called, which options it has and which module holds it, and
one file that registers its function::

    @register("forest")
    def random_forest(request: SelectionRequest, plan: Plan, advance: Advance) -> list[Trace]:
        ...

That file is imported when the method is used: to list all methods takes none of the libraries they need.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

from seqatt.options import Options
from seqatt.validation import show, suggest

if TYPE_CHECKING:
    from seqatt.algorithms.request import SelectionRequest
    from seqatt.trace import Trace

DEFAULT = "sequential_attention"
PACKAGE = "seqatt.algorithms"
SelectFunction = Callable[..., "list[Trace]"]


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


class Functions(NamedTuple):
    """The functions of a method: ``plan`` resolves defaults, ``select`` returns one trace per seed."""

    plan: Callable[[SelectionRequest], Any]
    select: SelectFunction


@dataclass(frozen=True)
class Method:
    """A method of the catalogue.

    ``module`` is the file of this package that registers its functions. ``title`` is shown beside the progress bar,
    ``summary`` is one line for lists of methods. ``trains`` says that it uses the training loop, which embeds
    categories of many values and runs on tables and on files; ``own_loop`` that it trains networks in a loop of its
    own. ``nested`` says that the features selected for a smaller k are the first of those selected for a larger one, on
    the same table and with the same seed; ``ordered`` that the selected features are ordered after training, so that
    the first j are a selection of j, though perhaps not the one for k=j.
    """

    name: str
    module: str
    title: str
    summary: str
    options: type[Options] = Options
    trains: bool = False
    own_loop: bool = False
    nested: bool = False
    ordered: bool = False

    @property
    def uses_loss(self) -> bool:
        """Whether it trains networks with the loss of the task; the others see the target as numbers or classes."""
        return self.trains or self.own_loop

    @property
    def ranks_features(self) -> bool:
        """Whether the first j features that it selects are a selection of j."""
        return self.nested or self.ordered

    @property
    def plan(self) -> Callable[[SelectionRequest], Any]:
        return self._functions.plan

    @property
    def select(self) -> SelectFunction:
        return self._functions.select

    @property
    def select_files(self) -> SelectFunction | None:
        """``select`` for files that are read batch by batch; None if the method needs a table."""
        if self.trains:
            return self.select
        import_module(f"{PACKAGE}.sums.methods")
        return _ON_FILES.get(self.name)

    @property
    def _functions(self) -> Functions:
        if self.name not in _FUNCTIONS:
            import_module(f"{PACKAGE}.{self.module}")
        return _FUNCTIONS[self.name]


_METHODS: dict[str, Method] = {}
_FUNCTIONS: dict[str, Functions] = {}
_ON_FILES: dict[str, SelectFunction] = {}


def register(
    name: str, *, plan: Callable[[SelectionRequest], Any] = plan_per_seed
) -> Callable[[SelectFunction], SelectFunction]:
    """Register the decorated function as what the method ``name`` of the catalogue does."""

    def decorate(select: SelectFunction) -> SelectFunction:
        if name in _FUNCTIONS:
            raise ValueError(f"two methods are called {name!r}")
        _FUNCTIONS[name] = Functions(plan, select)
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
    if not _METHODS:
        rows: tuple[Method, ...] = import_module(f"{PACKAGE}.catalogue").METHODS
        _METHODS.update({method.name: method for method in rows})
    return {name: _METHODS[name] for name in sorted(_METHODS, key=lambda name: (name != DEFAULT, name))}


def get_method(name: str) -> Method:
    """A method by name; an unknown name is an error that lists the known ones."""
    known = all_methods()
    if name not in known:
        hint = suggest(name, known)
        listed = f"{f'{hint} Use' if hint else 'use'} one of {', '.join(known)}"
        raise ValueError(f"method: unknown {show(name)}; {listed}")
    return known[name]


def methods() -> list[str]:
    """The names that ``select`` takes as ``method``."""
    return list(all_methods())
