"""A user's own module that embeds categories itself: it is called with numbers, codes and weights."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from seqatt.training.loaders.batch import Batch
from seqatt.training.models.torch_module import TorchModule

NEEDS_COLUMNS = (
    "inputs: this method looks at columns, not at codes; leave inputs out, or use sequential_attention"
)


class RawModule(TorchModule):
    """Calls its module with the weighted numbers (B, n), the codes (B, m) and the weights (m,) of these.

    Codes cannot be multiplied by weights, so the module multiplies its embeddings by them. Everywhere else in seqatt
    the codes are the last m columns of ``x``, with one weight each.
    """

    def __init__(self, code_counts: Sequence[int], device: torch.device, *args: Any) -> None:
        self._counts = torch.tensor(code_counts, dtype=torch.long, device=device)
        super().__init__(*args)

    def embed(self, batch: Batch) -> Batch:
        if batch.codes is None:
            return batch
        return Batch(torch.cat([batch.x, batch.codes.to(batch.x.dtype)], -1), batch.y, batch.w)

    def inputs(self, x: Tensor, weights: Tensor) -> tuple[Tensor, ...]:
        numbers = x.shape[1] - len(self._counts)
        return x[:, :numbers] * weights[:numbers], x[:, numbers:].long(), weights[numbers:]

    def _columns(self, x: Tensor, weights: Tensor) -> Tensor:
        raise ValueError(NEEDS_COLUMNS)

    def is_scale_invariant(self, x: Tensor) -> bool:
        return False  # codes cannot be blended

    def dry_run(self, batch: Batch) -> Tensor:
        """As for columns; also refuses a module that has no embedding for a code or does not use the weights."""
        batch = self.embed(batch)
        if len(self._counts):
            batch.x[0, 0, -len(self._counts) :] = (self._counts - 1).to(batch.x.dtype)  # the largest codes
        out = super().dry_run(batch)
        leaf = torch.ones(batch.x.shape[2], device=batch.x.device)
        with self._evaluation_mode(), torch.enable_grad():
            numbers, codes, weights = self.inputs(batch.x[0], leaf)
            weights.requires_grad_()
            outputs = self.module(numbers, codes, weights)
            (used,) = (
                torch.autograd.grad(outputs.sum(), weights, allow_unused=True)
                if outputs.requires_grad
                else (None,)
            )
        if len(self._counts) and used is None:
            raise ValueError(
                "model: does not use its third argument, the weights of the codes; multiply the embedding of category "
                "j by weights[j]"
            )
        return out

    def _describe_inputs(self, x: Tensor) -> str:
        values = self._counts.tolist()
        return (
            f"{x.shape[2] - len(values)} numbers, codes of categories with {values} values and their weights"
        )
