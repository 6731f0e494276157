"""From a source and options to lanes ready to run: which body, on which device, from which seeds."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from seqatt.data.tables.table_data import SparseColumns, TableData
from seqatt.training.backend.device import start_device
from seqatt.training.batch import DeviceTable
from seqatt.training.defaults import batch_size_for, default_members, rows_learnt
from seqatt.training.feature_columns import FeatureColumns
from seqatt.training.gates.attention import AttentionGate
from seqatt.training.gates.gate import Gate
from seqatt.training.input_dropout import InputDropout
from seqatt.training.loader import InMemoryLoader, MemberData
from seqatt.training.loop import TrialGroup
from seqatt.training.masks import Mask
from seqatt.training.models.architecture import MLPShape
from seqatt.training.models.mlp import MLP
from seqatt.training.models.model import Model
from seqatt.training.models.torch_module import TorchModule, build_mlp
from seqatt.training.options import TrainingOptions
from seqatt.training.screening.score_penalty import ScorePenalty
from seqatt.training.selection_state import SelectionState
from seqatt.training.trainer import Trainer

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


MakeGate = Callable[[Model, Sequence[Member]], Gate]


def make_trial_groups(
    source: TableData,
    seeds: Sequence[int],
    training: TrainingOptions,
    device: torch.device,
    make_gate: MakeGate | None = None,
    *,
    decay: float = 0.0,
    members: int = 1,
    variants: int = 1,
    dropout: float = 0.0,
    scaled: bool = True,
    score_penalty: ScorePenalty | None = None,
) -> list[TrialGroup]:
    """One lane for all trials where kernels are shared, else one each.

    ``decay`` pulls the first-layer weights of unselected features towards zero at every step; ``dropout``
    is that of inputs, ``scaled`` whether those that stay make up for it; ``score_penalty`` speaks against
    features before any training. Several ``variants`` of each trial are trials of their own, one after the
    other, judged on the same rows, from which none of them learns.
    """
    rows = DeviceTable(source, device)
    feature_of = FeatureColumns(torch.from_numpy(source.feature_of).to(device), source.features)
    shared = training.built_in and device.type != "cpu"
    parts_dealt = members if variants == 1 else default_members(source.rows)
    batch_size = batch_size_for(source.rows, training.batch_size, parts_dealt)
    cells = batch_size * len(source.feature_of)
    noise = InputDropout(dropout, cells, device, scaled=scaled) if dropout else None  # one for all
    groups = []
    each = [(seed, variant) for seed in seeds for variant in range(variants)]
    for trials in [each] if shared else [[one] for one in each]:
        committee = [
            (Member(seed, i, variant), parts)
            for seed, variant in trials
            for i, parts in _split_rows(source, seed, parts_dealt)[:members]
        ]
        trainers = [committee] if shared else [[one] for one in committee]
        state = SelectionState(len(trials), source.constant, device, repeats=members if shared else 1)
        made = []
        for trainer in trainers:
            model = _make_model(source, [member for member, _ in trainer], training, device)
            if isinstance(model, TorchModule):
                _try_out(model, source, rows, training)
            draws = [MemberData(m.generator(ORDER), m.generator(NOISE), *parts) for m, parts in trainer]
            loader = InMemoryLoader(rows, batch_size, draws, noise)
            gate = None if make_gate is None else make_gate(model, [member for member, _ in trainer])
            made.append(Trainer(model, gate, loader, state, feature_of, decay, members))
        groups.append(TrialGroup(made, state, score_penalty))
    return groups


def _split_rows(
    source: TableData, seed: int, members: int
) -> list[tuple[int, tuple[Tensor | None, Tensor | None]]]:
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


def make_attention(
    trials: int, features: int, mask: Mask, rate: float, device: torch.device
) -> AttentionGate:
    fast = start_device(device).result()
    served = fast and fast.supports_gate(mask, features) and fast.gate_works(device)
    gate: AttentionGate = (fast.FusedAttention if served else AttentionGate)(
        trials, features, mask, rate, device
    )
    return gate


def largest_product(source: TableData, training: TrainingOptions) -> int:
    """Multiply-adds in a step's largest product: what the number of threads is chosen by."""
    batch = batch_size_for(source.rows, training.batch_size)
    width = 256 if training.model is not None else max(training.hidden, default=1)
    return batch * len(source.feature_of) * width


def _make_model(
    source: TableData, members: Sequence[Member], training: TrainingOptions, device: torch.device
) -> Model:
    target = source.target
    outputs = target.outputs
    if target.task == "binary" and (
        isinstance(training.loss, nn.CrossEntropyLoss) or training.loss is cross_entropy
    ):
        outputs = 2  # of a single output it would always be zero
    smoothing = training.label_smoothing
    if smoothing and target.task == "regression":
        raise ValueError("label_smoothing: is for classes, and the target has numbers")
    shape = MLPShape(
        len(source.feature_of), training.hidden, outputs, training.activation, training.dropout, smoothing
    )
    if training.built_in:
        generators = [member.generator(WEIGHTS) for member in members]
        rate = training.learning_rate
        fast = None if isinstance(source.columns, SparseColumns) else start_device(device).result()
        served = fast and fast.supports_mlp(shape) and fast.mlp_works(shape, target.task, device)
        make = fast.FusedMLP if fast and served else MLP
        built_in: Model = make(shape, target.task, generators, rate, device)
        return built_in
    own = training.model

    def make_module() -> nn.Module:
        if own is None:
            return build_mlp(shape, batch_norm=training.batch_norm)
        if isinstance(own, nn.Module):
            return copy.deepcopy(own)
        return own(shape.columns, shape.outputs)

    def adam(params: object) -> torch.optim.Optimizer:
        return torch.optim.Adam(params, lr=training.learning_rate)  # type: ignore[arg-type]

    make_optimizer = training.optimizer or adam
    seed = members[0].module_seed()
    return TorchModule(make_module, target.task, seed, make_optimizer, device, training.loss, smoothing)


def _try_out(model: TorchModule, source: TableData, rows: DeviceTable, training: TrainingOptions) -> None:
    """One look at what the model gives, so that a misfit is an error before any work."""
    out = model.dry_run(rows.take(torch.arange(min(2, rows.count), device=rows.device)[None]))
    some = rows.take(torch.arange(min(64, rows.count), device=rows.device)[None])
    model.blends = model.is_scale_invariant(some.x[0])
    target = source.target
    widths = {target.outputs, 2} if target.task == "binary" else {target.outputs}
    if training.loss is None and (out.ndim != 2 or out.shape[-1] not in widths):
        raise ValueError(
            f"model: returns shape {tuple(out.shape)} for 2 rows, but the {target.task} target "
            f"needs {target.outputs} output(s) a row"
        )
