"""EntryPrune (Zimmer, Okanovic and Hoefler 2024): features enter the network in turn and are judged by their entry."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from seqatt.algorithms.gated.gated_method import GateContext, register_gated
from seqatt.training.backend.matmul import PARALLEL_SIZE, matmul
from seqatt.training.feature_columns import FeatureColumns
from seqatt.training.gates.gate import Gate
from seqatt.training.models.model import Model
from seqatt.training.selection_state import FeatureState
from seqatt.training.state import Arrays

MIN_ROTATIONS = 20  # rotations of a training, at least; for that, rotations of a short training are shorter
MIN_CANDIDATES = 10  # or all other features, if fewer: a score is relative to the features in the network
NOT_ENTERED = -100.0  # score of a feature that was never in the network; scores are in standard deviations
OUTSIDE = 1000.0  # subtracted from the scores of features that are not kept, so that those kept are selected


class EntryPruneGate(Gate):
    """The network sees k kept features and some candidates, which are new at every rotation.

    Over the ``rotation_steps`` steps of a rotation, the gradients of the loss with respect to the first-layer weights
    are summed. The score of a candidate is the sum over hidden units of the absolute value of that sum, in standard
    deviations from the mean over all features in the network. A feature keeps the highest score of all its entries,
    and is not judged again while it is kept. Then the k features in the network with the highest scores are kept, the
    others leave, and as many candidates are drawn at random from all features that are not kept. They enter with
    first-layer weights of zero. Constant features never enter.
    """

    graph_capturable = False  # a rotation draws random numbers

    def __init__(
        self,
        model: Model,
        columns: FeatureColumns,
        k: int,
        candidate_share: float,
        rotation_steps: int,
        scale: Tensor,
        generators: Sequence[torch.Generator],
    ) -> None:
        """``candidate_share`` is a share of the features that are not kept. ``scale`` (d,) divides the scores."""
        layer = model.first_layer()
        self._model = model
        self._columns = columns
        self._k = k
        self._candidate_share = candidate_share
        self._count = 0
        self._rotation_steps = rotation_steps
        self._scale = scale
        self._generators = list(generators)
        self._gradients = torch.zeros_like(layer)
        model.first_layer_gradients = self._gradients
        self._ones = torch.ones(len(layer), 1, layer.shape[1], device=layer.device)
        shape = len(layer), columns.features
        self._entry_scores = torch.full(shape, NOT_ENTERED, device=layer.device)
        self._kept = torch.zeros(shape, device=layer.device)
        self.weights = torch.zeros(shape, device=layer.device)
        self._done = 0

    def is_thread_invariant(self) -> bool:
        return self.weights.numel() <= PARALLEL_SIZE

    def refresh(self, state: FeatureState) -> None:
        """Let the first features enter, unless training is resumed."""
        enterable = int((state.blocked[0] == 0).sum())  # all but constant features, in every model
        self._k = min(self._k, enterable)
        left = enterable - self._k
        self._count = min(left, max(MIN_CANDIDATES, int(np.ceil(left * self._candidate_share))))
        if not self.weights.any():
            self._enter(self._k + self._count, state)

    def update(self, grad: Tensor, state: FeatureState) -> None:
        self._done += 1
        if self._done % self._rotation_steps == 0:
            self._rotate(state)

    def _rotate(self, state: FeatureState) -> None:
        """Judge the candidates, keep the best features of the network, and let new candidates enter."""
        present = self.weights
        sizes = self._gradient_sizes()
        mean = (sizes * present).sum(1, keepdim=True) / present.sum(1, keepdim=True)
        variance = ((sizes - mean).square() * present).sum(1, keepdim=True) / present.sum(1, keepdim=True)
        scores = (sizes - mean) / variance.sqrt().clamp_min(torch.finfo(sizes.dtype).tiny)
        candidates = (present > 0) & (self._kept == 0)
        better = torch.maximum(self._entry_scores, scores)
        torch.where(candidates, better, self._entry_scores, out=self._entry_scores)
        inside = torch.where(present > 0, self._entry_scores, NOT_ENTERED - OUTSIDE) + state.blocked
        kept = inside.topk(self._k, dim=1).indices
        self._kept.zero_().scatter_(1, kept, 1.0)
        self._enter(self._count, state)
        self._model.scale_first_layer(self._columns.to_columns(self._kept))
        self._gradients.zero_()

    def _gradient_sizes(self) -> Tensor:
        """Norms of each feature's summed gradients, summed over the hidden units: (T, d).

        For a feature of one column, the norm is the absolute value.
        """
        models, width, columns = self._gradients.shape
        squares = self._columns.to_features(self._gradients.square().view(models * width, columns))
        norms = squares.view(models, width, -1).sqrt()
        sizes = torch.empty(models, 1, norms.shape[2], device=norms.device)
        return matmul(self._ones, norms, out=sizes)[:, 0] / self._scale

    def _enter(self, count: int, state: FeatureState) -> None:
        """Let ``count`` random features that are neither kept nor blocked enter beside those that are kept."""
        features = self.weights.shape[1]
        keys = torch.stack([torch.rand(features, generator=generator) for generator in self._generators])
        keys = keys.to(self.weights.device) - 2 * self._kept + state.blocked
        self.weights.copy_(self._kept).scatter_(1, keys.topk(count, dim=1).indices, 1.0)

    def scores(self) -> Tensor:
        return self._entry_scores - OUTSIDE * (1 - self._kept)

    def reset(self) -> None:
        return  # all k features are selected at once, at the end of the only phase

    def state_arrays(self) -> Arrays:
        return super().state_arrays() | {"done": np.array(self._done)}

    def load_arrays(self, arrays: Arrays) -> None:
        super().load_arrays(arrays)
        self._done = int(arrays["done"])


@register_gated("entry_prune")
def make_gate(context: GateContext) -> Gate:
    options, wide = context.options, context.columns.columns > context.rows
    rotation_steps = options.rotation_steps
    if rotation_steps is None:
        rotation_steps = max(1, min(5 if wide else 100, context.steps // MIN_ROTATIONS))
    return EntryPruneGate(
        context.model,
        context.columns,
        context.k,
        options.candidate_share or (0.5 if wide else 0.2),
        min(rotation_steps, context.steps),
        context.scale,
        context.generators,
    )
