"""What a user can set about a neural method, checked where it is said."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields
from typing import Any

import torch
from torch import nn

from seqatt.training.masks import MASKS, Mask, SoftmaxMask
from seqatt.training.models.mlp import ACTIVATIONS


@dataclass(frozen=True)
class NetworkOptions:
    """The built-in network and its training, as far as every neural method lets them be set.

    ``epochs`` and ``batch_size`` left at None follow the size of the table.
    """

    epochs: float | None = None
    batch_size: int | None = None
    learning_rate: float = 3e-3
    hidden: tuple[int, ...] = (67,)
    activation: str = "relu"

    def __post_init__(self) -> None:
        check_number(self, "epochs", above=0, optional=True)
        check_whole(self, "batch_size", least=1, optional=True)
        check_number(self, "learning_rate", above=0)
        object.__setattr__(self, "hidden", check_widths(self.hidden))
        one_of("activation", self.activation, list(ACTIVATIONS))

    def record(self) -> dict[str, Any]:
        """For ``Selection.settings``: plain values, functions by name."""
        values = {f.name: getattr(self, f.name) for f in fields(self)}
        return {
            name: getattr(value, "__qualname__", type(value).__qualname__) if callable(value) else value
            for name, value in values.items()
        } | {name: list(value) for name, value in values.items() if isinstance(value, tuple)}


@dataclass(frozen=True)
class TrainingOptions(NetworkOptions):
    """The network and how it is trained; shared by selection and evaluation.

    ``input_dropout`` left at None follows the size of the table too. ``model`` is
    an nn.Module, copied for every trial, or a function ``(columns, outputs) -> nn.Module``; ``optimizer`` a
    function of the model's parameters; ``loss`` a function ``(outputs, targets)``.
    """

    dropout: float = 0.0
    input_dropout: float | None = None
    label_smoothing: float = 0.0
    batch_norm: bool = False
    model: nn.Module | Callable[[int, int], nn.Module] | None = None
    loss: Callable[[torch.Tensor, torch.Tensor], torch.Tensor] | None = None
    optimizer: Callable[[Any], torch.optim.Optimizer] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        check_number(self, "dropout", least=0, below=1)
        check_number(self, "input_dropout", least=0, below=1, optional=True)
        check_number(self, "label_smoothing", least=0, below=1)
        if self.label_smoothing and self.loss is not None:
            raise ValueError("label_smoothing: is the built-in loss's; smooth labels in your own loss")
        check_flag(self, "batch_norm")
        if self.batch_norm and self.batch_size == 1:
            raise ValueError("batch_size: batch_norm needs at least 2 rows in a batch")
        for name in ("model", "loss", "optimizer"):
            value = getattr(self, name)
            if value is not None and not callable(value):
                raise TypeError(f"{name}: must be a module or a function, got {value!r}")

    @property
    def built_in(self) -> bool:
        """Whether the written-out MLP serves; anything else goes through autograd."""
        return not (self.batch_norm or self.model or self.loss or self.optimizer)


@dataclass(frozen=True)
class AttentionOptions(TrainingOptions):
    """Sequential Attention: the mask, the pace of choosing, and what starts afresh when."""

    mask: str = "softmax"
    temperature: float = 1.0
    features_per_phase: int | None = None
    warmup: float = 0.1
    ensemble: int | None = None
    surplus: float = 2.0
    replacement: int | None = None
    weight_decay: float | None = None
    univariate_test: float | None = None
    asinh_inputs: bool | None = None
    one_pass: bool = True
    reset_model: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        one_of("mask", self.mask, list(MASKS))
        check_number(self, "temperature", above=0)
        if self.temperature != 1 and self.mask != "softmax":
            raise ValueError(f"temperature: only the softmax mask has one, not {self.mask!r}")
        check_whole(self, "features_per_phase", least=1, optional=True)
        check_whole(self, "ensemble", least=1, optional=True)
        check_number(self, "surplus", least=1)
        check_number(self, "warmup", least=0, below=1)
        check_whole(self, "replacement", least=0, optional=True)
        check_number(self, "weight_decay", least=0, below=1, optional=True)
        check_number(self, "univariate_test", least=0, optional=True)
        if self.asinh_inputs is not None:
            check_flag(self, "asinh_inputs")
        check_flag(self, "one_pass")
        check_flag(self, "reset_model")

    def make_mask(self) -> Mask:
        return SoftmaxMask(self.temperature) if self.mask == "softmax" else MASKS[self.mask]


@dataclass(frozen=True)
class LassoNetOptions(NetworkOptions):
    """``hierarchy`` is the M of the constraint |W_j| <= M |skip_j|."""

    hierarchy: float = 10.0

    def __post_init__(self) -> None:
        super().__post_init__()
        check_number(self, "hierarchy", above=0)
        if not self.hidden:
            raise ValueError("hidden: lassonet needs a hidden layer beside its skip connection; give a width")


@dataclass(frozen=True)
class GreedyOptions(NetworkOptions):
    """``epochs`` are those of each model; ``folds`` of the five parts of the rows judge it in turn."""

    learning_rate: float = 1e-2
    folds: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        check_whole(self, "folds", least=1, optional=True)
        if self.folds is not None and self.folds > 5:
            raise ValueError(f"folds: rows are dealt into 5 parts, so at most 5, got {self.folds}")


@dataclass(frozen=True)
class AutoencoderOptions(NetworkOptions):
    """``reconstruct``: learn to give back the table, not the target. ``temperatures``: first and last."""

    reconstruct: bool = False
    temperatures: tuple[float, float] = (10.0, 0.01)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_flag(self, "reconstruct")
        object.__setattr__(self, "temperatures", _temperatures(self.temperatures))


def _temperatures(pair: Any) -> tuple[float, float]:
    try:
        first, last = (float(value) for value in pair)
    except (TypeError, ValueError):
        first = last = float("nan")
    if not 0 < last <= first < float("inf"):
        raise ValueError(
            f"temperatures: must be two numbers above 0, falling, such as (10, 0.01), got {pair!r}"
        )
    return first, last


@dataclass(frozen=True)
class PenaltyOptions(TrainingOptions):
    """A method with a penalty. Left at None its strength is chosen on rows kept aside."""

    penalty: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        check_number(self, "penalty", least=0, optional=True)


@dataclass(frozen=True)
class StochasticGatesOptions(PenaltyOptions):
    """``sigma`` is the spread of the gates' noise."""

    sigma: float = 0.5

    def __post_init__(self) -> None:
        super().__post_init__()
        check_number(self, "sigma", above=0)


