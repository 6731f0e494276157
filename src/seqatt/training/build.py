"""From a table and options to trial groups that are ready to train."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence

import torch
from torch import nn
from torch.nn.functional import cross_entropy

from seqatt.data.tables.table_data import SparseColumns, TableData
from seqatt.training.batch import DeviceTable
from seqatt.training.defaults import default_ensemble_size
from seqatt.training.ensemble import NOISE, ORDER, WEIGHTS, Member, split_rows
from seqatt.training.feature_columns import FeatureColumns
from seqatt.training.gates.gate import Gate
from seqatt.training.input_dropout import InputDropout
from seqatt.training.kernels import start_device
from seqatt.training.loader import InMemoryLoader, MemberData
from seqatt.training.loop import TrialGroup
from seqatt.training.models.architecture import MLPShape
from seqatt.training.models.mlp import MLP
from seqatt.training.models.model import Model
from seqatt.training.models.torch_module import TorchModule, build_mlp
from seqatt.training.options import TrainingOptions
from seqatt.training.screening.score_penalty import ScorePenalty
from seqatt.training.selection_state import SelectionState
from seqatt.training.trainer import Trainer

OWN_MODEL_WIDTH = 256  # hidden units assumed of a user's own model, to choose the number of threads

MakeGate = Callable[[Model, Sequence[Member]], Gate]


def make_trial_groups(
    data: TableData,
    seeds: Sequence[int],
    options: TrainingOptions,
    device: torch.device,
    batch_size: int,
    make_gate: MakeGate | None = None,
    *,
    weight_decay: float = 0.0,
    members: int = 1,
    variants: int = 1,
    input_dropout: float = 0.0,
    rescale: bool = True,
    score_penalty: ScorePenalty | None = None,
) -> list[TrialGroup]:
    """One trial group for all trials where they share kernels (the built-in model on a GPU), else one group per trial.

    Parameters
    ----------
    weight_decay : decay per step of the first-layer weights of unselected features.
    members : models per trial.
    variants : models per member that differ in the strength of a penalty. Each is a trial of its own; all of them
        hold out the same rows.
    input_dropout, rescale : probability of dropping an input; whether the other inputs are scaled up in return.
    score_penalty : gives the penalties (0 or less) that are added to the scores.
    """
    table = DeviceTable(data, device)
    columns = FeatureColumns(torch.from_numpy(data.feature_of).to(device), data.features)
    together = options.built_in and device.type != "cpu"
    parts = members if variants == 1 else default_ensemble_size(data.rows)
    cells = batch_size * len(data.feature_of)
    dropout = InputDropout(input_dropout, cells, device, rescale=rescale) if input_dropout else None
    all_trials = [(seed, variant) for seed in seeds for variant in range(variants)]
    groups = []
    for trials in [all_trials] if together else [[trial] for trial in all_trials]:
        ensemble = [
            (Member(seed, number, variant), rows)
            for seed, variant in trials
            for number, rows in enumerate(split_rows(data.rows, seed, parts)[:members])
        ]
        state = SelectionState(len(trials), data.constant, device, repeats=members if together else 1)
        trainers = []
        for models in [ensemble] if together else [[one] for one in ensemble]:
            trained = [member for member, _ in models]
            model = _make_model(data, trained, options, device)
            if isinstance(model, TorchModule):
                _check_own_model(model, data, table, options)
            member_data = [MemberData(m.generator(ORDER), m.generator(NOISE), *rows) for m, rows in models]
            loader = InMemoryLoader(table, batch_size, member_data, dropout)
            gate = None if make_gate is None else make_gate(model, trained)
            trainers.append(Trainer(model, gate, loader, state, columns, weight_decay, members))
        groups.append(TrialGroup(trainers, state, score_penalty))
    return groups


def largest_product(data: TableData, options: TrainingOptions, batch_size: int) -> int:
    """Multiply-adds of a step's largest matrix product, by which the number of threads is chosen."""
    width = OWN_MODEL_WIDTH if options.model is not None else max(options.hidden, default=1)
    return batch_size * len(data.feature_of) * width


def _make_model(
    data: TableData, members: Sequence[Member], options: TrainingOptions, device: torch.device
) -> Model:
    target = data.target
    outputs = target.outputs
    if target.task == "binary" and (
        isinstance(options.loss, nn.CrossEntropyLoss) or options.loss is cross_entropy
    ):
        outputs = 2  # the cross entropy of a single output is always zero
    smoothing = options.label_smoothing
    if smoothing and target.task == "regression":
        raise ValueError("label_smoothing: is for classes, and the target is numeric; leave it at 0")
    shape = MLPShape(
        len(data.feature_of), options.hidden, outputs, options.activation, options.dropout, smoothing
    )
    if options.built_in:
        generators = [member.generator(WEIGHTS) for member in members]
        # Kernels gather rows of a dense table.
        kernels = None if isinstance(data.columns, SparseColumns) else start_device(device).result()
        supported = kernels and kernels.supports_mlp(shape) and kernels.mlp_works(shape, target.task, device)
        make_mlp = kernels.FusedMLP if kernels and supported else MLP
        built_in: Model = make_mlp(shape, target.task, generators, options.learning_rate, device)
        return built_in
    own = options.model

    def make_module() -> nn.Module:
        if own is None:
            return build_mlp(shape, batch_norm=options.batch_norm)
        if isinstance(own, nn.Module):
            return copy.deepcopy(own)
        return own(shape.columns, shape.outputs)

    def make_adam(params: object) -> torch.optim.Optimizer:
        return torch.optim.Adam(params, lr=options.learning_rate)  # type: ignore[arg-type]

    make_optimizer = options.optimizer or make_adam
    seed = members[0].module_seed()
    return TorchModule(make_module, target.task, seed, make_optimizer, device, options.loss, smoothing)


def _check_own_model(
    model: TorchModule, data: TableData, table: DeviceTable, options: TrainingOptions
) -> None:
    """Run the model on a few rows before any training, so that a model that does not fit the data is an error."""
    out = model.dry_run(table.batch(torch.arange(min(2, table.count), device=table.device)[None]))
    some = table.batch(torch.arange(min(64, table.count), device=table.device)[None])
    model.blend_rows = model.is_scale_invariant(some.x[0])
    target = data.target
    widths = {target.outputs, 2} if target.task == "binary" else {target.outputs}
    if options.loss is None and (out.ndim != 2 or out.shape[-1] not in widths):
        raise ValueError(
            f"model: returns shape {tuple(out.shape)} for 2 rows, but the {target.task} target "
            f"needs {target.outputs} output(s) per row"
        )
