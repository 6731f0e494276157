"""One nn.Module per model, trained through autograd: for a user's own model, loss or optimizer."""

from __future__ import annotations

import copy
import io
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from seqatt.losses.loss import Loss
from seqatt.losses.table import LOSSES, autograd_loss
from seqatt.training.loaders.batch import Batch
from seqatt.training.models.model import MIN_COUPLED_ROWS, GradientPenalty, Model, weighted_mean
from seqatt.training.models.module_checks import (
    NO_GRADIENT,
    as_matrix,
    bad_loss,
    check_loss,
    check_optimizer,
    normalises_inputs,
    type_remedy,
)
from seqatt.training.reducer import Reducer
from seqatt.training.state import Arrays, get_rng_state, rng_state_of_seed, set_rng_state

MakeModule = Callable[[], nn.Module]
MakeOptimizer = Callable[[Iterable[nn.Parameter]], torch.optim.Optimizer]
CustomLoss = Callable[[Tensor, Tensor], Tensor]


class TorchModule(Model):
    """A single module (T = 1). It has its own random state, so that other trials do not change its draws.

    With ``blend_rows``, weights below 1 mix each row with another row instead of scaling it.
    """

    def __init__(
        self,
        make_module: MakeModule,
        task: str | Loss,
        seed: int,
        make_optimizer: MakeOptimizer,
        device: torch.device,
        custom_loss: CustomLoss | None = None,
        label_smoothing: float = 0.0,
        reducer: Reducer | None = None,
    ) -> None:
        self._reducer = reducer or Reducer()
        self._make_module = make_module
        self._make_optimizer = make_optimizer
        self._loss = LOSSES[task] if isinstance(task, str) else task
        self._device = device
        self.min_block_rows = MIN_COUPLED_ROWS if self._loss.coupled else 1
        self._custom_loss = custom_loss
        self._label_smoothing = label_smoothing
        self._rng_state = rng_state_of_seed(seed, device)
        self.module: nn.Module
        self._last_loss = torch.zeros(1)
        self.blend_rows = False
        self.reset_parameters()

    def reset_parameters(self) -> None:
        with self._own_rng():
            module = self._make_module()
            if not isinstance(module, nn.Module):
                raise TypeError(f"model: must return an nn.Module, got {type(module).__name__}")
            self.module = module.to(self._device).train()
        params = [p for p in self.module.parameters() if p.requires_grad]
        self._optimizer = check_optimizer(self._make_optimizer(params), params) if params else None
        self._initial_lrs = [group.get("lr") for group in getattr(self._optimizer, "param_groups", ())]

    def scale_learning_rate(self, factor: float) -> None:
        if self._optimizer is None:
            return
        for group, lr in zip(self._optimizer.param_groups, self._initial_lrs, strict=True):
            if lr is not None:  # an optimizer of the user may have none
                group["lr"] = lr * factor

    def train_step(
        self, batch: Batch, weights: Tensor, *, gated: bool = True, all_ones: bool = False
    ) -> Tensor:
        leaf = weights[0].detach().requires_grad_()
        leaf.grad = torch.zeros_like(leaf)
        with self._own_rng(), torch.enable_grad():
            rows = len(batch.x[0])  # none on a rank whose rows are all read
            loss = self._training_loss(self.inputs(batch.x[0], leaf), batch) if rows else leaf.sum() * 0
            self._step(loss, rows, leaf)
        self._last_loss = loss.detach()[None]
        return leaf.grad[None]

    def train_step_with_penalty(self, batch: Batch, weights: Tensor, penalty: GradientPenalty) -> None:
        if not len(batch.x[0]):  # on a rank whose rows are all read
            self._step(torch.zeros(()), 0)
            self._last_loss = torch.zeros(1, device=self._device)
            return
        with self._own_rng(), torch.enable_grad():
            x = self._columns(batch.x[0], weights[0]).detach().requires_grad_()
            loss = self._training_loss((x,), batch)
            (x_grad,) = torch.autograd.grad(loss, x, create_graph=True)
            self._step(loss + penalty(x_grad[None] * len(x)).sum(), len(x))
        self._last_loss = loss.detach()[None]

    def input_gradients(self, batch: Batch, weights: Tensor) -> Tensor:
        with self._evaluation_mode(), torch.enable_grad():
            x = self._columns(batch.x[0], weights[0]).requires_grad_()
            return torch.autograd.grad(self._training_loss((x,), batch), x)[0][None] * len(x)

    def first_layer(self) -> Tensor:
        return self._first_linear().weight.data[None]

    def first_layer_gradient(self, batch: Batch, weights: Tensor) -> Tensor:
        layer = self._first_linear()
        unscaled = layer.weight.data.clone()
        layer.weight.data.mul_(weights[0])
        try:
            with self._evaluation_mode(), torch.enable_grad():
                return torch.autograd.grad(self._training_loss((batch.x[0],), batch), layer.weight)[0][None]
        finally:
            layer.weight.data.copy_(unscaled)

    def _step(self, loss: Tensor, rows: int, leaf: Tensor | None = None) -> None:
        self.module.zero_grad()
        if rows:
            loss.backward()  # type: ignore[no-untyped-call]
        if self._reducer.ranks > 1:
            for parameter in self.module.parameters():
                if parameter.requires_grad and parameter.grad is None:
                    parameter.grad = torch.zeros_like(parameter)
            owners = [*self.module.parameters(), *([] if leaf is None else [leaf])]
            self._reducer.average([owner.grad for owner in owners if owner.grad is not None], rows)
        if self.first_layer_decay is not None or self.first_layer_gradients is not None:
            first = self._first_linear().weight
            if first.grad is None:
                raise ValueError("model: this method trains the first Linear layer, which is frozen")
            self._add_first_layer_decay(first.data[None], first.grad[None])
        if self._optimizer is not None:
            self._optimizer.step()

    def _training_loss(self, inputs: tuple[Tensor, ...], batch: Batch) -> Tensor:
        """The mean loss that training minimises, with label smoothing."""
        w = None if batch.w is None else batch.w[0]
        return self._mean_loss(self.module(*inputs), batch.y[0], w, self._label_smoothing)

    def scale_first_layer(self, factors: Tensor) -> None:
        first = self._first_module()
        if isinstance(first, nn.Linear) and first.in_features == factors.shape[1]:
            first.weight.data.mul_(factors)

    def _first_module(self) -> nn.Module:
        return self.module[0] if isinstance(self.module, nn.Sequential) else self.module

    def _first_linear(self) -> nn.Linear:
        first = self._first_module()
        if isinstance(first, nn.Linear):
            return first
        raise ValueError(
            "model: this method scores features by the weights of a first Linear layer, and "
            f"{type(self.module).__name__} has none; use an nn.Sequential that starts with nn.Linear"
        )

    def inputs(self, x: Tensor, weights: Tensor) -> tuple[Tensor, ...]:
        """The arguments of the module, from columns (B, c) and their weights (c,)."""
        return (self._columns(x, weights),)

    def _columns(self, x: Tensor, weights: Tensor) -> Tensor:
        """Inputs (B, c) scaled by column weights (c,) or, in training a scale-invariant module, blended.

        Blending replaces x by ``weight * x + (1 - weight) * x of another row``. This removes information
        from a feature of low weight, which no normalisation inside the module can undo.
        """
        if not (self.blend_rows and self.module.training):
            return x * weights
        other = x[torch.randperm(len(x), device=x.device)]
        return torch.lerp(other, x, weights)

    def is_scale_invariant(self, batch: Batch) -> bool:
        """Whether the module normalises its inputs, so that scaling a column does not reduce its influence."""
        module = copy.deepcopy(self.module)

        def predict(x: Tensor) -> Tensor:
            with self._own_rng(advance=False), torch.no_grad():
                return as_matrix(module(x))

        return normalises_inputs(predict, batch.x[0])

    def last_loss(self, batch: Batch) -> Tensor:
        return self._last_loss

    def loss(self, batch: Batch, weights: Tensor) -> Tensor:
        out, y, w = self._outputs(batch.x, weights), batch.y, batch.w
        return self._mean_loss(out, y[0], None if w is None else w[0])[None]

    def predict(self, x: Tensor, weights: Tensor) -> Tensor:
        return as_matrix(self._outputs(x, weights))[None]

    def _outputs(self, x: Tensor, weights: Tensor) -> Tensor:
        """The outputs in evaluation mode, in the shape that the module returns."""
        with self._evaluation_mode(), torch.no_grad():
            out: Tensor = self.module(*self.inputs(x[0], weights[0]))
        return out

    def _mean_loss(self, out: Any, y: Tensor, w: Tensor | None, label_smoothing: float = 0.0) -> Tensor:
        if self._custom_loss is None:
            return weighted_mean(autograd_loss(self._loss, as_matrix(out), y, label_smoothing), w)
        losses = self._custom_loss(out, self._target_for(out, y))
        if not isinstance(losses, Tensor):
            raise ValueError(
                f"loss: must return a tensor, a single value or one per row, got {type(losses).__name__}"
            )
        if losses.ndim == 0:
            if w is not None:
                raise ValueError(
                    "loss: row or class weights were given, so the loss must return one value per row; "
                    "use reduction='none'"
                )
            return losses
        return weighted_mean(losses.flatten(1).mean(1) if losses.ndim > 1 else losses, w)

    def _target_for(self, out: Any, y: Tensor) -> Tensor:
        """Targets in the shape that a loss expects: class labels for two outputs, (B,) for outputs (B,)."""
        if self._loss.name == "binary" and isinstance(out, Tensor) and out.shape[1:] == (2,):
            return y[:, 0].long()
        is_vector = isinstance(out, Tensor) and out.ndim == 1 and y.ndim == 2 and y.shape[1] == 1
        return y[:, 0] if is_vector else y

    def state_arrays(self) -> Arrays:
        optimizer = {} if self._optimizer is None else self._optimizer.state_dict()
        file = io.BytesIO()
        torch.save({"module": self.module.state_dict(), "optimizer": optimizer, "rng": self._rng_state}, file)
        return {"state": np.frombuffer(file.getvalue(), dtype=np.uint8)}

    def load_arrays(self, arrays: Arrays) -> None:
        file = io.BytesIO(arrays["state"].tobytes())
        state = torch.load(file, map_location="cpu", weights_only=True)  # nothing in it can run code
        self.module.load_state_dict(state["module"])
        if self._optimizer is not None:
            self._optimizer.load_state_dict(state["optimizer"])
        self._rng_state = state["rng"]

    def dry_run(self, batch: Batch) -> Tensor:
        """The outputs for a batch, after checking that the model and the loss accept it; changes nothing."""
        x, y, w = batch.x, batch.y, batch.w
        try:
            out = self._outputs(x, torch.ones(1, x.shape[2], device=x.device))
        except Exception as error:
            reason = " ".join(str(error).split())
            raise ValueError(
                f"model: does not accept {self._describe_inputs(x)} ({reason}){type_remedy(self.module, x)}"
            ) from error
        if self._custom_loss is not None:
            try:
                with torch.enable_grad():
                    leaf = out.detach().requires_grad_() if isinstance(out, Tensor) else out
                    loss = self._mean_loss(leaf, y[0], None if w is None else w[0])
                if isinstance(out, Tensor) and not loss.requires_grad:
                    raise ValueError(NO_GRADIENT)
            except ValueError as error:
                raise error if str(error).startswith("loss:") else bad_loss(out, y, error) from error
            except Exception as error:
                raise bad_loss(out, y, error) from error
        return as_matrix(out)

    def check_custom_loss(self, batch: Batch) -> None:
        """Refuse a loss of the user from which nothing can be learned; changes nothing."""
        w = None if batch.w is None else batch.w[0]
        out = self._outputs(batch.x, torch.ones_like(batch.x[0, 0])[None])
        if isinstance(out, Tensor) and out.is_floating_point():
            with self._own_rng(advance=False), torch.enable_grad():
                check_loss(lambda outputs, y: self._mean_loss(outputs, y, w), out, batch.y[0])

    def _describe_inputs(self, x: Tensor) -> str:
        return f"a batch of {x.shape[2]} columns"

    @contextmanager
    def _evaluation_mode(self) -> Iterator[None]:
        """The module in evaluation mode, with its random state restored afterwards."""
        self.module.eval()
        try:
            with self._own_rng(advance=False):
                yield
        finally:
            self.module.train()

    @contextmanager
    def _own_rng(self, *, advance: bool = True) -> Iterator[None]:
        """Set torch's global generators to this model's random state, and restore them afterwards.

        With ``advance`` the model's state keeps the draws made meanwhile.
        """
        devices = [self._device] if self._device.type == "cuda" else []
        with torch.random.fork_rng(devices):
            set_rng_state(self._rng_state, self._device)
            yield
            if advance:
                self._rng_state = get_rng_state(self._device)
