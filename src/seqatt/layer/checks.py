"""Checks of the layer ``SequentialAttention``: its input and what the model does with its output."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from seqatt.validation import boolean, integer, number, show

SCALE_INVARIANT = 1e-3  # the scale dependence of a model that normalises its input is below this
NORMALISED = (
    "the model behind this layer normalises its input, which undoes attention weights in part or altogether; rows "
    "are blended instead. Better put the layer behind the normalisation: nn.Sequential(norm, attention, rest). "
    "SequentialAttention(..., blend_rows=True) blends without this warning, blend_rows=False scales all the same"
)
NOT_EXAMINED = (
    "this layer could not examine whether the model behind it normalises its input, because the code is compiled; say "
    "SequentialAttention(..., blend_rows=True) if it starts with a normalisation, else blend_rows=False"
)


def check_arguments(
    num_features: int, k: int, warmup: float, temperature: float, blend_rows: bool | None, dim: int | None
) -> None:
    integer(1)("num_features", num_features)
    integer(1)("k", k)
    if k > num_features:
        raise ValueError(f"k: must be from 1 to num_features={num_features}, got {k}")
    number(minimum=0, below=1)("warmup", warmup)
    number(above=0)("temperature", temperature)
    boolean(optional=True)("blend_rows", blend_rows)
    if dim is not None and (isinstance(dim, bool) or not hasattr(dim, "__index__") or dim == 0):
        raise ValueError(f"dim: must be a dimension of the input other than 0, the batch, got {show(dim)}")


def features_of_columns(groups: Any, num_features: int) -> Tensor | None:
    """The feature of each input column, (c,), or None if every column is a feature."""
    if groups is None:
        return None
    features = torch.as_tensor(groups, dtype=torch.long)
    if sorted(set(features.tolist())) != list(range(num_features)):
        raise ValueError(f"groups: must contain every feature from 0 to {num_features - 1}")
    return features


def check_input(x: Tensor, columns: int, dim: int | None) -> int:
    """The dimension of ``x`` that holds the features, from 0 on; it must have one entry per column."""
    if not isinstance(x, Tensor):
        raise TypeError(
            f"x: must be a tensor, got {type(x).__name__}; convert it, for example by torch.as_tensor"
        )
    shape = tuple(x.shape)
    if x.ndim < 2:
        raise ValueError(
            f"x: has shape {shape}; its first dimension is the batch, so use x[None] for a single row"
        )
    if dim is None and x.ndim > 2:
        raise ValueError(
            f"x: has {x.ndim} dimensions, {shape}; say which of them holds the features, such as "
            "SequentialAttention(..., dim=1) for (batch, fields, embedding) or dim=-1 for (batch, time, features)"
        )
    gated = -1 if dim is None else dim
    if not -x.ndim <= gated < x.ndim:
        raise ValueError(f"x: has {x.ndim} dimensions, {shape}, so dim={gated} is not one of them")
    if x.shape[gated] != columns:
        fitting = [i for i in range(1, x.ndim) if x.shape[i] == columns]
        hint = f"use dim={fitting[0]}" if fitting else "num_features or groups must fit the input"
        raise ValueError(
            f"x: dimension {gated} of {shape} holds the features and has {x.shape[gated]} entries, but the layer has "
            f"{columns}; {hint}"
        )
    return gated % x.ndim


def check_constraints(
    keep: Any, forbid: Any, k: int, features: int, features_per_phase: int
) -> tuple[list[int], list[int]]:
    """The numbers of the features that are selected from the start, and of those that never are."""
    lists = []
    for name, listed in (("keep", keep), ("forbid", forbid)):
        plain = listed.tolist() if hasattr(listed, "tolist") else listed
        if isinstance(plain, str) or not isinstance(plain, Iterable):
            raise TypeError(f"{name}: must be a list of numbers of features, got {show(plain)}")
        plain = list(plain)
        numbers = [integer(0, maximum=features - 1)(name, number) for number in plain]
        if len(set(numbers)) < len(numbers):
            raise ValueError(f"{name}: must not name a feature twice, got {plain}")
        lists.append(numbers)
    kept, forbidden = lists
    both = [number for number in kept if number in forbidden]
    if both:
        raise ValueError(f"forbid: feature {both[0]} is in keep too; leave it out of one of them")
    if len(kept) >= k:
        raise ValueError(
            f"keep: has {len(kept)} features, so that none is left to select for k={k}; use a larger k"
        )
    if k > features - len(forbidden):
        raise ValueError(
            f"k: must be from 1 to {features - len(forbidden)} ({features} features without {len(forbidden)} "
            f"forbidden), got {k}"
        )
    integer(1)("features_per_phase", features_per_phase)
    if features_per_phase > k - len(kept):
        raise ValueError(
            f"features_per_phase: must be from 1 to {'k=' if not kept else ''}{k - len(kept)}"
            f"{', as many as are selected beside those of keep' if kept else ''}, got {features_per_phase}"
        )
    return kept, forbidden


def check_finite(x: Tensor, dim: int) -> None:
    """Refuse inputs with NaN or infinite values, which would make the weights of all features NaN."""
    finite = torch.isfinite(x).transpose(0, dim).flatten(1).all(1)
    if finite.all():
        return
    columns = (~finite).nonzero().flatten().tolist()
    listed = ", ".join(map(str, columns[:10])) + (", ..." if len(columns) > 10 else "")
    raise ValueError(
        f"x: NaN or infinite values in column {listed}; all attention weights would become NaN. Replace missing values "
        "before the layer"
    )


def all_tied(scores: Tensor, count: int) -> bool:
    """Whether more than ``count`` features may be selected (score above minus infinity) and all score the same."""
    candidates = scores[scores != -torch.inf]
    return len(candidates) > count and bool(candidates.max() == candidates.min())


def check_scores(scores: Tensor, count: int, step: int, optimizers: Sequence[Optimizer]) -> bool:
    """Refuse scores that are not finite or come from logits that no optimizer trains; warn if they are all equal.

    Returns whether they are.
    """
    if not torch.isfinite(scores[scores != -torch.inf]).all():
        raise RuntimeError(
            f"logits: not finite at step {step}, so no feature can be selected; an input, the loss or a gradient was "
            "NaN or infinite. Replace missing values before the layer, or lower the learning rate"
        )
    if not all_tied(scores, count):
        return False
    if not optimizers:
        raise RuntimeError(
            f"logits: unchanged after {step} steps, because no optimizer that made a step has them; give your "
            'optimizer the parameters of this layer too: {"params": attention.parameters(), "lr": 0.05}'
        )
    warnings.warn(
        f"all features have the same score at step {step}, so those with the smallest numbers are selected: the logits "
        "got no gradient in this phase. Does the loss depend on the output of this layer, and does the optimizer "
        "make a step before each advance()?",
        UserWarning,
        stacklevel=4,
    )
    return True


def other_arguments(layer: nn.Module, state_dict: Mapping[str, Any], prefix: str) -> str | None:
    """Which arguments of the layer differ from those of the one whose state this is; None if none does.

    The mask counts while features are missing. Keys and shapes that do not fit are left to PyTorch.
    """
    buffers = ("mask_settings", "allowed", "order", "steps_done")
    saved: dict[str, Any] = {name: state_dict.get(prefix + name) for name in buffers}
    if any(value is None for value in saved.values()) or saved["allowed"].shape != layer.allowed.shape:
        return None
    under_way = bool(saved["steps_done"]) and bool((saved["order"] < 0).any())
    compared = {"allowed": "forbid", "feature_of": "groups"} | (
        {"mask_settings": "mask or temperature"} if under_way else {}
    )
    for name, arguments in compared.items():
        own, other = getattr(layer, name), state_dict.get(prefix + name)
        if own is None or other is None:
            same = own is other
        else:  # a layer in half precision has rounded them
            same = own.shape == other.shape and torch.allclose(
                own.double().cpu(), other.double().cpu(), rtol=1e-2
            )
        if not same:
            return f"{arguments}: the saved layer had another one; create this one with the same"
    return None


def scale_dependence(product: Tensor, dim: int) -> Tensor:
    """How much a loss depends on the scale of an input, from the product of the input and its gradient.

    A function that does not change when its argument is scaled has a gradient orthogonal to it (Euler's theorem on
    homogeneous functions). A batch norm ignores the scale of every feature, so the product sums to 0 over the rows; a
    layer norm ignores the scale of every row, so it sums to 0 over the features. Returned is the median of these sums
    in relation to the sums of magnitudes, over features or over rows, whichever is smaller: about 1e-6 if scale does
    not matter, some 0.01 to 0.5 if it does, and NaN if there is no gradient.
    """
    product = product.float()
    by_feature, by_row = (
        (lines.sum(1).abs() / lines.abs().sum(1)).nanmedian()  # 0 / 0 is NaN
        for lines in (product.transpose(0, dim).flatten(1), product.flatten(1))
    )
    return torch.minimum(by_feature, by_row)
