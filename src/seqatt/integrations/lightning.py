"""A callback for Lightning: ``pip install lightning`` or ``pip install pytorch-lightning``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from seqatt.integrations import advance, find_attention, start

try:
    from lightning.pytorch import Callback
except ImportError:
    from pytorch_lightning import Callback

__all__ = ["LightningCallback"]


class LightningCallback(Callback):  # type: ignore[misc]
    """Advance the ``SequentialAttention`` of a LightningModule after every optimizer step.

    A layer without ``total_steps`` gets ``trainer.estimated_stepping_batches``. The number of features selected so
    far is logged as ``selected_features``, and each of them on the logger "seqatt", by its name if
    ``feature_names`` are given.
    """

    def __init__(self, feature_names: Sequence[str] | None = None) -> None:
        self.feature_names = feature_names

    def on_fit_start(self, trainer: Any, pl_module: Any) -> None:
        self._attention = find_attention(pl_module)
        start(self._attention, trainer.estimated_stepping_batches)

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        self._step = trainer.global_step

    def on_train_batch_end(self, trainer: Any, pl_module: Any, *args: Any) -> None:
        if trainer.global_step == self._step:  # gradients are accumulated
            return
        self._step = trainer.global_step
        advance(self._attention, self.feature_names)
        pl_module.log("selected_features", float(len(self._attention.selected)))
