"""Adam's steps without a gradient can be taken at once, and are only where they are all that is left."""

from __future__ import annotations

import copy

import pytest
import torch

from seqatt.training.backend.adam import Adam


def trained(steps: int, *, shrinking: float = 1.0) -> tuple[Adam, list[torch.Tensor]]:
    """Adam after some steps, whose gradients get smaller by a factor per step, and its last gradients."""
    generator = torch.Generator().manual_seed(0)
    shapes = (1, 5, 40), (1, 5)
    adam = Adam([torch.randn(shape, generator=generator) for shape in shapes], torch.tensor(3e-3))
    directions = [torch.randn(shape, generator=generator) for shape in shapes]
    grads: list[torch.Tensor] = []
    for step in range(steps):
        grads = [shrinking**step * direction for direction in directions]
        adam.step(grads)
    return adam, grads


@pytest.mark.parametrize(("before", "steps"), [(1, 1), (5, 40), (100, 99)])
def test_steps_without_gradients_are_as_many_steps_with_gradients_of_zero(before, steps):
    at_once, grads = trained(before)
    one_by_one = copy.deepcopy(at_once)
    at_once.step_without_gradients(steps)
    for _ in range(steps):
        one_by_one.step([torch.zeros_like(grad) for grad in grads])
    assert at_once.steps == one_by_one.steps == before + steps
    for kind in ("params", "exp_avg", "exp_avg_sq"):
        for own, other in zip(getattr(at_once, kind), getattr(one_by_one, kind), strict=True):
            torch.testing.assert_close(own, other, rtol=1e-4, atol=1e-6)


def test_a_parameter_that_never_had_a_gradient_does_not_move():
    adam = Adam([torch.ones(1, 3)], torch.tensor(3e-3))
    adam.step([torch.zeros(1, 3)])
    adam.step_without_gradients(50)
    assert torch.equal(adam.params[0], torch.ones(1, 3))


def test_converged_is_only_what_has_neither_a_gradient_nor_momentum():
    assert not Adam.has_converged(*trained(100))
    adam, grads = trained(3)
    nothing = [torch.zeros_like(grad) for grad in grads]
    adam.step(nothing)
    assert not adam.has_converged(nothing)  # momentum would still move it
    for _ in range(40):
        adam.step(nothing)
    assert adam.has_converged(nothing)
    assert not adam.has_converged(grads)
    assert Adam.has_converged(*trained(60, shrinking=0.8))


def test_one_parameter_of_many_with_a_large_gradient_is_not_converged():
    """Its gradients are small beside those of the others, but not beside its own."""
    adam = Adam([torch.zeros(1, 100)], torch.tensor(3e-3))
    adam.step([torch.cat([torch.full((1, 99), 1e3), torch.full((1, 1), 1e-3)], 1)])
    for _ in range(60):
        grads = [torch.cat([torch.zeros(1, 99), torch.full((1, 1), 1e-3)], 1)]
        adam.step(grads)
    assert not adam.has_converged(grads)
