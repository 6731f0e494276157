"""From a source and options to lanes ready to run: which body, on which device, from which seeds."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from seqatt.neural.body import Body
from seqatt.neural.budget import batch_size_for, default_members, rows_learnt
from seqatt.neural.crew import Crew
from seqatt.neural.doubt import Doubt
from seqatt.neural.engine import Lane
from seqatt.neural.feed import Draws, Feed
from seqatt.neural.gates.attention import Attention
from seqatt.neural.gates.gate import Gate
from seqatt.neural.masks import Mask
from seqatt.neural.noise import Noise
from seqatt.neural.options import Training
from seqatt.neural.owner import Owner
from seqatt.neural.rows import Rows
from seqatt.neural.separate import Separate, mlp
from seqatt.neural.shape import Shape
from seqatt.neural.stacked import Stacked
from seqatt.neural.state import State
from seqatt.neural.waking import waking
from seqatt.source import Source, SparseColumns

WEIGHTS, ORDER, NOISE, PARTS, GATE = range(5)  # streams of randomness a seed has


@dataclass(frozen=True)
class Member:
    """One model of a trial's committee, or one of several variants of it, which draw the same."""

    seed: int
    number: int
    variant: int = 0

    def generator(self, stream: int) -> torch.Generator:
        return torch.Generator().manual_seed(self._state(stream))

    def module_seed(self) -> int:
        """For randomness that is a module's own; the first member's is the trial's seed."""
        return self.seed if self.number == 0 else self._state(WEIGHTS)

    def _state(self, stream: int) -> int:
        """Streams of one seed have nothing to do with each other or with other seeds."""
        words = [self.seed, stream, self.number] if self.number else [self.seed, stream]
        return int(np.random.SeedSequence(words).generate_state(1, np.uint64)[0]) & (2**63 - 1)


MakeGate = Callable[[Body, Sequence[Member]], Gate]


def make_lanes(
    source: Source,
    seeds: Sequence[int],
    training: Training,
    device: torch.device,
    make_gate: MakeGate | None = None,
    *,
    decay: float = 0.0,
    members: int = 1,
    variants: int = 1,
    dropout: float = 0.0,
    scaled: bool = True,
    doubt: Doubt | None = None,
) -> list[Lane]:
    """One lane for all trials where kernels are shared, else one each.

    ``decay`` pulls the first-layer weights of unselected features towards zero at every step; ``dropout``
    is that of inputs, ``scaled`` whether those that stay make up for it; ``doubt`` speaks against
    features before any training. Several ``variants`` of each trial are trials of their own, one after the
    other, judged on the same rows, from which none of them learns.
    """
    rows = Rows(source, device)
    owner = Owner(torch.from_numpy(source.owner).to(device), source.features)
    shared = training.built_in and device.type != "cpu"
    parts_dealt = members if variants == 1 else default_members(source.rows)
    batch_size = batch_size_for(source.rows, training.batch_size, parts_dealt)
    cells = batch_size * len(source.owner)
    noise = Noise(dropout, cells, device, scaled=scaled) if dropout else None  # one for all
    lanes = []
    each = [(seed, variant) for seed in seeds for variant in range(variants)]
    for trials in [each] if shared else [[one] for one in each]:
        committee = [
            (Member(seed, i, variant), parts)
            for seed, variant in trials
            for i, parts in _deal(source, seed, parts_dealt)[:members]
        ]
        crews = [committee] if shared else [[one] for one in committee]
        state = State(len(trials), source.constant, device, repeats=members if shared else 1)
        made = []
        for crew in crews:
            body = _make_body(source, [member for member, _ in crew], training, device)
            if isinstance(body, Separate):
                _try_out(body, source, rows, training)
            draws = [Draws(m.generator(ORDER), m.generator(NOISE), *parts) for m, parts in crew]
            feed = Feed(rows, batch_size, draws, noise)
            gate = None if make_gate is None else make_gate(body, [member for member, _ in crew])
            made.append(Crew(body, gate, feed, state, owner, decay, members))
        lanes.append(Lane(made, state, doubt))
    return lanes


def _deal(source: Source, seed: int, members: int) -> list[tuple[int, tuple[Tensor | None, Tensor | None]]]:
    """The rows each member learns from and those it is judged on.

    A model alone has all rows for both. A committee's rows are dealt into one part more than it has
    members; each member is judged on a part of its own, which it does not learn from.
    """
    size = source.rows - rows_learnt(source.rows, members)
    if size == 0:
        return [(i, (None, None)) for i in range(members)]
    order = torch.randperm(source.rows, generator=Member(seed, 0).generator(PARTS))
    judged = [order[i * size : (i + 1) * size] for i in range(members)]
    learns = [torch.cat([order[: i * size], order[(i + 1) * size :]]) for i in range(members)]
    return list(enumerate(zip(learns, judged, strict=True)))


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


def _make_body(source: Source, members: Sequence[Member], training: Training, device: torch.device) -> Body:
    target = source.target
    outputs = target.outputs
    if target.task == "binary" and (
        isinstance(training.loss, nn.CrossEntropyLoss) or training.loss is cross_entropy
    ):
        outputs = 2  # of a single output it would always be zero
    smoothing = training.label_smoothing
    if smoothing and target.task == "regression":
        raise ValueError("label_smoothing: is for classes, and the target has numbers")
    shape = Shape(
        len(source.owner), training.hidden, outputs, training.activation, training.dropout, smoothing
    )
    if training.built_in:
        generators = [member.generator(WEIGHTS) for member in members]
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
    seed = members[0].module_seed()
    return Separate(make_module, target.task, seed, make_optimizer, device, training.loss, smoothing)


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
