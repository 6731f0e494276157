"""The options of ``select`` for editors and type checkers.

Every option is declared once, where it belongs (``AttentionOptions``, ``ForestOptions``, ``FileOptions``, ...). Editors
need them written out; a test holds this list and the declarations together.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any, TypedDict

import torch
from torch import nn

from seqatt.algorithms.registry import DEFAULT, all_methods
from seqatt.data.tables.groups import Groups
from seqatt.data.tables.options import TableOptions
from seqatt.options import describe, names_of


class SelectOptions(TypedDict, total=False):
    """Keyword arguments of ``select``; ``seqatt.select.__doc__`` says what each does and which methods have it."""

    # What to select
    sample_weight: Any
    class_weight: Mapping[Any, float] | str | None
    groups: Groups | None
    task: str | None
    missing_indicator: bool
    max_categories: int
    ignore: tuple[str, ...]
    # Training
    epochs: float | None
    batch_size: int | None
    learning_rate: float
    hidden: tuple[int, ...]
    input_dropout: float | None
    model: nn.Module | Callable[[int, int], nn.Module] | None
    loss: Callable[[torch.Tensor, torch.Tensor], torch.Tensor] | None
    optimizer: Callable[[Any], torch.optim.Optimizer] | None
    mask: str
    features_per_phase: int | None
    warmup: float
    ensemble: int | None
    surplus: float
    replacement: int | None
    # Training, rarely needed
    activation: str
    dropout: float
    label_smoothing: float
    batch_norm: bool
    temperature: float
    weight_decay: float | None
    univariate_test: float | None
    asinh_inputs: bool | None
    one_pass: bool
    reset_model: bool
    # Other methods
    penalty: float | None
    sigma: float
    attention_width: int
    hierarchy: float
    folds: int | None
    reconstruct: bool
    temperatures: tuple[float, float]
    parameterisation: str
    bins: int | None
    lazy: bool
    n_neighbors: int
    n_estimators: int
    library: str
    max_iter: int
    n_repeats: int
    n_jobs: int | None
    # Files
    passes: int
    column_types: Mapping[str, str]
    log1p: bool | tuple[str, ...]
    negatives_kept: float
    schema_rows: int
    shuffle_rows: int
    hash_buckets: int
    embedding_dim: int | Mapping[str, int] | None
    # Running
    shards: int | None
    on_bad_file: str
    checkpoint: str | os.PathLike[str] | None
    resume: bool
    checkpoint_every: float
    on_full_disk: str
    rank_timeout: float


def describe_options() -> list[str]:
    """Lines for the docstring of ``select``: the options of tables, then of each method.

    An option that several methods have is described once. The options of files are described in docs/streaming.md.
    """
    lines = ["Of every method:", *describe(TableOptions)]
    described: set[str] = set()
    for method in all_methods().values():
        own = describe(method.options, skip=described)
        heading = f"Of method={method.name!r}" + (", the default" if method.name == DEFAULT else "")
        lines += [f"{heading}:", *own] if own else []
        described |= set(names_of(method.options))
    return lines
