"""WALKS: what makes each method that trains over files itself, a gate and a schedule."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch

from seqatt.data.files.file_data import FileData
from seqatt.streaming.allreduce import RankMeans
from seqatt.streaming.gates import EmbeddingGroupLasso, SharedScaleAttention, StreamedBatchAttention
from seqatt.streaming.member import MakeGate
from seqatt.streaming.network import EmbeddingMLP
from seqatt.streaming.options import StreamAttentionOptions, StreamBatchAttentionOptions, StreamPenaltyOptions
from seqatt.training.feature_columns import FeatureColumns
from seqatt.training.gates.attention import AttentionGate
from seqatt.training.gates.gate import Gate
from seqatt.training.masks import SoftmaxMask
from seqatt.training.schedule import Schedule, at_once, one_by_one, one_pass

GRAIN = 1 << 20  # phases are shares of the rows, as parts of this
EVEN_RATE = 3e-4  # the logits' own pace where they share a scale, whatever the network's
GATE_RATE = 3e-3  # and where each has its own


class StreamedMethod(NamedTuple):
    """``schedule`` is that of k features and the options."""

    title: str
    make_gate: MakeGate
    schedule: Callable[[int, Any], Schedule]


def _plan(k: int, options: StreamAttentionOptions) -> Schedule:
    """The paper's one pass: a warm-up on all features, then as many phases as choices."""
    if options.features_per_phase > k:
        raise ValueError(f"features_per_phase: {options.features_per_phase} is more than k={k}")
    return one_pass(k, GRAIN, features_per_phase=options.features_per_phase, warmup=options.warmup)


def _attention(
    stream: FileData,
    network: EmbeddingMLP,
    options: StreamAttentionOptions,
    draws: torch.Generator,
    means: RankMeans,
) -> Gate:
    mask, device = options.make_mask(), network.feature_of.device
    if isinstance(mask, SoftmaxMask):  # to which only differences of logits matter
        return SharedScaleAttention(stream.features, mask, EVEN_RATE, device)
    return AttentionGate(1, stream.features, mask, GATE_RATE, device)


def _lasso(
    stream: FileData,
    network: EmbeddingMLP,
    options: StreamPenaltyOptions,
    draws: torch.Generator,
    means: RankMeans,
) -> Gate:
    feature_of = FeatureColumns(network.feature_of, stream.features)
    return EmbeddingGroupLasso(network, feature_of, options.penalty, options.learning_rate, means)


def _batch_attention(
    stream: FileData,
    network: EmbeddingMLP,
    options: StreamBatchAttentionOptions,
    draws: torch.Generator,
    means: RankMeans,
) -> Gate:
    feature_of = FeatureColumns(network.feature_of, stream.features)
    return StreamedBatchAttention(
        means, feature_of, options.attention_width, options.learning_rate, [draws], network.feature_of.device
    )


STREAMED_METHODS = {
    "sequential_attention": StreamedMethod("Sequential Attention", _attention, _plan),
    "sequential_lasso": StreamedMethod("Sequential LASSO", _lasso, lambda k, options: one_by_one(k, GRAIN)),
    "group_lasso": StreamedMethod("Group LASSO", _lasso, lambda k, options: at_once(k, GRAIN)),
    "batch_attention": StreamedMethod(
        "Batch-wise attention", _batch_attention, lambda k, options: at_once(k, GRAIN)
    ),
}
