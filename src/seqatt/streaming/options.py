"""What a user can set about a selection from files, checked where it is said."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from seqatt.data.files.options import FileOptions
from seqatt.training.masks import MASKS, Mask, SoftmaxMask
from seqatt.training.models.mlp import ACTIVATIONS
from seqatt.training.options import (
    check_flag,
    check_number,
    check_whole,
    check_widths,
    insist_on_known,
    one_of,
)

TOGETHER, MEMBERS = 1 << 21, (4, 2)  # rows that the networks of a committee see together, and their number


@dataclass(frozen=True)
class StreamTrainingOptions(FileOptions):
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

    def check_kinds(self, kinds: Mapping[str, str]) -> None:
        super().check_kinds(kinds)
        for name in self.embedding if isinstance(self.embedding, Mapping) else ():
            if kinds.get(name) != "categorical":
                raise ValueError(f"embedding: {name!r} is not a categorical feature")


@dataclass(frozen=True)
class StreamEvaluationOptions(StreamTrainingOptions):
    """A network that judges a choice, the same for every method."""


@dataclass(frozen=True)
class StreamAttentionOptions(StreamTrainingOptions):
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
        return SoftmaxMask(self.temperature) if self.mask == "softmax" else MASKS[self.mask]


@dataclass(frozen=True)
class StreamPenaltyOptions(StreamTrainingOptions):
    """A LASSO on a stream. Rows come once, so none are kept aside to choose the strength of its penalty."""

    penalty: float = 0.3

    def __post_init__(self) -> None:
        super().__post_init__()
        check_number(self, "penalty", least=0)


@dataclass(frozen=True)
class StreamBatchAttentionOptions(StreamTrainingOptions):
    """``attention_width`` is that of the hidden layer of the network that attends."""

    attention_width: int = 128

    def __post_init__(self) -> None:
        super().__post_init__()
        check_whole(self, "attention_width", least=1)


@dataclass(frozen=True)
class SumOptions(FileOptions):
    """Sums or counts gathered in one pass, and no training.

    The most frequent ``max_categories`` of a category have a column each.
    """

    max_categories: int = 64

    def __post_init__(self) -> None:
        super().__post_init__()
        check_whole(self, "max_categories", least=2)


@dataclass(frozen=True)
class LinearAttentionSumOptions(SumOptions):
    """``parameterisation`` as in memory."""

    parameterisation: str = "linear"

    def __post_init__(self) -> None:
        super().__post_init__()
        one_of("parameterisation", self.parameterisation, ["linear", "softmax"])


@dataclass(frozen=True)
class CMIMSumOptions(SumOptions):
    """CMIM on a stream, ``bins`` and ``lazy`` as in memory."""

    bins: int | None = None
    lazy: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        check_whole(self, "bins", least=2, optional=True)
        check_flag(self, "lazy")


STREAMED_OPTIONS: dict[str, type[FileOptions]] = {
    "sequential_attention": StreamAttentionOptions,
    "sequential_lasso": StreamPenaltyOptions,
    "group_lasso": StreamPenaltyOptions,
    "batch_attention": StreamBatchAttentionOptions,
    "linear_omp": SumOptions,
    "linear_sequential_lasso": SumOptions,
    "linear_attention": LinearAttentionSumOptions,
    "cmim": CMIMSumOptions,
}


def make_stream_options(method: str, options: dict[str, Any]) -> FileOptions:
    """The options of a method on files; what it cannot be told there is an error."""
    if method not in STREAMED_OPTIONS:
        raise ValueError(
            f"method: {method!r} does not run on files; use one of {', '.join(STREAMED_OPTIONS)}, or read the table "
            "and pass that"
        )
    kind = STREAMED_OPTIONS[method]
    if "epochs" in options:
        raise TypeError("epochs: is for tables in memory; for files say passes (--passes)")
    insist_on_known(f"{method} on files", options, [f.name for f in fields(kind)])
    return kind(**options)
