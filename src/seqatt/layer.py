"""Sequential Attention as a layer, for people with their own training loop."""

from __future__ import annotations

import weakref
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer
from torch.optim.optimizer import register_optimizer_step_post_hook

from seqatt.training.masks import MASKS, additive_mask, make_mask
from seqatt.training.schedule import one_pass
from seqatt.validation import choice, integer, number

_stepped: weakref.WeakSet[Optimizer] = weakref.WeakSet()


def _remember(optimizer: Optimizer, args: Any, kwargs: Any) -> None:
    """Which optimizers are at work: whoever trains the logits must forget them when they are reset."""
    _stepped.add(optimizer)


register_optimizer_step_post_hook(_remember)


class SequentialAttention(nn.Module):
    """Scale inputs by attention weights and choose ``k`` of them while your model trains.

    Put it in front of your model, train as you always do, and call ``advance()`` once a step::

        attention = SequentialAttention(num_features=30, k=5, total_steps=1000)
        for x, y in batches:
            loss = criterion(model(attention(x)), y)
            optimizer.zero_grad(); loss.backward(); optimizer.step()
            attention.advance()
        attention.selected   # five features, in the order chosen

    The optimizer must train ``attention.parameters()`` too; when the logits start afresh, so does what
    it remembers of them. In ``eval()`` the weights are 1 for selected features and 0 for all others.

    Parameters
    ----------
    num_features : features; the last dimension of the input, unless ``groups`` says otherwise.
    k, total_steps : how many to choose, within how many calls of ``advance``.
    warmup, features_per_phase, mask, temperature : as in ``seqatt.select``; the unnormalised masks
        "l1" and "l2" live by weight decay, which here is your optimizer's to give.
    groups : for each input column the number of its feature, for features of several columns.
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
                "every phase needs one at least"
            )
        self.k = k
        self._mask = make_mask(mask, temperature)
        self._ends: dict[int, int] = {}
        done = 0
        for phase in schedule:
            done += phase.steps
            self._ends[done] = phase.take
        self._warm = schedule[0].steps if schedule[0].take == 0 else 0
        self.logits = nn.Parameter(torch.full((num_features,), self._mask.initial))
        self.register_buffer("selected_mask", torch.zeros(num_features, dtype=torch.bool))
        self.register_buffer("order", torch.full((k,), -1, dtype=torch.long))
        self.register_buffer("steps_done", torch.zeros((), dtype=torch.long))
        feature_of = None if groups is None else torch.as_tensor(groups, dtype=torch.long)
        if feature_of is not None and sorted(set(feature_of.tolist())) != list(range(num_features)):
            raise ValueError(f"groups: must name every feature from 0 to {num_features - 1}")
        self.register_buffer("feature_of", feature_of, persistent=False)
        self._find_place()

    def forward(self, x: Tensor) -> Tensor:
        weights = self.weights
        if self.feature_of is not None:
            weights = weights[self.feature_of]
        return x * (weights.to(x.dtype) if x.is_floating_point() else weights)

    @property
    def weights(self) -> Tensor:
        """The weight of each feature right now."""
        selected_mask = self.selected_mask.to(self.logits.dtype)
        if not self.training:
            return selected_mask
        # Where the logits say nothing they stay in the graph, with a gradient of zero, because
        # DistributedDataParallel wants one for every parameter.
        if self._warming:
            return torch.ones_like(selected_mask) + 0 * self.logits
        if self._finished:
            return selected_mask + 0 * self.logits
        shares: Tensor = self._mask.weights(self.logits, additive_mask(self.selected_mask, self.logits.dtype))
        return selected_mask + shares

    @property
    def selected(self) -> list[int]:
        """Features chosen so far, in order."""
        return [i for i in self.order.tolist() if i >= 0]

    @property
    def finished(self) -> bool:
        """Whether all ``k`` are chosen; from then on training sees the selected features alone."""
        return self._finished

    @torch.no_grad()
    def advance(self) -> None:
        """Count one training step; at the end of a phase choose, and start the logits afresh."""
        self._cursor += 1
        self.steps_done += 1
        take = self._ends.get(self._cursor)
        if take is None:
            return
        self._forget()
        if not take:
            self._find_place()
            return
        scores = self._mask.score(self.logits.float()).masked_fill(self.selected_mask, -torch.inf)
        best = torch.sort(scores, descending=True, stable=True).indices[:take]
        chosen = len(self.selected)
        self.order[chosen : chosen + take] = best
        self.selected_mask[best] = True
        self.logits.fill_(self._mask.initial)
        self._find_place()

    def _forget(self) -> None:
        for optimizer in list(_stepped):
            if any(p is self.logits for group in optimizer.param_groups for p in group["params"]):
                optimizer.state.pop(self.logits, None)

    def _load_from_state_dict(self, *args: Any, **kwargs: Any) -> None:
        super()._load_from_state_dict(*args, **kwargs)
        self._find_place()

    def _find_place(self) -> None:
        """What forward depends on, as plain flags that change once: torch.compile stays compiled."""
        self._cursor = int(self.steps_done)
        self._warming = self._cursor < self._warm
        self._finished = len(self.selected) == self.k

    def extra_repr(self) -> str:
        return f"num_features={len(self.logits)}, k={self.k}, selected={len(self.selected)}"
