"""Sequential Attention as a layer for a training loop of your own."""

from __future__ import annotations

import weakref
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer
from torch.optim.optimizer import register_optimizer_step_post_hook

from seqatt.training.gates.masks import MASKS, additive_mask, make_mask
from seqatt.training.schedule import one_pass
from seqatt.validation import choice, integer, number

# Optimizers that have made a step in this process. When logits are reset, so is their state in the optimizer.
_optimizers: weakref.WeakSet[Optimizer] = weakref.WeakSet()


def _add_optimizer(optimizer: Optimizer, args: Any, kwargs: Any) -> None:
    _optimizers.add(optimizer)


register_optimizer_step_post_hook(_add_optimizer)


class SequentialAttention(nn.Module):
    """Scale inputs by attention weights and select ``k`` features while your model trains.

    Put it in front of your model, train as usual, and call ``advance()`` once per step::

        attention = SequentialAttention(num_features=30, k=5, total_steps=1000)
        for x, y in batches:
            loss = criterion(model(attention(x)), y)
            optimizer.zero_grad(); loss.backward(); optimizer.step()
            attention.advance()
        attention.selected   # five features, in the order of selection

    The optimizer must train ``attention.parameters()`` too. Whenever the logits are reset, their state in the
    optimizer (momentum, second moments) is removed. In ``eval()`` the weights are 1 for selected features and 0 for
    all others.

    Parameters
    ----------
    num_features : int
        Number of features: the size of the input's last dimension, unless ``groups`` is given.
    k : int
        Number of features to select.
    total_steps : int
        Calls of ``advance`` until all k features are selected.
    warmup : float, default 0.1
        Share of the steps before the first phase, with all features at full weight.
    features_per_phase : int, default 1
        Features selected at the end of a phase.
    mask, temperature :
        As in ``seqatt.select``. The unnormalised masks "l1" and "l2" need weight decay on the logits, which your
        optimizer has to apply.
    groups : sequence of int, optional
        The feature of each input column, from 0 on, for features of several columns.
    """

    logits: nn.Parameter
    selected_mask: Tensor
    order: Tensor
    steps_done: Tensor
    feature_of: Tensor | None

    def __init__(
        self,
        num_features: int,
        k: int,
        total_steps: int,
        *,
        warmup: float = 0.1,
        features_per_phase: int = 1,
        mask: str = "softmax",
        temperature: float = 1.0,
        groups: Any = None,
    ) -> None:
        super().__init__()
        if not 1 <= k <= num_features:
            raise ValueError(f"k: must be from 1 to num_features={num_features}, got {k}")
        choice(MASKS)("mask", mask)
        number(above=0)("temperature", temperature)
        number(minimum=0, below=1)("warmup", warmup)
        integer(1)("features_per_phase", features_per_phase)
        if not 1 <= features_per_phase <= k:
            raise ValueError(f"features_per_phase: must be from 1 to k={k}, got {features_per_phase}")
        schedule = one_pass(k, total_steps, features_per_phase=features_per_phase, warmup=warmup)
        if min(phase.steps for phase in schedule) < 1:
            raise ValueError(
                f"total_steps: {total_steps} steps are too few for {len(schedule)} phases; "
                "every phase needs at least one"
            )
        self.k = k
        self._mask = make_mask(mask, temperature)
        self._selected_after: dict[int, int] = {}  # last step of a phase -> features selected there
        steps = 0
        for phase in schedule:
            steps += phase.steps
            self._selected_after[steps] = phase.take
        self._warmup_steps = schedule[0].steps if schedule[0].take == 0 else 0
        self.logits = nn.Parameter(torch.full((num_features,), self._mask.initial))
        self.register_buffer("selected_mask", torch.zeros(num_features, dtype=torch.bool))
        self.register_buffer("order", torch.full((k,), -1, dtype=torch.long))
        self.register_buffer("steps_done", torch.zeros((), dtype=torch.long))
        feature_of = None if groups is None else torch.as_tensor(groups, dtype=torch.long)
        if feature_of is not None and sorted(set(feature_of.tolist())) != list(range(num_features)):
            raise ValueError(f"groups: must contain every feature from 0 to {num_features - 1}")
        self.register_buffer("feature_of", feature_of, persistent=False)
        self._update_flags()

    def forward(self, x: Tensor) -> Tensor:
        weights = self.weights
        if self.feature_of is not None:
            weights = weights[self.feature_of]
        return x * (weights.to(x.dtype) if x.is_floating_point() else weights)

    @property
    def weights(self) -> Tensor:
        """The current weight of each feature, shape (num_features,)."""
        selected_mask = self.selected_mask.to(self.logits.dtype)
        if not self.training:
            return selected_mask
        # Where the weights do not depend on the logits, these stay in the graph with a gradient of zero, because
        # DistributedDataParallel needs a gradient for every parameter.
        if self._in_warmup:
            return torch.ones_like(selected_mask) + 0 * self.logits
        if self._finished:
            return selected_mask + 0 * self.logits
        soft: Tensor = self._mask.weights(self.logits, additive_mask(self.selected_mask, self.logits.dtype))
        return selected_mask + soft

    @property
    def selected(self) -> list[int]:
        """Features selected so far, in order."""
        return [i for i in self.order.tolist() if i >= 0]

    @property
    def finished(self) -> bool:
        """Whether all ``k`` features are selected; from then on all other features have weight 0."""
        return self._finished

    @torch.no_grad()
    def advance(self) -> None:
        """Count one training step; at the end of a phase, select features and reset the logits."""
        self._step += 1
        self.steps_done += 1
        count = self._selected_after.get(self._step)
        if count is None:
            return
        self._reset_optimizer_state()
        if not count:
            self._update_flags()
            return
        scores = self._mask.score(self.logits.float()).masked_fill(self.selected_mask, -torch.inf)
        best = torch.sort(scores, descending=True, stable=True).indices[:count]
        start = len(self.selected)
        self.order[start : start + count] = best
        self.selected_mask[best] = True
        self.logits.fill_(self._mask.initial)
        self._update_flags()

    def _reset_optimizer_state(self) -> None:
        """Remove what optimizers hold about the logits."""
        for optimizer in list(_optimizers):
            if any(p is self.logits for group in optimizer.param_groups for p in group["params"]):
                optimizer.state.pop(self.logits, None)

    def _load_from_state_dict(self, *args: Any, **kwargs: Any) -> None:
        super()._load_from_state_dict(*args, **kwargs)
        self._update_flags()

    def _update_flags(self) -> None:
        """Set the Python flags that ``forward`` branches on; each changes once, so torch.compile rarely recompiles."""
        self._step = int(self.steps_done)  # on the host, so that no step waits for the device
        self._in_warmup = self._step < self._warmup_steps
        self._finished = len(self.selected) == self.k

    def extra_repr(self) -> str:
        return f"num_features={len(self.logits)}, k={self.k}, selected={len(self.selected)}"
