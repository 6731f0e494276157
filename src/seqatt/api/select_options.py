"""The options of ``select``: written out for editors and type checkers, and checked together.

Every option is declared once, where it belongs (``AttentionOptions``, ``ForestOptions``, ``FileOptions``, ...). Editors
need the names and types written out; tests/test_options.py compares this list with the declarations.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import Field, fields
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypedDict

from seqatt.algorithms.answer_options import AnswerOptions
from seqatt.algorithms.registry import DEFAULT, all_methods, get_method
from seqatt.checkpoints.options import CheckpointOptions
from seqatt.data.files.options import FileOptions
from seqatt.data.tables.options import TableOptions
from seqatt.options import RARE, TRAINING, Options, describe, describe_field, names_of
from seqatt.validation import check_option_names

if TYPE_CHECKING:  # ``seqatt.select`` is found without torch and NumPy
    import torch
    from torch import nn

    from seqatt.data.tables.groups import Groups


class DataOptions(TypedDict, total=False):
    """Options about columns and files that ``select``, ``evaluate`` and ``compare`` share."""

    groups_of_rows: Any
    time: Any
    quantile: float
    ignore: tuple[str, ...]
    column_types: Mapping[str, str]
    log1p: bool | tuple[str, ...]
    negatives_kept: float
    memory: int | str | None
    delimiter: str | None
    decimal: str | None
    schema_rows: int
    shuffle_rows: int
    hash_buckets: int
    shards: int | None
    on_bad_file: str


class SelectOptions(DataOptions, total=False):
    """Keyword arguments of ``select``; ``help(seqatt.select)`` describes each and names the methods that have it."""

    # What to select
    max_k: int | None
    k_rule: str | float
    fdr: float | None
    repeats: int | None
    keep: Any
    forbid: Any
    candidates: Any
    quotas: Mapping[Any, Mapping[str, Any]] | None
    costs: Mapping[Any, Any] | None
    budget: float | None
    cost_rate: float | None
    importance: bool | None
    sample_weight: Any
    class_weight: Mapping[Any, float] | str | None
    groups: Groups | None
    task: str | None
    missing_indicator: bool
    max_categories: int
    # Training
    epochs: float | None
    batch_size: int | None
    learning_rate: float
    hidden: tuple[int, ...]
    input_dropout: float | None
    model: nn.Module | Callable[[int, int], nn.Module] | None
    inputs: Literal["columns", "raw"]
    loss: Callable[[torch.Tensor, torch.Tensor], torch.Tensor] | None
    optimizer: Callable[[Any], torch.optim.Optimizer] | None
    recipe: str
    mask: str
    features_per_phase: int | None
    warmup: float
    ensemble: int | None
    surplus: float | None
    replacement: int | None
    exchanges: int | None
    # Training, rarely needed
    scaling: str
    activation: str
    dropout: float
    label_smoothing: float
    batch_norm: bool
    embedding_dim: int | None
    temperature: float
    logit_learning_rate: float | None
    weight_decay: float | None
    univariate_test: float | None
    asinh_inputs: bool | None
    one_pass: bool | None
    reset_logits: bool
    reset_model: bool
    # Other methods
    penalty: float | None
    sigma: float
    candidate_share: float | None
    rotation_steps: int | None
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
    # Running
    checkpoint: str | os.PathLike[str] | None
    resume: bool
    checkpoint_every: float
    on_full_disk: str
    rank_timeout: float


class CheckedOptions(NamedTuple):
    """The options of a method, of the data, of checkpoints, and of the answer."""

    method: Any
    data: TableOptions
    checkpoints: CheckpointOptions
    answer: AnswerOptions


def make_options(method: str, options: dict[str, Any], *, files: bool = False) -> CheckedOptions:
    """All options of a selection, checked; an unknown option is an error."""
    options_class: type[Options] = get_method(method).options
    data_class = FileOptions if files else TableOptions
    classes: list[type[Options]] = [options_class, data_class, CheckpointOptions, AnswerOptions]
    names = [names_of(each) for each in classes]
    for name in options:
        if not files and name in names_of(FileOptions) and name not in names[1]:
            raise TypeError(f"{name}: is for files; pass their path as X, or leave it out")
    if "recipe" in options and "recipe" not in names[0]:
        raise TypeError(f"recipe: is for sequential_attention; {method} has none, leave it out")
    check_option_names(method, options, names[0], [*names[1], *names[2], *names[3]])
    made = [
        each(**{name: value for name, value in options.items() if name in own})
        for each, own in zip(classes, names, strict=True)
    ]
    checked = CheckedOptions(*made)  # type: ignore[arg-type]
    if checked.answer.repeats and (checked.checkpoints.checkpoint is not None or checked.checkpoints.resume):
        raise ValueError(
            "checkpoint: a selection with repeats writes none; leave it out, or leave repeats out"
        )
    return checked


def describe_options() -> list[str]:
    """Lines for the docstring of ``select``: the options of the table, of the default method, of all other methods.

    An option that several methods declare alike is described once. The options of files are in docs/streaming.md.
    """
    default = all_methods()[DEFAULT].options
    lines = ["The table, for every method:", "", *describe(TableOptions)]
    lines += ["", "Number of features, constraints, and checks of the result:", "", *describe(AnswerOptions)]
    for group, heading in (
        (TRAINING, f"{TRAINING}; other neural methods share most of these:"),
        (RARE, f"{RARE}:"),
    ):
        others = [field.name for field in fields(default) if field.metadata["group"] != group]
        lines += ["", heading, "", *describe(default, skip=others)]
    lines += ["", "Only other methods, or with another default there:", ""]
    for field, methods in _fields_of_other_methods(default):
        lines += describe_field(field, ", ".join(methods))
    return lines


def _fields_of_other_methods(default: type[Options]) -> list[tuple[Field[Any], list[str]]]:
    """Each option that ``default`` does not declare alike, with the names of the methods that have it."""
    declared = {_key(field) for field in fields(default)}
    methods: dict[Any, tuple[Field[Any], list[str]]] = {}
    for method in all_methods().values():
        for field in fields(method.options):
            if _key(field) not in declared:
                methods.setdefault(_key(field), (field, []))[1].append(method.name)
    return list(methods.values())


def _key(field: Field[Any]) -> tuple[str, Any, str]:
    return field.name, field.default, field.metadata["help"]
