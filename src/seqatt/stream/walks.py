"""WALKS: what makes each method that trains over files itself, a gate and a schedule."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch

from seqatt.neural.gates.attention import Attention
from seqatt.neural.gates.gate import Gate
from seqatt.neural.masks import Softmax
from seqatt.neural.owner import Owner
from seqatt.neural.schedule import Schedule, at_once, one_by_one, one_pass
from seqatt.stream.exchange import Means
from seqatt.stream.gates import EmbeddedLasso, EvenAttention, SteadyBatchAttention
from seqatt.stream.member import MakeGate
from seqatt.stream.network import Network
from seqatt.stream.options import AttentionOnFiles, BatchAttentionOnFiles, PenaltyOnFiles
from seqatt.stream.source import Stream

GRAIN = 1 << 20  # phases are shares of the rows, as parts of this
EVEN_RATE = 3e-4  # the logits' own pace where they share a scale, whatever the network's
GATE_RATE = 3e-3  # and where each has its own


class Method(NamedTuple):
    """``schedule`` is that of k features and the options."""

    title: str
    make_gate: MakeGate
    schedule: Callable[[int, Any], Schedule]


def _plan(k: int, options: AttentionOnFiles) -> Schedule:
    """The paper's one pass: a warm-up on all features, then as many phases as choices."""
    if options.features_per_phase > k:
        raise ValueError(f"features_per_phase: {options.features_per_phase} is more than k={k}")
    return one_pass(k, GRAIN, features_per_phase=options.features_per_phase, warmup=options.warmup)


def _attention(
    stream: Stream, network: Network, options: AttentionOnFiles, draws: torch.Generator, means: Means
) -> Gate:
    mask, device = options.make_mask(), network.owner.device
    if isinstance(mask, Softmax):  # to which only differences of logits matter
        return EvenAttention(stream.features, mask, EVEN_RATE, device)
    return Attention(1, stream.features, mask, GATE_RATE, device)


def _lasso(
    stream: Stream, network: Network, options: PenaltyOnFiles, draws: torch.Generator, means: Means
) -> Gate:
    owner = Owner(network.owner, stream.features)
    return EmbeddedLasso(network, owner, options.penalty, options.learning_rate, means)


def _batch_attention(
    stream: Stream, network: Network, options: BatchAttentionOnFiles, draws: torch.Generator, means: Means
) -> Gate:
    owner = Owner(network.owner, stream.features)
    return SteadyBatchAttention(
        means, owner, options.attention_width, options.learning_rate, [draws], network.owner.device
    )


WALKS = {
    "sequential_attention": Method("Sequential Attention", _attention, _plan),
    "sequential_lasso": Method("Sequential LASSO", _lasso, lambda k, options: one_by_one(k, GRAIN)),
    "group_lasso": Method("Group LASSO", _lasso, lambda k, options: at_once(k, GRAIN)),
    "batch_attention": Method("Batch-wise attention", _batch_attention, lambda k, options: at_once(k, GRAIN)),
}
