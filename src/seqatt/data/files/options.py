"""How files are read and what their columns are: the options, checked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np

from seqatt.data.tables.target import TASKS
from seqatt.training.options import check_flag, check_number, check_whole, one_of


@dataclass(frozen=True)
class FileOptions:
    """How files are read and what their columns are.

    ``sample_weight`` names a column; ``negatives_kept`` is the share of negatives that a sampled log kept.
    ``shards`` left at None is the number of ranks.
    """

    kinds: Mapping[str, str] = field(default_factory=dict)
    ignore: tuple[str, ...] = ()
    log1p: bool | tuple[str, ...] = False
    missing_indicator: bool = False
    sample_weight: str | None = None
    class_weight: Mapping[Any, float] | str | None = None
    negatives_kept: float = 1.0
    task: str | None = None
    look: int = 1 << 16
    buffer: int = 1 << 17
    shards: int | None = None
    on_bad_file: str = "stop"

    def __post_init__(self) -> None:
        if not isinstance(self.kinds, Mapping):
            raise TypeError(f"kinds: must be a dict such as {{'site': 'categorical'}}, got {self.kinds!r}")
        object.__setattr__(self, "ignore", _names("ignore", self.ignore))
        if not isinstance(self.log1p, bool):
            object.__setattr__(self, "log1p", _names("log1p", self.log1p))
        check_flag(self, "missing_indicator")
        if self.sample_weight is not None and not isinstance(self.sample_weight, str):
            raise TypeError(f"sample_weight: must name a column of the files, got {self.sample_weight!r}")
        check_number(self, "negatives_kept", above=0)
        if self.negatives_kept > 1:
            raise ValueError(f"negatives_kept: is a share, at most 1, got {self.negatives_kept}")
        if self.task is not None:
            one_of("task", self.task, [task for task in TASKS if task != "multilabel"])
        check_whole(self, "look", least=2)
        check_whole(self, "buffer", least=2)
        check_whole(self, "shards", least=1, optional=True)
        one_of("on_bad_file", self.on_bad_file, ["stop", "skip"])

    def check_kinds(self, kinds: Mapping[str, str]) -> None:
        """What is said of features is said of those there are."""
        for name in () if isinstance(self.log1p, bool) else self.log1p:
            if kinds.get(name) != "numeric":
                raise ValueError(f"log1p: {name!r} is not a numeric feature")

    def record(self) -> dict[str, Any]:
        """For ``Selection.settings``: plain values."""
        return {f.name: _plain(getattr(self, f.name)) for f in fields(self)}


def _plain(value: Any) -> Any:
    """As JSON has it, NumPy's numbers too."""
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    return value.item() if isinstance(value, np.generic) else value


def _names(argument: str, names: Any) -> tuple[str, ...]:
    names = (names,) if isinstance(names, str) else names
    if not isinstance(names, list | tuple | set | frozenset) or not all(isinstance(n, str) for n in names):
        raise TypeError(f"{argument}: must be names of columns, got {names!r}")
    return tuple(names)
