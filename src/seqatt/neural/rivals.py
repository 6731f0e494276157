"""RIVALS: what makes each of them itself."""

from __future__ import annotations

from functools import partial

from seqatt.neural.gates.batch_attention import BatchAttention
from seqatt.neural.gates.cancel_out import CancelOut
from seqatt.neural.gates.first_layer import FirstLayer
from seqatt.neural.gates.gate import Gate
from seqatt.neural.gates.lasso import Lasso
from seqatt.neural.gates.pursuit import Pursuit
from seqatt.neural.gates.sensitivity import Sensitivity
from seqatt.neural.gates.stochastic import Stochastic
from seqatt.neural.rival import Rival, Setup
from seqatt.neural.schedule import one_by_one


def _lasso(its: Setup) -> Gate:
    return Lasso(its.body, its.owner, its.penalty, its.scale, its.options.learning_rate)


def _pursuit(its: Setup) -> Gate:
    return Pursuit(its.body, its.owner, its.scale)


def _batch_attention(its: Setup) -> Gate:
    options = its.options
    return BatchAttention(
        its.owner, options.attention_width, options.learning_rate, its.generators, its.penalty.device
    )


def _stochastic(its: Setup) -> Gate:
    options = its.options
    return Stochastic(its.owner.features, its.penalty, options.sigma, options.learning_rate, its.generators)


def _first_layer(its: Setup) -> Gate:
    return FirstLayer(its.body, its.owner)


def _cancel_out(its: Setup) -> Gate:
    return CancelOut(its.owner.features, its.penalty, its.options.learning_rate)


def _sensitivity(its: Setup) -> Gate:
    return Sensitivity(its.body, its.owner, its.penalty)


RIVALS = {
    "sequential_lasso": Rival(
        "Sequential LASSO", _lasso, one_by_one, strengths=lambda k: (0.25, 0.5, 1.0, 2.0)
    ),
    "group_lasso": Rival("Group LASSO", _lasso, strengths=lambda k: (0.25, 0.5, 1.0, 2.0)),
    "omp": Rival("OMP", _pursuit, partial(one_by_one, sees="kept")),
    "batch_attention": Rival("Batch-wise attention", _batch_attention, decays=True),
    "stochastic_gates": Rival(
        "Stochastic gates", _stochastic, strengths=lambda k: tuple(s / k for s in (0.1, 0.3, 1.0, 3.0))
    ),
    "first_layer": Rival("First-layer weights", _first_layer, decays=True),
    "cancel_out": Rival(
        "CancelOut",
        _cancel_out,
        strengths=lambda k: tuple(s / k for s in (0.01, 0.03, 0.1, 0.3)),
    ),
    "deep_lasso": Rival("Deep Lasso", _sensitivity, strengths=lambda k: (0.01, 0.03, 0.1, 0.3)),
}
