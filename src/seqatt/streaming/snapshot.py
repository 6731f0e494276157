"""What training has changed, as named arrays, and back into place."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from seqatt.streaming.network import EmbeddingMLP
from seqatt.training.gates.gate import Gate
from seqatt.training.models.adam import Adam

Arrays = dict[str, NDArray[np.generic]]
Stateful = Tensor | Adam | torch.Generator


def state_of(network: EmbeddingMLP, gate: Gate) -> Iterator[tuple[str, Stateful]]:
    """All that a later step depends on. What a gate keeps beyond a step, it keeps in tensors and lists."""
    yield from _of_adam("network", network.adam)
    for width, table in enumerate(network.tables):
        yield f"table{width}.values", table.values
        yield f"table{width}.squares", table.squares
    for name, value in sorted(vars(gate).items()):
        for number, held in enumerate(value if isinstance(value, list) else [value]):
            if isinstance(held, Adam):
                yield from _of_adam(f"gate.{name}", held)
            elif isinstance(held, Tensor | torch.Generator):
                yield f"gate.{name}{number}", held


def _of_adam(name: str, adam: Adam) -> Iterator[tuple[str, Stateful]]:
    for kind in ("params", "first", "second"):
        for number, tensor in enumerate(getattr(adam, kind)):
            yield f"{name}.{kind}{number}", tensor
    yield f"{name}.count", adam.count
    yield f"{name}.steps", adam


def tensors(held: Iterator[tuple[str, Stateful]]) -> list[Tensor]:
    """Those among them that live on the device."""
    return [value for _, value in held if isinstance(value, Tensor)]


def copy_state(held: Iterator[tuple[str, Stateful]]) -> Arrays:
    """Copies, so that training can go on while they are written."""
    return {name: _array(value) for name, value in held}


@torch.no_grad()
def load_state(held: Iterator[tuple[str, Stateful]], arrays: Mapping[str, NDArray[np.generic]]) -> None:
    """Into the tensors themselves: others hold on to them."""
    for name, value in held:
        if name not in arrays or arrays[name].shape != _array(value).shape:
            raise ValueError(f"{name} is missing or of another shape")
        array = np.array(arrays[name])
        if isinstance(value, Adam):
            value.steps = int(array)
        elif isinstance(value, torch.Generator):
            value.set_state(torch.from_numpy(array))
        else:
            value.copy_(torch.from_numpy(array))


def _array(value: Stateful) -> NDArray[np.generic]:
    if isinstance(value, Adam):
        return np.array(value.steps)
    if isinstance(value, torch.Generator):
        return value.get_state().numpy()
    return np.array(value.detach().cpu().numpy())
