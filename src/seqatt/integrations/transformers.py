"""A callback for the Trainer of Hugging Face transformers: ``pip install 'transformers[torch]'``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from transformers import TrainerCallback

from seqatt.integrations import advance, find_attention, start

__all__ = ["TransformersCallback"]


class TransformersCallback(TrainerCallback):  # type: ignore[misc]
    """Advance the ``SequentialAttention`` of a Trainer's model after every optimizer step.

    A layer without ``total_steps`` gets the trainer's ``max_steps``. The trainer's ``log_history`` has the number of
    features selected so far as ``selected_features``, and the logger "seqatt" each of them, by its name if
    ``feature_names`` are given.
    """

    def __init__(self, feature_names: Sequence[str] | None = None) -> None:
        self.feature_names = feature_names

    def on_train_begin(self, args: Any, state: Any, control: Any, model: Any = None, **others: Any) -> None:
        self._attention = find_attention(model)
        start(self._attention, state.max_steps)

    def on_step_end(self, args: Any, state: Any, control: Any, **others: Any) -> None:
        advance(self._attention, self.feature_names)

    def on_log(self, args: Any, state: Any, control: Any, **others: Any) -> None:
        state.log_history[-1]["selected_features"] = len(self._attention.selected)
