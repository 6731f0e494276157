"""Models for data: the built-in network or a user's own, and what their columns are."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import nn
from torch.nn.functional import cross_entropy

from seqatt.data.tables.table_data import SparseColumns, TableData
from seqatt.training.ensemble import WEIGHTS, Member
from seqatt.training.feature_columns import FeatureColumns
from seqatt.training.kernels import start_device
from seqatt.training.loaders.batch import DeviceTable
from seqatt.training.models.architecture import MLPShape
from seqatt.training.models.embeddings import Embeddings, default_embedding_width
from seqatt.training.models.mlp import MLP
from seqatt.training.models.model import Model
from seqatt.training.models.module_mlp import build_mlp
from seqatt.training.models.torch_module import TorchModule
from seqatt.training.options import TrainingOptions
from seqatt.training.reducer import Reducer

if TYPE_CHECKING:  # files need pyarrow, tables do not
    from seqatt.data.files.file_data import FileData

OWN_MODEL_WIDTH = 256  # hidden units assumed of a user's own model, to choose the number of threads


def make_feature_columns(
    data: TableData | FileData, options: TrainingOptions, device: torch.device
) -> FeatureColumns:
    """The features of a model's columns: those of the data, then those of the embeddings."""
    embedded = np.repeat(data.coded_features, embedding_width(data, options))
    features = np.concatenate([data.feature_of, embedded])
    return FeatureColumns(torch.from_numpy(features).to(device), data.features)


def embedding_width(data: TableData | FileData, options: TrainingOptions) -> int:
    """The width of all embeddings: the option or the default."""
    return options.embedding_dim or default_embedding_width(data.code_counts)


def count_model_columns(data: TableData | FileData, options: TrainingOptions) -> int:
    """The inputs of a model: columns and embeddings."""
    return len(data.feature_of) + len(data.code_counts) * embedding_width(data, options)


def largest_product(data: TableData | FileData, options: TrainingOptions, batch_size: int) -> int:
    """Multiply-adds of a step's largest matrix product, by which the number of threads is chosen."""
    width = OWN_MODEL_WIDTH if options.model is not None else max(options.hidden, default=1)
    return batch_size * count_model_columns(data, options) * width


def make_model(
    data: TableData | FileData,
    members: Sequence[Member],
    options: TrainingOptions,
    device: torch.device,
    reducer: Reducer | None = None,
) -> Model:
    """T models, one per member."""
    target = data.target
    outputs = target.outputs
    if target.task == "binary" and (
        isinstance(options.loss, nn.CrossEntropyLoss) or options.loss is cross_entropy
    ):
        outputs = 2  # the cross entropy of a single output is always zero
    smoothing = options.label_smoothing
    if smoothing and target.task == "regression":
        raise ValueError("label_smoothing: is for classes, and the target is numeric; leave it at 0")
    columns, width = count_model_columns(data, options), embedding_width(data, options)
    shape = MLPShape(columns, options.hidden, outputs, options.activation, options.dropout, smoothing)
    if options.built_in:
        generators = [member.generator(WEIGHTS) for member in members]
        embeddings = Embeddings(data.code_counts, width, len(members), device) if data.code_counts else None
        initial = data.target_column.initial_output if not isinstance(data, TableData) else None
        alone = reducer is None or reducer.ranks == 1
        # Kernels gather rows of a dense table.
        dense = not isinstance(data, TableData) or not isinstance(data.columns, SparseColumns)
        kernels = start_device(device).result() if dense and alone and embeddings is None else None
        supported = kernels and kernels.supports_mlp(shape) and kernels.mlp_works(shape, target.task, device)
        make_mlp = kernels.FusedMLP if kernels and supported else MLP
        built_in: Model = make_mlp(
            shape,
            target.task,
            generators,
            options.learning_rate,
            device,
            embeddings=embeddings,
            reducer=reducer,
            initial_output=None if initial is None else torch.from_numpy(initial).float().to(device),
        )
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
    return TorchModule(
        make_module, target.task, seed, make_optimizer, device, options.loss, smoothing, reducer
    )


def check_own_model(
    model: TorchModule, data: TableData | FileData, table: DeviceTable, options: TrainingOptions
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
