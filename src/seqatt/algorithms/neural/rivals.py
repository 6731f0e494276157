"""RIVALS: what makes each of them itself."""

from __future__ import annotations

from functools import partial

from seqatt.algorithms.neural.batch_attention import BatchAttentionGate
from seqatt.algorithms.neural.cancel_out import CancelOutGate
from seqatt.algorithms.neural.deep_lasso import DeepLassoGate
from seqatt.algorithms.neural.first_layer import FirstLayerGate
from seqatt.algorithms.neural.gated_method import GateContext, GatedMethod
from seqatt.algorithms.neural.group_lasso import GroupLassoGate
from seqatt.algorithms.neural.omp import OMPGate
from seqatt.algorithms.neural.stochastic_gates import StochasticGate
from seqatt.training.gates.gate import Gate
from seqatt.training.schedule import one_by_one


def _lasso(its: GateContext) -> Gate:
    return GroupLassoGate(its.model, its.feature_of, its.penalty, its.scale, its.options.learning_rate)


def _pursuit(its: GateContext) -> Gate:
    return OMPGate(its.model, its.feature_of, its.scale)


def _batch_attention(its: GateContext) -> Gate:
    options = its.options
    return BatchAttentionGate(
        its.feature_of, options.attention_width, options.learning_rate, its.generators, its.penalty.device
    )


def _stochastic(its: GateContext) -> Gate:
    options = its.options
    return StochasticGate(
        its.feature_of.features, its.penalty, options.sigma, options.learning_rate, its.generators
    )


def _first_layer(its: GateContext) -> Gate:
    return FirstLayerGate(its.model, its.feature_of)


def _cancel_out(its: GateContext) -> Gate:
    return CancelOutGate(its.feature_of.features, its.penalty, its.options.learning_rate)


def _sensitivity(its: GateContext) -> Gate:
    return DeepLassoGate(its.model, its.feature_of, its.penalty)


RIVALS = {
    "sequential_lasso": GatedMethod(
        "Sequential LASSO", _lasso, one_by_one, strengths=lambda k: (0.25, 0.5, 1.0, 2.0)
    ),
    "group_lasso": GatedMethod("Group LASSO", _lasso, strengths=lambda k: (0.25, 0.5, 1.0, 2.0)),
    "omp": GatedMethod("OMP", _pursuit, partial(one_by_one, sees="selected")),
    "batch_attention": GatedMethod("Batch-wise attention", _batch_attention, decays=True),
    "stochastic_gates": GatedMethod(
        "Stochastic gates", _stochastic, strengths=lambda k: tuple(s / k for s in (0.1, 0.3, 1.0, 3.0))
    ),
    "first_layer": GatedMethod("First-layer weights", _first_layer, decays=True),
    "cancel_out": GatedMethod(
        "CancelOut",
        _cancel_out,
        strengths=lambda k: tuple(s / k for s in (0.01, 0.03, 0.1, 0.3)),
    ),
    "deep_lasso": GatedMethod("Deep Lasso", _sensitivity, strengths=lambda k: (0.01, 0.03, 0.1, 0.3)),
}
