import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from seqatt.training.gates.masks import MASKS, SoftmaxMask, additive_mask

ALL = [*MASKS.values(), SoftmaxMask(temperature=0.3)]
seeds = st.integers(0, 10_000)
sizes = st.integers(2, 40)


def draw(seed: int, size: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Logits, and which features are excluded: some of them, never all."""
    generator = torch.Generator().manual_seed(seed)
    logits = torch.randn(2, size, generator=generator, dtype=torch.float64)
    excluded = torch.rand(2, size, generator=generator) < 0.4
    excluded[:, seed % size] = False
    return logits, excluded


@pytest.mark.parametrize("mask", ALL, ids=repr)
@given(seed=seeds, size=sizes)
@settings(max_examples=30, deadline=None)
def test_weights_are_positive_and_zero_for_excluded_features(mask, seed, size):
    logits, excluded = draw(seed, size)
    weights = mask.weights(logits, additive_mask(excluded, logits.dtype))
    assert (weights >= 0).all()
    assert (weights[excluded] == 0).all()
    assert (weights[~excluded] > 0).all()


@pytest.mark.parametrize("mask", [m for m in ALL if m.normalised], ids=repr)
@given(seed=seeds, size=sizes)
@settings(max_examples=30, deadline=None)
def test_normalised_weights_sum_to_one(mask, seed, size):
    logits, excluded = draw(seed, size)
    torch.testing.assert_close(
        mask.weights(logits, additive_mask(excluded, logits.dtype)).sum(1), torch.ones(2).double()
    )


@pytest.mark.parametrize("mask", ALL, ids=repr)
@given(seed=seeds, size=sizes)
@settings(max_examples=30, deadline=None)
def test_backward_agrees_with_autograd(mask, seed, size):
    logits, excluded = draw(seed, size)
    logits.requires_grad_()
    weights = mask.weights(logits, additive_mask(excluded, logits.dtype))
    upstream = torch.randn(weights.shape, dtype=weights.dtype)
    (expected,) = torch.autograd.grad(weights, logits, upstream)
    with torch.no_grad():
        actual = mask.backward(upstream, weights, logits)
    torch.testing.assert_close(actual, expected)


def test_softmax_is_equation_1():
    logits = torch.tensor([[0.5, -1.0, 2.0, 0.0]])
    excluded = torch.tensor([[False, True, False, False]])
    exps = torch.exp(torch.tensor([0.5, 2.0, 0.0]))
    expected = exps / exps.sum()
    actual = SoftmaxMask().weights(logits, additive_mask(excluded, logits.dtype))[0]
    torch.testing.assert_close(actual[[0, 2, 3]], expected)


def test_scores_differ_where_weights_underflow_to_a_tie():
    logits = torch.tensor([[0.0, -200.0, -300.0]])
    weights = SoftmaxMask().weights(logits, torch.zeros(1, 3))
    assert weights[0, 1] == weights[0, 2] == 0
    scores = SoftmaxMask().score(logits)
    assert scores[0, 1] > scores[0, 2]
