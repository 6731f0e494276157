"""A user's own module that embeds categories itself: it is called with numbers, codes and weights."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import Tensor

from seqatt.training.loaders.batch import Batch
from seqatt.training.models.module_checks import as_matrix
from seqatt.training.models.torch_module import TorchModule

LOWER_WEIGHT = 0.3  # which must change the outputs by more than this share of the largest one
UNCHANGED = 1e-4
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

    def is_scale_invariant(self, batch: Batch) -> bool:
        return False  # codes cannot be blended

    def dry_run(self, batch: Batch) -> Tensor:
        """As for columns; also refuses a module that has no embedding for a code or does not use all weights."""
        batch = self.embed(batch)
        if len(self._counts):
            batch.x[0, 0, -len(self._counts) :] = (self._counts - 1).to(batch.x.dtype)  # the largest codes
        out = super().dry_run(batch)
        for category in self._unweighted(batch.x[0]):
            raise ValueError(
                f"model: its outputs do not depend on weights[{category}], the weight of category {category}; multiply "
                "the embedding of category j by weights[j], behind any normalisation"
            )
        return out

    @torch.no_grad()
    def _unweighted(self, x: Tensor) -> Iterator[int]:
        """The categories whose weight changes no output, of a copy with other parameters: some may start at zero."""
        probe, generator = copy.deepcopy(self.module).eval(), torch.Generator().manual_seed(0)
        for parameter in filter(torch.is_floating_point, probe.parameters()):
            parameter.add_(0.1 * torch.randn(parameter.shape, generator=generator).to(parameter))
        weights = torch.ones_like(x[0])
        first = x.shape[1] - len(self._counts)
        with self._own_rng(advance=False):
            before = as_matrix(probe(*self.inputs(x, weights)))
            for category in range(len(self._counts)):
                weights[first + category] = LOWER_WEIGHT
                after = as_matrix(probe(*self.inputs(x, weights)))
                weights[first + category] = 1.0
                if (after - before).abs().max() <= UNCHANGED * before.abs().max():
                    yield category

    def _describe_inputs(self, x: Tensor) -> str:
        values = self._counts.tolist()
        return (
            f"{x.shape[2] - len(values)} numbers, codes of categories with {values} values and their weights"
        )
