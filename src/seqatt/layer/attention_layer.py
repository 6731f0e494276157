"""Sequential Attention as a layer for a training loop of your own."""

from __future__ import annotations

import warnings
from typing import Any

import torch
from torch import Tensor, nn

from seqatt.layer import checks
from seqatt.layer.optimizers import optimizers_of, reset_state, watch_steps
from seqatt.layer.phases import check_planned, incompatible_schedule, plan_phases, still_warming_up
from seqatt.training.gates.masks import MASKS, additive_mask, make_mask
from seqatt.validation import choice


class SequentialAttention(nn.Module):
    """Scale inputs by attention weights and select ``k`` features while your model trains.

    Put it in front of your model, train as usual, and call ``advance()`` once per step::

        attention = SequentialAttention(num_features=30, k=5, total_steps=1000)
        optimizer = torch.optim.Adam(
            [{"params": model.parameters()}, {"params": attention.parameters(), "lr": 0.05}], lr=1e-3
        )
        for x, y in batches:
            loss = criterion(model(attention(x)), y)
            optimizer.zero_grad(); loss.backward(); optimizer.step()
            attention.advance()
        attention.selected   # five features, in the order of selection

    The optimizer must train ``attention.parameters()`` too; a learning rate of 0.05 suits Adam and the softmax mask.
    Whenever the logits are reset, their state in the optimizer (momentum, second moments) is removed.

    In ``eval()`` every feature has weight 1 before the first selection. From then on selected features have weight 1
    and all others 0, so the outputs are those of a model that sees only what is selected so far.

    A ``state_dict`` holds everything needed to continue. It is refused by a layer that selects at other steps
    (``total_steps``, ``warmup`` or ``features_per_phase`` differ) or by another ``mask`` or ``temperature``, unless all
    ``k`` features are selected in it or no step was made; and always by one with other ``groups`` or ``forbid``.

    Parameters
    ----------
    num_features : int
        Number of features: the size of the input's dimension ``dim``, unless ``groups`` is given.
    k : int
        Number of features to select.
    total_steps : int, optional
        Calls of ``advance`` until all k features are selected. Left out, ``set_total_steps`` sets it before training,
        as the callbacks of ``seqatt.integrations`` do.
    warmup : float, default 0.1
        Share of the steps before the first phase, with all features at full weight.
    features_per_phase : int, default 1
        Features selected at the end of a phase.
    mask, temperature :
        As in ``seqatt.select``. The unnormalised masks "l1" and "l2" need weight decay on the logits, which your
        optimizer has to apply.
    groups : sequence of int, optional
        The feature of each input column, from 0 on, for features of several columns.
    dim : int, optional
        The input's dimension that holds the features: 1 for ``(batch, fields, embedding)``, -1 for
        ``(batch, time, features)``. Inputs ``(batch, features)`` need none.
    blend_rows : bool, optional
        How a weight w below 1 reduces a feature: False scales it (``w * x``); True mixes it with another row of the
        batch (``w * x + (1 - w) * x_other``), which a normalisation behind the layer cannot undo. By default the
        gradient of the first step decides: True, with a warning, if scaling the inputs does not change the loss, as
        before a batch norm. Compiled code cannot be examined; name it there.
    keep, forbid : sequences of int, optional
        Features that are selected from the start, which count towards k, and features that have weight 0 throughout.
    """

    logits: nn.Parameter
    selected_mask: Tensor
    order: Tensor
    steps_done: Tensor
    schedule: Tensor
    blending: Tensor
    last_scores: Tensor
    feature_of: Tensor | None
    allowed: Tensor
    mask_settings: Tensor

    def __init__(
        self,
        num_features: int,
        k: int,
        total_steps: int | None = None,
        *,
        warmup: float = 0.1,
        features_per_phase: int = 1,
        mask: str = "softmax",
        temperature: float = 1.0,
        groups: Any = None,
        dim: int | None = None,
        blend_rows: bool | None = None,
        keep: Any = (),
        forbid: Any = (),
    ) -> None:
        super().__init__()
        checks.check_arguments(num_features, k, warmup, temperature, blend_rows, dim)
        kept, forbidden = checks.check_constraints(keep, forbid, k, num_features, features_per_phase)
        choice(MASKS)("mask", mask)
        self.k, self.features_per_phase, self.warmup = k, features_per_phase, warmup
        self.dim, self.blend_rows = dim, blend_rows
        added = k - len(kept)
        self._mask = make_mask(mask, temperature)
        self.logits = nn.Parameter(torch.full((num_features,), self._mask.initial))
        self.register_buffer("selected_mask", torch.zeros(num_features, dtype=torch.bool))
        self.register_buffer("order", torch.tensor(kept + added * [-1]))
        self.register_buffer("allowed", torch.ones(num_features))  # 0: forbidden
        self.register_buffer("mask_settings", torch.tensor([float([*MASKS].index(mask)), temperature]))
        self.selected_mask[kept], self.allowed[forbidden], self._kept = True, 0.0, len(kept)
        self.register_buffer("steps_done", torch.zeros((), dtype=torch.long))
        self.register_buffer("schedule", torch.zeros(0, 2, dtype=torch.long))  # rows of ``plan_phases``
        self.register_buffer("blending", torch.tensor(-1))  # blend_rows, as saved: -1 for None
        self.register_buffer("last_scores", torch.zeros(num_features))  # at the end of the last phase
        self.register_buffer("feature_of", checks.features_of_columns(groups, num_features))
        self._scale_dependence: Tensor | None = None  # of the loss, in the first step
        self._inputs_unchecked = True
        self._use_schedule(self.schedule)
        if total_steps is not None:
            self.set_total_steps(total_steps)

    def set_total_steps(self, total_steps: int) -> None:
        """Set ``total_steps`` before the first step, for a trainer that knows it only when training starts."""
        if self._step:
            raise RuntimeError(f"total_steps: cannot be set after {self._step} steps; set it before training")
        added = self.k - self._kept
        self._use_schedule(plan_phases(added, total_steps, self.features_per_phase, self.warmup))
        watch_steps(self, next(step for step, count in self._selected_after.items() if count))

    @property
    def total_steps(self) -> int | None:
        """Calls of ``advance`` until all features are selected; None if it is not set yet."""
        return max(self._selected_after, default=None)

    def _use_schedule(self, schedule: Tensor) -> None:
        self.schedule = schedule.to(self.schedule.device)
        self._selected_after: dict[int, int] = dict(schedule.tolist())  # last step of a phase -> features
        first, count = next(iter(self._selected_after.items()), (0, 0))
        self._warmup_steps = 0 if count else first
        self._update_flags()

    def forward(self, x: Tensor) -> Tensor:
        if self.training:
            check_planned(self._selected_after)
        weights = self.weights if self.feature_of is None else self.weights[self.feature_of]
        dim = checks.check_input(x, len(weights), self.dim)
        weights = weights.view([-1 if i == dim else 1 for i in range(x.ndim)])
        if x.is_floating_point():
            weights = weights.to(x.dtype)
        if self.blend_rows and self.training and not (self._in_warmup or self._finished):
            other = x[torch.randperm(len(x), device=x.device)]
            out = weights * x + (1 - weights) * other
        else:
            out = x * weights
        if self.training and not torch.compiler.is_compiling():
            self._examine(x, out, dim)
        return out

    @property
    def weights(self) -> Tensor:
        """The current weight of each feature, shape (num_features,)."""
        selected_mask = self.selected_mask.to(self.logits.dtype)
        if not self.training:  # from the buffers alone, which an average of weights overwrites
            some_selected = (self.order >= 0).sum() > self._kept
            return torch.where(some_selected, selected_mask, self.allowed.to(selected_mask))
        # Where the weights do not depend on the logits, these stay in the graph with a gradient of zero, because
        # DistributedDataParallel needs a gradient for every parameter.
        if self._in_warmup:
            return self.allowed.to(selected_mask) + 0 * self.logits
        if self._finished:
            return selected_mask + 0 * self.logits
        soft: Tensor = self._mask.weights(self.logits, additive_mask(self._blocked, self.logits.dtype))
        return selected_mask + soft

    @property
    def selected(self) -> list[int]:
        """Features selected so far, in order."""
        return [i for i in self.order.tolist() if i >= 0]

    @property
    def finished(self) -> bool:
        """Whether all ``k`` features are selected; from then on all other features have weight 0."""
        return len(self.selected) == self.k

    @torch.no_grad()
    def advance(self) -> None:
        """Count one training step; at the end of a phase, select features and reset the logits.

        Raises RuntimeError if a selection is due and the logits say nothing: no optimizer trains them, or they are
        not finite.
        """
        check_planned(self._selected_after)
        self._decide_blending()
        self._step += 1
        self.steps_done += 1
        count = self._selected_after.get(self._step)
        if count is None or self._finished:
            return
        if count:
            scores = self._scores()
            tied = checks.check_scores(scores, count, self._step, optimizers_of(self.logits))
            if self.blend_rows is None and not (self._some_selected or tied):
                warnings.warn(checks.NOT_EXAMINED, UserWarning, stacklevel=3)
            self._select(count, scores)
        else:  # the end of the warm-up
            self._start_phase()

    @torch.no_grad()
    def finish(self) -> None:
        """Select all features that are still missing by the current logits, for a training that stops early.

        Directly after a selection the logits of the phase before it decide. Features selected at once do not take
        account of each other, so a copy of a selected feature may be among them.
        """
        check_planned(self._selected_after)
        if self._finished:
            return
        if self._in_warmup:
            raise RuntimeError(still_warming_up(self._step, self._warmup_steps, max(self._selected_after)))
        count, scores = self.k - len(self.selected), self._scores()
        if self._some_selected and checks.all_tied(scores, count):
            scores = self.last_scores.masked_fill(self._blocked, -torch.inf)
        checks.check_scores(scores, count, self._step, optimizers_of(self.logits))
        self._select(count, scores)

    def _select(self, count: int, scores: Tensor) -> None:
        best = torch.sort(scores, descending=True, stable=True).indices[:count]
        start = len(self.selected)
        self.order[start : start + count] = best
        self.selected_mask[best] = True
        self.last_scores.copy_(scores)
        self.logits.fill_(self._mask.initial)
        self._start_phase()

    def _start_phase(self) -> None:
        reset_state(self.logits)
        self._update_flags()

    def _scores(self) -> Tensor:  # minus infinity for features that cannot be selected
        return self._mask.score(self.logits.float()).masked_fill(self._blocked, -torch.inf)

    @property
    def _blocked(self) -> Tensor:
        return self.selected_mask | (self.allowed == 0)

    def _examine(self, x: Tensor, out: Tensor, dim: int) -> None:
        """Refuse inputs that are not finite; in the first step, find out if scaling the inputs changes the loss."""
        if self._inputs_unchecked:
            self._inputs_unchecked = False
            checks.check_finite(x.detach(), dim)
        if self.blend_rows is None and self._scale_dependence is None and out.requires_grad:
            values = out.detach()

            def watch(gradient: Tensor) -> None:
                self._scale_dependence = checks.scale_dependence(gradient.detach() * values, dim)

            out.register_hook(watch)  # type: ignore[no-untyped-call]

    def _decide_blending(self) -> None:
        """After the first step, blend rows if scaling the inputs did not change the loss."""
        if self.blend_rows is not None or self._scale_dependence is None:
            return
        dependence, self._scale_dependence = float(self._scale_dependence), None
        if dependence >= 0:  # not NaN, with which the gradient of this step says nothing
            self.blend_rows = dependence < checks.SCALE_INVARIANT
        if self.blend_rows:
            warnings.warn(checks.NORMALISED, UserWarning, stacklevel=4)

    def _save_to_state_dict(self, *args: Any) -> None:
        self.blending.fill_(-1 if self.blend_rows is None else int(self.blend_rows))
        super()._save_to_state_dict(*args)

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *args: Any) -> None:
        schedule = state_dict.get(f"{prefix}schedule")
        if self.total_steps is None and schedule is not None:
            self._use_schedule(schedule)
        different = incompatible_schedule(self.schedule, schedule, state_dict, prefix)
        if error := different or checks.other_arguments(self, state_dict, prefix):
            args[-1].append(error)
            return
        own = {f"{prefix}{name}": getattr(self, name) for name in ("schedule", "mask_settings")}
        super()._load_from_state_dict({**state_dict, **own}, prefix, *args)
        if self.blend_rows is None and self.blending >= 0:
            self.blend_rows = bool(self.blending)
        self._update_flags()

    def _update_flags(self) -> None:
        """Set the Python flags that ``forward`` branches on; each changes once, so torch.compile rarely recompiles."""
        self._step = int(self.steps_done)  # on the host, so that no step waits for the device
        self._in_warmup = self._step < self._warmup_steps
        self._some_selected = len(self.selected) > self._kept
        self._finished = len(self.selected) == self.k
        self._inputs_unchecked = True

    def extra_repr(self) -> str:
        return f"num_features={len(self.logits)}, k={self.k}, selected={len(self.selected)}"
