"""The reducer: averages gradients and statistics over ranks, so that every rank takes the same step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch import Tensor


class Reducer:
    """The reducer of a single process, which changes nothing; ``distributed.reducer`` has that of several ranks.

    ``total`` is the number of rows of the current batch over all ranks; ``FileStream.advance`` sets it with each batch.
    """

    ranks = 1
    total = 0

    def average(self, means: Sequence[Tensor], rows: int) -> None:
        """Turn means over the ``rows`` rows of this rank into means over all rows of the batch, in place."""

    def average_equally(self, values: Sequence[Tensor]) -> None:
        """Turn values of this rank into the plain mean over ranks, in place."""

    def merge_embedding_gradients(self, embeddings: Any, rows: int) -> None:
        """Turn the gradients of this rank's ``Embeddings`` into those of all ranks."""
