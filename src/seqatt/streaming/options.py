"""Options of the methods that run on files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from seqatt.algorithms.neural.attention_options import AttentionOptions
from seqatt.data.files.options import FileOptions
from seqatt.options import FILES, names_of, option, same_option
from seqatt.training.options import NetworkOptions
from seqatt.validation import boolean, check_option_names, choice, integer, number

ENSEMBLE_ROWS = 1 << 21  # rows that all members of a default ensemble may train on in total, over all passes
ENSEMBLE_SIZES = (4, 2)  # members by default: the first size within ENSEMBLE_ROWS, else 1


def embedding_widths(name: str, value: Any) -> int | Mapping[str, int] | None:
    """Check: a width, or a dict from columns to widths, or None."""
    widths = [] if value is None else list(value.values()) if isinstance(value, Mapping) else [value]
    if any(isinstance(width, bool) or not hasattr(width, "__index__") or width < 1 for width in widths):
        raise ValueError(f"{name}: must be a width of at least 1, or one by name, got {value!r}")
    return value  # type: ignore[no-any-return]


@dataclass(frozen=True)
class StreamTrainingOptions(FileOptions):
    """A network that trains on files."""

    passes: int = option(1, integer(1), "Passes over the files.", group=FILES)
    batch_size: int | None = option(
        None,
        integer(1, optional=True),
        "Rows per step; by default a power of two from 64 to 4,096 that gives 400 steps and 32 per phase.",
    )
    learning_rate: float = same_option(NetworkOptions, "learning_rate")
    hidden: tuple[int, ...] = same_option(NetworkOptions, "hidden", default=(768, 256, 128))
    activation: str = same_option(NetworkOptions, "activation")
    hash_buckets: int = option(
        1 << 16, integer(4), "Most rows of the embedding table of a categorical column.", group=FILES
    )
    embedding_dim: int | Mapping[str, int] | None = option(
        None,
        embedding_widths,
        "Width of embeddings, for all columns or by name; by default by cardinality.",
        group=FILES,
    )

    def check_together(self) -> None:
        super().check_together()
        if not self.hidden:
            raise ValueError("hidden: a network on files needs at least one hidden layer; give a width")

    def members(self, rows: float) -> int:
        """Models whose scores are pooled, for this number of rows."""
        return 1

    def resolved(self, rows: float) -> dict[str, Any]:
        """For ``Selection.settings``: the options, with defaults resolved for this number of rows."""
        return self.to_settings()

    def check_kinds(self, kinds: Mapping[str, str]) -> None:
        super().check_kinds(kinds)
        for name in self.embedding_dim if isinstance(self.embedding_dim, Mapping) else ():
            if kinds.get(name) != "categorical":
                raise ValueError(f"embedding_dim: {name!r} is not a categorical feature")


@dataclass(frozen=True)
class StreamEvaluationOptions(StreamTrainingOptions):
    """The network of ``evaluate_files``, the same for every method."""


@dataclass(frozen=True)
class StreamAttentionOptions(StreamTrainingOptions):
    """Sequential Attention on files: the mask and the pace of selection."""

    mask: str = same_option(AttentionOptions, "mask")
    temperature: float = same_option(AttentionOptions, "temperature")
    features_per_phase: int = option(1, integer(1), "Features selected at the end of a phase.")
    warmup: float = same_option(AttentionOptions, "warmup")
    ensemble: int | None = option(
        None,
        integer(1, optional=True),
        "Models whose scores are pooled before each selection; each sees all rows. By default 4, 2 or 1, fewer for "
        "more rows.",
    )

    def members(self, rows: float) -> int:
        """A small number of rows leaves much to chance, and training several models on them costs little."""
        if self.ensemble is not None:
            return self.ensemble
        affordable = (size for size in ENSEMBLE_SIZES if size * self.passes * rows <= ENSEMBLE_ROWS)
        return next(affordable, 1)

    def resolved(self, rows: float) -> dict[str, Any]:
        return self.to_settings() | {"ensemble": self.members(rows)}


@dataclass(frozen=True)
class StreamPenaltyOptions(StreamTrainingOptions):
    """A LASSO on files. Rows come once, so none are held out to choose the strength of its penalty."""

    penalty: float = option(0.3, number(minimum=0), "Strength of the penalty.")


@dataclass(frozen=True)
class StreamBatchAttentionOptions(StreamTrainingOptions):
    """Batch-wise attention on files."""

    attention_width: int = option(128, integer(1), "Hidden units of the attention network.")


@dataclass(frozen=True)
class SumOptions(FileOptions):
    """Methods that need sums over the rows and no training."""

    max_categories: int = option(
        64, integer(2), "Categories per column that get a column of their own.", group=FILES
    )


@dataclass(frozen=True)
class LinearAttentionSumOptions(SumOptions):
    """Linear attention on files."""

    parameterisation: str = option(
        "linear", choice(["linear", "softmax"]), "The weights of Definition 3.1, or the softmax of Lemma 3.2."
    )


@dataclass(frozen=True)
class CMIMSumOptions(SumOptions):
    """CMIM on files."""

    bins: int | None = option(
        None, integer(2, optional=True), "Bins of numbers; by default as many as the rows allow, at most 10."
    )
    lazy: bool = option(True, boolean(), "Skip candidates that an upper bound already rules out.")


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
    """The options of a method on files; an option that it does not have there is an error."""
    if method not in STREAMED_OPTIONS:
        raise ValueError(
            f"method: {method!r} does not run on files; use one of {', '.join(STREAMED_OPTIONS)}, or read the table "
            "and pass that"
        )
    options_class = STREAMED_OPTIONS[method]
    if "epochs" in options:
        raise TypeError("epochs: is for tables in memory; for files say passes (--passes)")
    check_option_names(f"{method} on files", options, names_of(options_class))
    return options_class(**options)
