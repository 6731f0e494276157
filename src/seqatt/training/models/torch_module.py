"""Any nn.Module, one trial, through autograd: a user's own model, loss and optimizer."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from seqatt.training.batch import Batch
from seqatt.training.models.architecture import MLPShape
from seqatt.training.models.losses import autograd_loss
from seqatt.training.models.model import GradientPenalty, Model, weighted_mean

MakeModule = Callable[[], nn.Module]
MakeOptimizer = Callable[[Iterable[nn.Parameter]], torch.optim.Optimizer]
CustomLoss = Callable[[Tensor, Tensor], Tensor]

ACTIVATION_MODULES: dict[str, Callable[[], nn.Module]] = {
    "relu": nn.ReLU,
    "tanh": nn.Tanh,
    "gelu": nn.GELU,
    "silu": nn.SiLU,
}


def build_mlp(shape: MLPShape, *, batch_norm: bool = False) -> nn.Sequential:
    """The built-in network as ordinary torch modules."""
    layers: list[nn.Module] = []
    for outs, ins in shape.sizes[:-1]:
        layers.append(nn.Linear(ins, outs))
        if batch_norm:
            layers.append(nn.BatchNorm1d(outs))
        layers.append(ACTIVATION_MODULES[shape.activation]())
        if shape.dropout:
            layers.append(nn.Dropout(shape.dropout))
    outs, ins = shape.sizes[-1]
    return nn.Sequential(*layers, nn.Linear(ins, outs))


class TorchModule(Model):
    """One module a trial. Its randomness is its own: a trial in company draws what it draws alone."""

    def __init__(
        self,
        make_module: MakeModule,
        task: str,
        seed: int,
        make_optimizer: MakeOptimizer,
        device: torch.device,
        custom_loss: CustomLoss | None = None,
        smoothing: float = 0.0,
    ) -> None:
        self._make_module = make_module
        self._make_optimizer = make_optimizer
        self._task = task
        self._device = device
        self._custom_loss = custom_loss
        self._smoothing = smoothing
        self._randomness = _state_of_seed(seed, device)
        self.module: nn.Module
        self._last = torch.zeros(1)
        self.blends = False
        self.restart()

    def restart(self) -> None:
        with self._own_randomness():
            module = self._make_module()
            if not isinstance(module, nn.Module):
                raise TypeError(f"model: must give an nn.Module, got {type(module).__name__}")
            self.module = module.to(self._device).train()
        params = [p for p in self.module.parameters() if p.requires_grad]
        self._optimizer = self._make_optimizer(params) if params else None
        groups = [] if self._optimizer is None else self._optimizer.param_groups
        self._base_rates = [group["lr"] for group in groups]

    def set_rate(self, factor: float) -> None:
        if self._optimizer is None:
            return
        for group, rate in zip(self._optimizer.param_groups, self._base_rates, strict=True):
            group["lr"] = rate * factor

    def train(self, batch: Batch, weights: Tensor) -> Tensor:
        leaf = weights[0].detach().requires_grad_()
        with self._own_randomness(), torch.enable_grad():
            loss = self._loss_of(self._admit(batch.x[0], leaf), batch)
            self._step(loss)
        self._last = loss.detach()[None]
        return torch.zeros_like(weights) if leaf.grad is None else leaf.grad[None]

    def train_step_with_penalty(self, batch: Batch, weights: Tensor, penalty: GradientPenalty) -> None:
        with self._own_randomness(), torch.enable_grad():
            x = self._admit(batch.x[0], weights[0]).detach().requires_grad_()
            loss = self._loss_of(x, batch)
            (flow,) = torch.autograd.grad(loss, x, create_graph=True)
            self._step(loss + penalty(flow[None] * len(x)).sum())
        self._last = loss.detach()[None]

    def input_gradients(self, batch: Batch, weights: Tensor) -> Tensor:
        with self._judging(), torch.enable_grad():
            x = (batch.x[0] * weights[0]).requires_grad_()
            return torch.autograd.grad(self._loss_of(x, batch), x)[0][None] * len(x)

    def first_layer(self) -> Tensor:
        return self._first_linear().weight.data[None]

    def first_layer_gradient(self, batch: Batch, weights: Tensor) -> Tensor:
        layer = self._first_linear()
        own = layer.weight.data.clone()
        layer.weight.data.mul_(weights[0])
        try:
            with self._judging(), torch.enable_grad():
                return torch.autograd.grad(self._loss_of(batch.x[0], batch), layer.weight)[0][None]
        finally:
            layer.weight.data.copy_(own)

    def _step(self, loss: Tensor) -> None:
        self.module.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        if self._optimizer is not None:
            self._optimizer.step()

    def _loss_of(self, x: Tensor, batch: Batch) -> Tensor:
        """What it learns from, smoothed labels and all."""
        w = None if batch.w is None else batch.w[0]
        return self._mean_loss(self.module(x), batch.y[0], w, self._smoothing)

    def shrink(self, factors: Tensor) -> None:
        first = self._first()
        if isinstance(first, nn.Linear) and first.in_features == factors.shape[1]:
            first.weight.data.mul_(factors)

    def _first(self) -> nn.Module:
        return self.module[0] if isinstance(self.module, nn.Sequential) else self.module

    def _first_linear(self) -> nn.Linear:
        first = self._first()
        if isinstance(first, nn.Linear):
            return first
        raise ValueError(
            "model: this method judges features by the weights of a first Linear layer, and "
            f"{type(self.module).__name__} has none; give an nn.Sequential that starts with nn.Linear"
        )

    def _admit(self, x: Tensor, weights: Tensor) -> Tensor:
        """Inputs scaled by their weights or, for a module that scales them back, blended.

        Blending mixes each row with another one: what a feature loses in weight it loses in truth,
        and no normalisation inside the module can give it back.
        """
        if not self.blends:
            return x * weights
        other = x[torch.randperm(len(x), device=x.device)]
        return torch.lerp(other, x, weights)

    def is_scale_invariant(self, x: Tensor) -> bool:
        """Whether scaling features changes nothing, as behind a batch norm of the inputs."""
        module = copy.deepcopy(self.module)
        scales = torch.linspace(0.3, 1.0, x.shape[-1], device=x.device)
        try:
            with torch.no_grad():
                outs = []
                for given in (x, x * scales):
                    with self._own_randomness(keep=False):
                        outs.append(_two_dimensional(module(given)).float())
        except (RuntimeError, ValueError):
            return False
        change = (outs[0] - outs[1]).abs().max()
        return bool(change <= 1e-2 * outs[0].std().clamp_min(1e-6))

    def last_loss(self, batch: Batch) -> Tensor:
        return self._last

    def loss(self, batch: Batch, weights: Tensor) -> Tensor:
        x, y, w = batch.x, batch.y, batch.w
        out = self.predict(x, weights, flat=True)
        return self._mean_loss(out, y[0], None if w is None else w[0])[None]

    def predict(self, x: Tensor, weights: Tensor, *, flat: bool = False) -> Tensor:
        """Outputs (1, B, o); ``flat`` gives them as the module does."""
        with self._judging(), torch.no_grad():
            out: Tensor = self.module(x[0] * weights[0])
        return out if flat else _two_dimensional(out)[None]

    def _mean_loss(self, out: Any, y: Tensor, w: Tensor | None, smoothing: float = 0.0) -> Tensor:
        if self._custom_loss is None:
            return weighted_mean(autograd_loss(self._task, _two_dimensional(out), y, smoothing), w)
        rows = self._custom_loss(out, self._target_for(out, y))
        if rows.ndim == 0:
            if w is not None:
                raise ValueError(
                    "loss: row or class weights were given, so the loss must return one value a row; "
                    "use reduction='none'"
                )
            return rows
        return weighted_mean(rows.flatten(1).mean(1) if rows.ndim > 1 else rows, w)

    def _target_for(self, out: Any, y: Tensor) -> Tensor:
        """Targets in the shape a loss expects beside these outputs: labels for two, flat for flat."""
        if self._task == "binary" and isinstance(out, Tensor) and out.shape[1:] == (2,):
            return y[:, 0].long()
        flat = isinstance(out, Tensor) and out.ndim == 1 and y.ndim == 2 and y.shape[1] == 1
        return y[:, 0] if flat else y

    def dry_run(self, batch: Batch) -> Tensor:
        """What the model gives for a batch and whether the loss takes it; nothing changes."""
        x, y, w = batch.x, batch.y, batch.w
        columns = x.shape[2]
        try:
            out = self.predict(x, torch.ones(1, columns, device=x.device), flat=True)
        except Exception as error:
            reason = " ".join(str(error).split())
            raise ValueError(f"model: does not accept a batch of {columns} columns ({reason})") from error
        if self._custom_loss is not None:
            try:
                self._mean_loss(out, y[0], None if w is None else w[0])
            except ValueError as error:
                raise error if str(error).startswith("loss:") else _bad_loss(out, y, error) from error
            except Exception as error:
                raise _bad_loss(out, y, error) from error
        return _two_dimensional(out)

    @contextmanager
    def _judging(self) -> Iterator[None]:
        """The module as it predicts: nothing dropped, nothing counted, no randomness spent."""
        self.module.eval()
        try:
            with self._own_randomness(keep=False):
                yield
        finally:
            self.module.train()

    @contextmanager
    def _own_randomness(self, *, keep: bool = True) -> Iterator[None]:
        """torch's global generators, lent: set to this trial's state and put back afterwards."""
        devices = [self._device] if self._device.type == "cuda" else []
        with torch.random.fork_rng(devices):
            _set_state(self._randomness, self._device)
            yield
            if keep:
                self._randomness = _get_state(self._device)


def _two_dimensional(out: Any) -> Tensor:
    if not isinstance(out, Tensor):
        raise TypeError(f"model: must return a tensor of outputs, got {type(out).__name__}")
    return out.unsqueeze(-1) if out.ndim == 1 else out


def _bad_loss(out: Any, y: Tensor, error: Exception) -> ValueError:
    shapes = f"outputs {tuple(getattr(out, 'shape', ()))} and targets {tuple(y.shape[1:])}"
    return ValueError(f"loss: does not take {shapes} ({' '.join(str(error).split())})")


def _get_state(device: torch.device) -> list[Tensor]:
    states = [torch.get_rng_state()]
    return [*states, torch.cuda.get_rng_state(device)] if device.type == "cuda" else states


def _set_state(states: list[Tensor], device: torch.device) -> None:
    torch.set_rng_state(states[0])
    if device.type == "cuda":
        torch.cuda.set_rng_state(states[1], device)


def _state_of_seed(seed: int, device: torch.device) -> list[Tensor]:
    devices = [device] if device.type == "cuda" else []
    with torch.random.fork_rng(devices):
        torch.manual_seed(seed)
        return _get_state(device)
