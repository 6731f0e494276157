"""Callbacks for the trainers of other libraries, each in a module that needs that library.

Here is what they all do: find the layer, count its steps, and log what it selects.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Sequence

from torch import nn

from seqatt.layer import SequentialAttention

logger = logging.getLogger("seqatt")


def find_attention(model: nn.Module) -> SequentialAttention:
    """The one layer ``SequentialAttention`` of a model."""
    found = [module for module in model.modules() if isinstance(module, SequentialAttention)]
    if len(found) != 1:
        raise ValueError(
            f"model: {type(model).__name__} has {len(found)} layers SequentialAttention, and the callback needs one; "
            "put it behind the input or the embeddings, and call advance() yourself where there are several"
        )
    return found[0]


def start(attention: SequentialAttention, steps: float) -> None:
    """Give a layer without ``total_steps`` those of the trainer."""
    if attention.total_steps is not None:
        return
    if not (math.isfinite(steps) and steps > 0):
        raise ValueError(
            "total_steps: the trainer does not know how many steps it makes; pass total_steps to SequentialAttention"
        )
    attention.set_total_steps(int(steps))


def advance(attention: SequentialAttention, feature_names: Sequence[str] | None) -> None:
    """Count one optimizer step, and log the features that are selected after it at level INFO."""
    before = len(attention.selected)
    attention.advance()
    for feature in attention.selected[before:]:
        name = feature if feature_names is None else feature_names[feature]
        logger.info("selected feature %s after step %d", name, int(attention.steps_done))
