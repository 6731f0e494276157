"""From a source and options to lanes ready to run: which body, on which device, from which seeds."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch import nn
from torch.nn.functional import cross_entropy

from seqatt.neural.body import Body
from seqatt.neural.budget import batch_size_for
from seqatt.neural.engine import Lane
from seqatt.neural.feed import Feed
from seqatt.neural.gates.attention import Attention
from seqatt.neural.gates.gate import Gate
from seqatt.neural.masks import Mask
from seqatt.neural.options import Training
from seqatt.neural.rows import Rows
from seqatt.neural.separate import Separate, mlp
from seqatt.neural.shape import Shape
from seqatt.neural.stacked import Stacked
from seqatt.neural.state import State
from seqatt.neural.waking import waking
from seqatt.source import Source, SparseColumns

MakeGate = Callable[[int], Gate]
WEIGHTS, ORDER = 0, 1  # streams of randomness a seed has


def make_lanes(
    source: Source,
    seeds: Sequence[int],
    training: Training,
    device: torch.device,
    make_gate: MakeGate | None = None,
    decay: float = 0.0,
) -> list[Lane]:
    """One lane for all trials where kernels are shared, else one each.

    ``decay`` pulls the first-layer weights of unselected features towards zero at every step.
    """
    rows = Rows(source, device)
    owner = torch.from_numpy(source.owner).to(device)
    shared = training.built_in and device.type != "cpu"
    groups = [list(seeds)] if shared else [[seed] for seed in seeds]
    batch_size = batch_size_for(source.rows, training.batch_size)
    lanes = []
    for group in groups:
        body = _make_body(source, group, training, device)
        if isinstance(body, Separate):
            _try_out(body, source, rows, training)
        feed = Feed(rows, batch_size, [_generator(seed, ORDER) for seed in group])
        gate = None if make_gate is None else make_gate(len(group))
        state = State(len(group), source.constant, device)
        lanes.append(Lane(len(group), body, gate, feed, state, owner, decay))
    return lanes


def make_attention(trials: int, features: int, mask: Mask, rate: float, device: torch.device) -> Attention:
    fast = waking(device).result()
    served = fast and fast.serves_gate(mask, features) and fast.gate_works(device)
    gate: Attention = (fast.FusedAttention if served else Attention)(trials, features, mask, rate, device)
    return gate


def work_of(source: Source, training: Training) -> int:
    """Multiply-adds in a step's largest product: what the number of threads is chosen by."""
    batch = batch_size_for(source.rows, training.batch_size)
    width = 256 if training.model is not None else max(training.hidden, default=1)
    return batch * len(source.owner) * width


def _make_body(source: Source, seeds: Sequence[int], training: Training, device: torch.device) -> Body:
    target = source.target
    outputs = target.outputs
    if target.task == "binary" and (
        isinstance(training.loss, nn.CrossEntropyLoss) or training.loss is cross_entropy
    ):
        outputs = 2  # of a single output it would always be zero
    shape = Shape(len(source.owner), training.hidden, outputs, training.activation, training.dropout)
    if training.built_in:
        generators = [_generator(seed, WEIGHTS) for seed in seeds]
        rate = training.learning_rate
        fast = None if isinstance(source.columns, SparseColumns) else waking(device).result()
        served = fast and fast.serves_body(shape) and fast.body_works(shape, target.task, device)
        make = fast.FusedMLP if fast and served else Stacked
        body: Body = make(shape, target.task, generators, rate, device)
        return body
    model = training.model

    def make_module() -> nn.Module:
        if model is None:
            return mlp(shape, batch_norm=training.batch_norm)
        if isinstance(model, nn.Module):
            return copy.deepcopy(model)
        return model(shape.columns, shape.outputs)

    def adam(params: object) -> torch.optim.Optimizer:
        return torch.optim.Adam(params, lr=training.learning_rate)  # type: ignore[arg-type]

    make_optimizer = training.optimizer or adam
    return Separate(make_module, target.task, seeds[0], make_optimizer, device, training.loss)


def _try_out(body: Separate, source: Source, rows: Rows, training: Training) -> None:
    """One look at what the model gives, so that a misfit is an error before any work."""
    out = body.try_out(rows.take(torch.arange(min(2, rows.count), device=rows.device)[None]))
    some = rows.take(torch.arange(min(64, rows.count), device=rows.device)[None])
    body.blends = body.undoes_scaling(some.x[0])
    target = source.target
    widths = {target.outputs, 2} if target.task == "binary" else {target.outputs}
    if training.loss is None and (out.ndim != 2 or out.shape[-1] not in widths):
        raise ValueError(
            f"model: returns shape {tuple(out.shape)} for 2 rows, but the {target.task} target "
            f"needs {target.outputs} output(s) a row"
        )


def _generator(seed: int, stream: int) -> torch.Generator:
    """Streams of one seed that have nothing to do with each other or with other seeds."""
    state = np.random.SeedSequence([seed, stream]).generate_state(1, np.uint64)[0]
    return torch.Generator().manual_seed(int(state) & (2**63 - 1))
