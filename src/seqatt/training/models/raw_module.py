"""A user's own module that embeds categories itself: it is called with numbers, codes and weights."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from seqatt.training.loaders.batch import Batch
from seqatt.training.models.module_checks import as_matrix
from seqatt.training.models.torch_module import TorchModule

LOWER_WEIGHT = 0.3  # which must change the outputs by more than this share of the largest one
UNCHANGED = 2e-3
PROBES, NOISE = 8, (0.1, 1.0)  # copies with other parameters, and the scale of what is added to these
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
        unused = self._unweighted(batch.x[0])
        if unused and len(unused) == len(self._counts):
            raise ValueError(
                "model: its outputs do not depend on its third argument, the weights of the codes; multiply the "
                "embedding of category j by weights[j], behind any normalisation"
            )
        if unused:
            warnings.warn(
                f"model: its outputs do not seem to depend on weights[{unused[0]}], the weight of category "
                f"{unused[0]}; multiply the embedding of category j by weights[j], behind any normalisation",
                stacklevel=2,
            )
        return out

    @torch.no_grad()
    def _unweighted(self, x: Tensor) -> list[int]:
        """The categories whose weight changes no output of any copy with other parameters: some may start at zero."""
        generator, first = torch.Generator().manual_seed(0), x.shape[1] - len(self._counts)
        codes = [torch.randint(int(count), (len(x), 1), generator=generator) for count in self._counts]
        x = torch.cat([x[:, :first], *(code.to(x) for code in codes)], 1)
        unused = list(range(len(codes)))
        for probe_number in range(PROBES):
            probe, weights = copy.deepcopy(self.module).eval(), torch.ones_like(x[0])
            for parameter in filter(torch.is_floating_point, probe.parameters()):
                noise = torch.randn(parameter.shape, generator=generator).to(parameter)
                parameter.add_(noise * NOISE[probe_number % len(NOISE)])
            try:
                with self._own_rng(advance=False):
                    before = as_matrix(probe(*self.inputs(x, weights)))
                    for category in list(unused):
                        weights[first + category] = LOWER_WEIGHT
                        after = as_matrix(probe(*self.inputs(x, weights)))
                        weights[first + category] = 1.0
                        if not (after - before).abs().max() <= UNCHANGED * before.abs().max():
                            unused.remove(category)
            except Exception:  # a model that needs parameters of some kind
                return []
        return unused

    def _describe_inputs(self, x: Tensor) -> str:
        values = self._counts.tolist()
        return (
            f"{x.shape[2] - len(values)} numbers, codes of categories with {values} values and their weights"
        )