@dataclass(frozen=True)
class BatchAttentionOptions(TrainingOptions):
    """``attention_width`` is that of the hidden layer of the network that attends."""

    attention_width: int = 128

    def __post_init__(self) -> None:
        super().__post_init__()
        check_whole(self, "attention_width", least=1)


def one_of(argument: str, value: Any, allowed: list[str]) -> None:
    if value not in allowed:
        raise ValueError(f"{argument}: unknown {value!r}; use one of {', '.join(allowed)}")


def insist_on_known(method: str, given: Iterable[str], own: list[str], also: Sequence[str] = ()) -> None:
    """Refuse what a method cannot be told, with the nearest thing that it can."""
    for name in given:
        if name not in (*own, *also):
            near = difflib.get_close_matches(name, [*own, *also], 1)
            hint = f"did you mean {near[0]!r}?" if near else f"it has {', '.join(own) or 'none'}"
            raise TypeError(f"{method} has no option {name!r}; {hint}")


def check_widths(hidden: Any) -> tuple[int, ...]:
    hidden = hidden.tolist() if hasattr(hidden, "tolist") else hidden  # an array of widths has __index__ too
    widths = (hidden,) if hasattr(hidden, "__index__") else hidden
    widths = tuple(widths) if isinstance(widths, Iterable) else (None,)
    if any(isinstance(h, bool) or not hasattr(h, "__index__") or h < 1 for h in widths):
        raise ValueError(f"hidden: must be widths of at least 1, such as (67,), got {hidden!r}")
    return tuple(int(h) for h in widths)


def check_flag(options: Any, name: str) -> None:
    if not isinstance(getattr(options, name), bool):
        raise TypeError(f"{name}: must be True or False, got {getattr(options, name)!r}")


def check_whole(options: Any, name: str, *, least: int, optional: bool = False) -> None:
    value = getattr(options, name)
    if value is None and optional:
        return
    if isinstance(value, bool) or not hasattr(value, "__index__") or value < least:
        raise ValueError(f"{name}: must be a whole number of at least {least}, got {value!r}")
    object.__setattr__(options, name, int(value))


def check_number(
    options: Any,
    name: str,
    *,
    least: float | None = None,
    above: float | None = None,
    below: float | None = None,
    optional: bool = False,
) -> None:
    value = getattr(options, name)
    if value is None and optional:
        return
    bounds = [f"at least {least}"] * (least is not None) + [f"above {above}"] * (above is not None)
    bounds += [f"below {below}"] * (below is not None)
    try:
        number = float(value)
        good = (
            number == number
            and abs(number) != float("inf")
            and (least is None or number >= least)
            and (above is None or number > above)
            and (below is None or number < below)
        )
    except (TypeError, ValueError):
        good = False
    if not good:
        raise ValueError(f"{name}: must be a number {' and '.join(bounds)}, got {value!r}")
    object.__setattr__(options, name, number)


def check_seeds(seeds: Sequence[int]) -> list[int]:
    """Whole numbers from 0 on, at least one."""
    checked = []
    for seed in seeds:
        if isinstance(seed, bool) or not hasattr(seed, "__index__") or int(seed) < 0:
            raise ValueError(f"seed: must be a whole number of at least 0, got {seed!r}")
        checked.append(int(seed))
    if not checked:
        raise ValueError("seeds: at least one seed is needed")
    return checked
