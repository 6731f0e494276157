"""An option is declared once; ``select``, the selectors, the command line and the lists for editors agree with it."""

from __future__ import annotations

import dataclasses
import inspect
import types
import typing
from collections.abc import Iterable
from typing import Any

import pytest
import torch
import typer
from torch import nn

import seqatt
from seqatt import SequentialAttentionSelector
from seqatt.algorithms.answer_options import AnswerOptions
from seqatt.algorithms.neural.attention_options import MASK_NAMES, AttentionOptions
from seqatt.algorithms.registry import all_methods
from seqatt.api.evaluation.evaluate import EvaluateOptions
from seqatt.api.select_options import SelectOptions
from seqatt.checkpoints.options import CheckpointOptions
from seqatt.cli.app import app
from seqatt.cli.select import select as select_command
from seqatt.data.files.options import FileOptions
from seqatt.data.tables.groups import Groups
from seqatt.data.tables.options import TableOptions
from seqatt.options import Options, names_of
from seqatt.training.gates.masks import MASKS
from seqatt.training.models.architecture import ACTIVATIONS
from seqatt.training.options import ACTIVATION_NAMES, TrainingOptions

FUNCTIONS = {"model", "inputs", "loss", "optimizer"}  # cannot be written on a command line, or is about one
NAMES = {
    "torch": torch,
    "nn": nn,
    "Groups": Groups,
}  # imported for type checkers only where options are declared


def declared_defaults(*declarations: type[Options]) -> dict[str, Any]:
    return {field.name: field.default for options in declarations for field in dataclasses.fields(options)}


def members(annotation: Any) -> set[Any]:
    """The types of a union, or the one type."""
    if typing.get_origin(annotation) in (typing.Union, types.UnionType):
        return set(typing.get_args(annotation))
    return {annotation}


def declared_types(declarations: Iterable[type[Options]]) -> dict[str, set[Any]]:
    """By name, the union of the types that the declarations give an option."""
    union: dict[str, set[Any]] = {}
    for options in declarations:
        hints = typing.get_type_hints(options, localns=NAMES)
        for name in names_of(options):
            union.setdefault(name, set()).update(members(hints[name]))
    return union


def listed_types(listed: type) -> dict[str, set[Any]]:
    return {name: members(hint) for name, hint in typing.get_type_hints(listed, localns=NAMES).items()}


def flags_of_select() -> dict[str, tuple[Any, Any]]:
    """The type and the ``typer.Option`` of every parameter of ``seqatt select``, by name."""
    parameters = inspect.signature(select_command).parameters
    return {name: typing.get_args(parameter.annotation) for name, parameter in parameters.items()}


def test_every_option_of_select_is_a_parameter_of_the_selector_with_the_same_default():
    expected = declared_defaults(AttentionOptions, TableOptions, AnswerOptions)
    for name in ("sample_weight", "groups_of_rows", "time"):  # arguments of fit
        del expected[name]
    del expected["ignore"], expected["column_types"]  # of a frame: leave columns out, or change their types
    parameters = inspect.signature(SequentialAttentionSelector).parameters
    defaults = {name: parameter.default for name, parameter in parameters.items()}
    for name in ("n_features_to_select", "device", "progress", "callbacks", "random_state"):
        del defaults[name]
    assert defaults == expected


@pytest.mark.parametrize("name", [n for n in names_of(AttentionOptions) if n not in FUNCTIONS])
def test_every_option_that_can_be_written_is_a_flag_with_its_help_and_its_default(name):
    field = AttentionOptions.__dataclass_fields__[name]
    annotation, flag = flags_of_select()[name]
    assert inspect.signature(select_command).parameters[name].default is None  # select has the default
    assert flag.rich_help_panel == field.metadata["group"]
    assert flag.help.startswith(field.metadata["help"])
    assert ("default: " in flag.help) == (field.default is not None)
    choices = getattr(field.metadata["check"], "choices", None)
    if choices is not None:
        (words,) = members(annotation) - {type(None)}
        assert [word.value for word in words] == choices


def test_a_flag_is_named_like_its_option_and_functions_are_no_flags():
    command = typer.main.get_command(app).commands["select"]
    flags = {parameter.name: parameter.opts[0] for parameter in command.params}
    for name in names_of(AttentionOptions):
        assert flags.get(name) == (None if name in FUNCTIONS else "--" + name.replace("_", "-"))


@pytest.mark.parametrize(
    ("options", "names"),
    [
        (FileOptions, ["log1p", "negatives_kept", "on_bad_file", "missing_indicator", "memory", "delimiter"]),
        (CheckpointOptions, ["resume", "checkpoint_every", "on_full_disk"]),
        (AnswerOptions, ["max_k", "k_rule"]),
    ],
)
def test_a_flag_about_files_or_checkpoints_has_the_help_of_its_declaration(options, names):
    flags = flags_of_select()
    for name in names:
        assert flags[name][1].help.startswith(options.__dataclass_fields__[name].metadata["help"])


def test_the_docstring_of_select_describes_every_option():
    described = [TableOptions, AnswerOptions, *(method.options for method in all_methods().values())]
    for name in {name for options in described for name in names_of(options)}:
        assert f"- {name} " in seqatt.select.__doc__


def test_select_options_lists_every_option_with_the_declared_types():
    of_methods = [method.options for method in all_methods().values()]
    declared = declared_types([FileOptions, CheckpointOptions, AnswerOptions, *of_methods])
    assert listed_types(SelectOptions) == declared


def test_evaluate_options_lists_every_other_option_with_the_declared_types():
    declared = declared_types([TrainingOptions, FileOptions])
    own_parameters = (
        "hidden",
        "task",
        "sample_weight",
        "class_weight",
        "missing_indicator",
        "max_categories",
    )
    for name in (*own_parameters, "groups"):  # features in groups are selected, not evaluated
        del declared[name]
    assert listed_types(EvaluateOptions) == declared


def test_names_that_are_known_without_torch_are_those_that_exist():
    assert list(ACTIVATION_NAMES) == list(ACTIVATIONS)
    assert list(MASK_NAMES) == list(MASKS)
