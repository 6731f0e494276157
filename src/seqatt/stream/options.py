"""What a user can set about a selection from files, checked where it is said."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np

from seqatt.neural.masks import MASKS, Mask, Softmax
from seqatt.neural.options import check_flag, check_number, check_whole, check_widths, insist_on_known, one_of
from seqatt.neural.stacked import ACTIVATIONS
from seqatt.target import TASKS

TOGETHER, MEMBERS = 1 << 21, (4, 2)  # rows that the networks of a committee see together, and their number


@dataclass(frozen=True)
class Reading:
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

    def insist_on_kinds(self, kinds: Mapping[str, str]) -> None:
        """What is said of features is said of those there are."""
        for name in () if isinstance(self.log1p, bool) else self.log1p:
            if kinds.get(name) != "numeric":
                raise ValueError(f"log1p: {name!r} is not a numeric feature")

    def record(self) -> dict[str, Any]:
        """For ``Selection.settings``: plain values."""
        return {f.name: _plain(getattr(self, f.name)) for f in fields(self)}


@dataclass(frozen=True)
class TrainingOnFiles(Reading):
    """A network on a stream. ``batch_size`` left at None follows the number of rows.

    ``buckets`` bounds a category's table, ``embedding`` is its width, for all or by name.
    """

    passes: int = 1
    batch_size: int | None = None
    learning_rate: float = 3e-3
    hidden: tuple[int, ...] = (768, 256, 128)
    activation: str = "relu"
    buckets: int = 1 << 16
    embedding: int | Mapping[str, int] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        check_whole(self, "passes", least=1)
        check_whole(self, "batch_size", least=1, optional=True)
        check_number(self, "learning_rate", above=0)
        object.__setattr__(self, "hidden", check_widths(self.hidden))
        if not self.hidden:
            raise ValueError("hidden: a network on files needs at least one hidden layer; give a width")
        one_of("activation", self.activation, list(ACTIVATIONS))
        check_whole(self, "buckets", least=4)
        self._check_embedding()

    def members(self, rows: float) -> int:
        """How many networks choose together, of so many rows."""
        return 1

    def resolved(self, rows: float) -> dict[str, Any]:
        """For ``Selection.settings``: as they are for so many rows."""
        return self.record()

    def _check_embedding(self) -> None:
        widths: Any = self.embedding.values() if isinstance(self.embedding, Mapping) else [self.embedding]
        widths = [] if self.embedding is None else widths
        if any(isinstance(w, bool) or not hasattr(w, "__index__") or w < 1 for w in widths):
            raise ValueError(
                f"embedding: must be a width of at least 1, or one by name, got {self.embedding!r}"
            )

    def insist_on_kinds(self, kinds: Mapping[str, str]) -> None:
        super().insist_on_kinds(kinds)
        for name in self.embedding if isinstance(self.embedding, Mapping) else ():
            if kinds.get(name) != "categorical":
                raise ValueError(f"embedding: {name!r} is not a categorical feature")


@dataclass(frozen=True)
class JudgingOnFiles(TrainingOnFiles):
    """A network that judges a choice, the same for every method."""


@dataclass(frozen=True)
class AttentionOnFiles(TrainingOnFiles):
    """Sequential Attention: the mask and the pace of choosing.

    ``ensemble`` left at None follows the number of rows: four networks for few, one for many.
    """

    mask: str = "softmax"
    temperature: float = 1.0
    features_per_phase: int = 1
    warmup: float = 0.1
    ensemble: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        check_whole(self, "ensemble", least=1, optional=True)
        one_of("mask", self.mask, list(MASKS))
        check_number(self, "temperature", above=0)
        check_whole(self, "features_per_phase", least=1)
        check_number(self, "warmup", least=0, below=1)

    def members(self, rows: float) -> int:
        """Few rows leave much to chance, and training costs little there."""
        if self.ensemble is not None:
            return int(self.ensemble)
        return next((members for members in MEMBERS if members * self.passes * rows <= TOGETHER), 1)

    def resolved(self, rows: float) -> dict[str, Any]:
        return self.record() | {"ensemble": self.members(rows)}

    def make_mask(self) -> Mask:
        return Softmax(self.temperature) if self.mask == "softmax" else MASKS[self.mask]


@dataclass(frozen=True)
class PenaltyOnFiles(TrainingOnFiles):
    """A LASSO on a stream. Rows come once, so none are kept aside to choose the strength of its penalty."""

    penalty: float = 0.3

    def __post_init__(self) -> None:
        super().__post_init__()
        check_number(self, "penalty", least=0)


@dataclass(frozen=True)
class BatchAttentionOnFiles(TrainingOnFiles):
    """``attention_width`` is that of the hidden layer of the network that attends."""

    attention_width: int = 128

    def __post_init__(self) -> None:
        super().__post_init__()
        check_whole(self, "attention_width", least=1)


@dataclass(frozen=True)
class GatheringOnFiles(Reading):
    """Sums or counts gathered in one pass, and no training.

    The most frequent ``max_categories`` of a category have a column each.
    """

    max_categories: int = 64

    def __post_init__(self) -> None:
        super().__post_init__()
        check_whole(self, "max_categories", least=2)


@dataclass(frozen=True)
class LinearAttentionOnFiles(GatheringOnFiles):
    """``parameterisation`` as in memory."""

    parameterisation: str = "linear"

    def __post_init__(self) -> None:
        super().__post_init__()
        one_of("parameterisation", self.parameterisation, ["linear", "softmax"])


@dataclass(frozen=True)
class CMIMOnFiles(GatheringOnFiles):
    """CMIM on a stream, ``bins`` and ``lazy`` as in memory."""

    bins: int | None = None
    lazy: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        check_whole(self, "bins", least=2, optional=True)
        check_flag(self, "lazy")


ON_FILES: dict[str, type[Reading]] = {
    "sequential_attention": AttentionOnFiles,
    "sequential_lasso": PenaltyOnFiles,
    "group_lasso": PenaltyOnFiles,
    "batch_attention": BatchAttentionOnFiles,
    "linear_omp": GatheringOnFiles,
    "linear_sequential_lasso": GatheringOnFiles,
    "linear_attention": LinearAttentionOnFiles,
    "cmim": CMIMOnFiles,
}


def make_options(method: str, options: dict[str, Any]) -> Reading:
    """The options of a method on files; what it cannot be told there is an error."""
    if method not in ON_FILES:
        raise ValueError(
            f"method: {method!r} does not run on files; use one of {', '.join(ON_FILES)}, or read the table "
            "and pass that"
        )
    kind = ON_FILES[method]
    if "epochs" in options:
        raise TypeError("epochs: is for tables in memory; for files say passes (--passes)")
    insist_on_known(f"{method} on files", options, [f.name for f in fields(kind)])
    return kind(**options)


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
