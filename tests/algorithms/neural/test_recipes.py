"""Recipes: the paper's algorithm by one name, on every way to call a selection."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch
from tests.support.problems import linear_problem
from typer.testing import CliRunner

import seqatt
from seqatt.algorithms.neural.attention_options import RECIPES, AttentionOptions
from seqatt.algorithms.neural.attention_plan import make_plan
from seqatt.algorithms.request import SelectionRequest
from seqatt.cli.app import app
from seqatt.data.tables.table_data import read_table_data
from seqatt.options import names_of

# What the additions of seqatt are where they are off.
OFF = {
    "ensemble": 1,
    "surplus": 1.0,
    "replacement": 0,
    "input_dropout": 0.0,
    "weight_decay": 0.0,
    "univariate_test": 0.0,
    "asinh_inputs": False,
    "features_per_phase": 1,
    "reset_model": False,
    "mask": "softmax",
    "temperature": 1.0,
    "logit_learning_rate": 3e-3,  # that of the model
}


def wide_problem() -> tuple[np.ndarray, np.ndarray]:
    """More columns than rows, so that by default every addition of seqatt is active."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 90))
    return X, (X[:, 0] + X[:, 1] > 0).astype(int)


def plan_of(**options):
    request = SelectionRequest(
        read_table_data(*wide_problem()), 3, [0], AttentionOptions(**options), torch.device("cpu")
    )
    return make_plan(request)


def test_every_addition_is_active_by_default_on_a_wide_table():
    settings = plan_of().settings
    for name in ("ensemble", "surplus", "weight_decay", "univariate_test", "asinh_inputs"):
        assert settings[name] != OFF[name], name


@pytest.mark.parametrize("recipe", ["paper", "algorithm_1"])
def test_the_papers_recipes_switch_every_addition_off(recipe):
    settings = plan_of(recipe=recipe).settings
    assert {name: settings[name] for name in OFF} == OFF
    assert settings["recipe"] == recipe
    assert settings["one_pass"] == (recipe == "paper")


def test_the_papers_recipe_selects_one_feature_per_phase_after_a_warm_up_and_resets_no_model():
    schedule = plan_of(recipe="paper").schedule
    assert [phase.sees for phase in schedule] == ["all", "attended", "attended", "attended"]
    assert [phase.take for phase in schedule] == [0, 1, 1, 1]
    assert not any(phase.drop or phase.reset_model for phase in schedule)
    steps = [phase.steps for phase in schedule]
    assert steps[0] == pytest.approx(0.1 * sum(steps), abs=1)


def test_algorithm_1_trains_a_new_model_in_full_for_each_feature_without_a_warm_up():
    one_pass, schedule = plan_of(recipe="paper").schedule, plan_of(recipe="algorithm_1").schedule
    assert [(phase.take, phase.sees, phase.reset_model) for phase in schedule] == [(1, "attended", True)] * 3
    assert {phase.steps for phase in schedule} == {sum(phase.steps for phase in one_pass)}


@pytest.mark.parametrize("recipe", ["paper", "algorithm_1"])
@pytest.mark.parametrize(
    "given",
    [{"surplus": 2.0}, {"weight_decay": 0.01}, {"ensemble": 3}, {"asinh_inputs": True}, {"one_pass": True}],
)
def test_an_option_that_is_given_overrides_the_recipe(recipe, given):
    settings = plan_of(recipe=recipe, **given | {"one_pass": True}).settings
    assert {name: settings[name] for name in given} == given
    others = OFF.keys() - given.keys() - {"features_per_phase"}
    assert {name: settings[name] for name in others} == {name: OFF[name] for name in others}


def test_an_option_of_a_recipe_can_be_left_out():
    """An option whose own default is a value could not be told from one that the user gave."""
    for recipe, values in RECIPES.items():
        for name in values:
            assert name in names_of(AttentionOptions), (recipe, name)
            assert AttentionOptions.__dataclass_fields__[name].default is None, (recipe, name)


@pytest.mark.parametrize("recipe", list(RECIPES))
def test_select_the_selector_and_the_command_line_give_the_same_selection(recipe, tmp_path):
    X, y = linear_problem("binary", rows=80)
    options = {"epochs": 20, "hidden": (8,)}
    selection = seqatt.select(X, y, 3, recipe=recipe, **options)
    selector = seqatt.SequentialAttentionSelector(3, recipe=recipe, **options).fit(X, y)
    assert selector.selection_.scores.tolist() == selection.scores.tolist()
    assert selector.selection_.settings == selection.settings
    path = tmp_path / "table.csv"
    np.savetxt(
        path,
        np.column_stack([X, y]),
        delimiter=",",
        comments="",
        fmt="%.17g",
        header=",".join([*(f"x{i}" for i in range(8)), "y"]),
    )
    arguments = ["select", str(path), "--target", "y", "-k", "3", "--recipe", recipe, "--json"]
    result = CliRunner().invoke(app, [*arguments, "--epochs", "20", "--hidden", "8"])
    assert result.exit_code == 0, result.output
    printed = json.loads(result.stdout)
    assert printed["settings"]["recipe"] == recipe
    assert printed["indices"] == selection.indices.tolist()


def test_a_comparison_takes_the_recipe_as_an_option_of_the_method():
    X, y = linear_problem("binary", rows=80)
    options = {"sequential_attention": {"recipe": "paper", "epochs": 20}}
    comparison = seqatt.compare(X, y, 2, methods=["sequential_attention"], seeds=[0], options=options)
    assert comparison.settings["options"] == options
    assert not any(run.error for run in comparison.runs)


def test_another_method_has_no_recipe_and_the_error_says_so():
    X, y = linear_problem("binary", rows=80)
    with pytest.raises(TypeError, match="recipe: is for sequential_attention; forest has none"):
        seqatt.select(X, y, 2, method="forest", recipe="paper")
    with pytest.raises(TypeError, match="recipe: is for sequential_attention"):
        seqatt.compare(X, y, 2, methods=["forest"], options={"forest": {"recipe": "paper"}})


def test_an_unknown_recipe_is_an_error_that_lists_the_known_ones():
    X, y = linear_problem("binary", rows=80)
    with pytest.raises(ValueError, match="recipe: unknown 'papper'; use one of default, paper, algorithm_1"):
        seqatt.select(X, y, 2, recipe="papper")


def test_logits_that_are_not_reset_start_a_phase_where_the_last_one_ended():
    """The paper's remark (appendix B.2.4): without a reset, the second phase continues from the first."""
    X, y = linear_problem("regression", rows=80)
    kept, fresh = (
        seqatt.select(X, y, 2, recipe="paper", epochs=400, reset_logits=reset).history
        for reset in (False, True)
    )
    assert kept[1] | {"seconds": 0} == fresh[1] | {"seconds": 0}  # there is nothing to keep yet
    assert max(kept[2]["scores"].values()) > 1.2 * max(fresh[2]["scores"].values())


def test_algorithm_1_always_resets_the_logits():
    with pytest.raises(ValueError, match="reset_logits: one_pass=False trains new logits"):
        AttentionOptions(recipe="algorithm_1", reset_logits=False)


def test_the_papers_recipe_selects_the_same_as_its_options_one_by_one():
    X, y = linear_problem("multiclass", rows=80)
    named = seqatt.select(X, y, 3, recipe="paper", epochs=20)
    spelled = seqatt.select(X, y, 3, **RECIPES["paper"], logit_learning_rate=3e-3, epochs=20)
    assert named.scores.tolist() == spelled.scores.tolist()
    same = {"recipe": "paper", "options": named.settings["options"]}
    assert named.settings == spelled.settings | same
