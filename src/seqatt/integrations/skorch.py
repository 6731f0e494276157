"""A callback for skorch: ``pip install skorch``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from skorch.callbacks import Callback

from seqatt.integrations import advance, find_attention, start

__all__ = ["SkorchCallback"]


class SkorchCallback(Callback):  # type: ignore[misc]
    """Advance the ``SequentialAttention`` of a skorch net after every optimizer step.

    A layer without ``total_steps`` gets the batches of all epochs. The history has the number of features selected so
    far as ``selected_features``, and the logger "seqatt" each of them, by its name if ``feature_names`` are given.
    """

    def __init__(self, feature_names: Sequence[str] | None = None) -> None:
        self.feature_names = feature_names

    def on_train_begin(self, net: Any, X: Any = None, y: Any = None, **others: Any) -> None:
        self.attention_ = find_attention(net.module_)
        train, _ = net.get_split_datasets(X, y) if net.train_split else (net.get_dataset(X, y), None)
        start(self.attention_, net.max_epochs * len(net.get_iterator(train, training=True)))

    def on_batch_end(self, net: Any, training: bool = False, **others: Any) -> None:
        if training:
            advance(self.attention_, self.feature_names)

    def on_epoch_end(self, net: Any, **others: Any) -> None:
        net.history.record("selected_features", len(self.attention_.selected))
