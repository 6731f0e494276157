"""The tensors that training changes: listed by name, copied into arrays, and loaded back in place."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from seqatt.training.backend.adam import Adam

Arrays = dict[str, NDArray[np.generic]]
Stateful = Tensor | Adam | torch.Generator
NamedState = Iterable[tuple[str, Stateful]]


def named_adam_state(name: str, adam: Adam) -> Iterator[tuple[str, Stateful]]:
    for kind in ("params", "exp_avg", "exp_avg_sq"):
        for number, tensor in enumerate(getattr(adam, kind)):
            yield f"{name}.{kind}{number}", tensor
    yield f"{name}.count", adam.step_count
    yield f"{name}.steps", adam


def named_attributes(owner: object) -> Iterator[tuple[str, Stateful]]:
    """The tensors, generators and optimizers among an object's attributes, also in lists."""
    for name, value in sorted(vars(owner).items()):
        for number, item in enumerate(value if isinstance(value, list) else [value]):
            if isinstance(item, Adam):
                yield from named_adam_state(name, item)
            elif isinstance(item, Tensor | torch.Generator):
                yield f"{name}{number}", item


def copy_state(state: NamedState) -> Arrays:
    """Copies on the host, so that training can continue while they are written."""
    return {name: _to_array(value) for name, value in state}


@torch.no_grad()
def load_state(state: NamedState, arrays: Mapping[str, NDArray[np.generic]]) -> None:
    """Copy ``arrays`` into the tensors in place, since other objects refer to them."""
    for name, value in state:
        if name not in arrays or arrays[name].shape != _to_array(value).shape:
            raise ValueError(f"{name} is missing or has another shape")
        array = np.array(arrays[name])
        if isinstance(value, Adam):
            value.steps = int(array)
        elif isinstance(value, torch.Generator):
            value.set_state(torch.from_numpy(array))
        else:
            value.copy_(torch.from_numpy(array))


def _to_array(value: Stateful) -> NDArray[np.generic]:
    if isinstance(value, Adam):
        return np.array(value.steps)
    if isinstance(value, torch.Generator):
        return value.get_state().numpy()
    return np.array(value.detach().cpu().numpy())


def get_rng_state(device: torch.device) -> list[Tensor]:
    states = [torch.get_rng_state()]
    return [*states, torch.cuda.get_rng_state(device)] if device.type == "cuda" else states


def set_rng_state(states: list[Tensor], device: torch.device) -> None:
    torch.set_rng_state(states[0])
    if device.type == "cuda":
        torch.cuda.set_rng_state(states[1], device)


def rng_state_of_seed(seed: int, device: torch.device) -> list[Tensor]:
    devices = [device] if device.type == "cuda" else []
    with torch.random.fork_rng(devices):
        torch.manual_seed(seed)
        return get_rng_state(device)
