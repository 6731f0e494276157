"""``STREAMED_METHODS``: the gate and the schedule of each method that trains over files."""

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
from seqatt.training.masks import SoftmaxMask, make_mask
from seqatt.training.schedule import Schedule, at_once, one_by_one, one_pass

SCHEDULE_UNITS = 1 << 20  # a phase's share of the rows is its steps divided by this
SHARED_SCALE_LR = 3e-4  # learning rate of logits that share one scale, whatever that of the network
LOGIT_LR = 3e-3  # learning rate of logits that each have their own scale


class StreamedMethod(NamedTuple):
    """A method that trains over files; ``schedule`` is a function of k and the options."""

    title: str
    make_gate: MakeGate
    schedule: Callable[[int, Any], Schedule]


def _attention_schedule(k: int, options: StreamAttentionOptions) -> Schedule:
    """The paper's one pass: a warm-up on all features, then one phase per selection."""
    if options.features_per_phase > k:
        raise ValueError(
            f"features_per_phase: {options.features_per_phase} is more than k={k}; use at most {k}"
        )
    return one_pass(k, SCHEDULE_UNITS, features_per_phase=options.features_per_phase, warmup=options.warmup)


def _attention(
    data: FileData,
    network: EmbeddingMLP,
    options: StreamAttentionOptions,
    generator: torch.Generator,
    means: RankMeans,
) -> Gate:
    mask, device = make_mask(options.mask, options.temperature), network.feature_of.device
    if isinstance(mask, SoftmaxMask):  # depends on differences of logits only
        return SharedScaleAttention(data.features, mask, SHARED_SCALE_LR, device)
    return AttentionGate(1, data.features, mask, LOGIT_LR, device)


def _lasso(
    data: FileData,
    network: EmbeddingMLP,
    options: StreamPenaltyOptions,
    generator: torch.Generator,
    means: RankMeans,
) -> Gate:
    columns = FeatureColumns(network.feature_of, data.features)
    return EmbeddingGroupLasso(network, columns, options.penalty, options.learning_rate, means)


def _batch_attention(
    data: FileData,
    network: EmbeddingMLP,
    options: StreamBatchAttentionOptions,
    generator: torch.Generator,
    means: RankMeans,
) -> Gate:
    columns = FeatureColumns(network.feature_of, data.features)
    return StreamedBatchAttention(
        means,
        columns,
        options.attention_width,
        options.learning_rate,
        [generator],
        network.feature_of.device,
    )


STREAMED_METHODS = {
    "sequential_attention": StreamedMethod("Sequential Attention", _attention, _attention_schedule),
    "sequential_lasso": StreamedMethod(
        "Sequential LASSO", _lasso, lambda k, options: one_by_one(k, SCHEDULE_UNITS)
    ),
    "group_lasso": StreamedMethod("Group LASSO", _lasso, lambda k, options: at_once(k, SCHEDULE_UNITS)),
    "batch_attention": StreamedMethod(
        "Batch-wise attention", _batch_attention, lambda k, options: at_once(k, SCHEDULE_UNITS)
    ),
}
