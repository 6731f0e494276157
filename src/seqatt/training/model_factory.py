"""Models for data: the built-in network or a user's own, and what their columns are."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import nn
from torch.nn.functional import cross_entropy

from seqatt.data.tables.table_data import SparseColumns, TableData
from seqatt.training.ensemble import WEIGHTS, Member
from seqatt.training.feature_columns import FeatureColumns
from seqatt.training.kernels import start_device
from seqatt.training.models.architecture import MLPShape, build_mlp
from seqatt.training.models.embeddings import Embeddings, default_embedding_width
from seqatt.training.models.mlp import MLP
from seqatt.training.models.model import Model
from seqatt.training.models.raw_module import RawModule
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
    """The width of all embeddings: the option or the default; a model that embeds codes itself has one weight each."""
    if options.own_inputs == "raw":
        return 1
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
    if smoothing and not target.loss.smoothed:
        raise ValueError("label_smoothing: is for classes, and the target is numeric; leave it at 0")
    columns, width = count_model_columns(data, options), embedding_width(data, options)
    shape = MLPShape(columns, options.hidden, outputs, options.activation, options.dropout, smoothing)
    if options.built_in:
        generators = [member.generator(WEIGHTS) for member in members]
        embeddings = _make_embeddings(data.code_counts, width, len(members), device)
        initial = data.target_column.initial_output if not isinstance(data, TableData) else None
        alone = reducer is None or reducer.ranks == 1
        # Kernels gather rows of a dense table.
        dense = not isinstance(data, TableData) or not isinstance(data.columns, SparseColumns)
        kernels = start_device(device).result() if dense and alone and embeddings is None else None
        task = target.task
        supported = kernels and kernels.supports_mlp(shape, task) and kernels.mlp_works(shape, task, device)
        make_mlp = kernels.FusedMLP if kernels and supported else MLP
        built_in: Model = make_mlp(
            shape,
            target.loss,
            generators,
            options.learning_rate,
            device,
            embeddings=embeddings,
            reducer=reducer,
            initial_output=None if initial is None else torch.from_numpy(initial).float().to(device),
        )
        return built_in
    own_model, raw = options.model, options.own_inputs == "raw"

    if isinstance(own_model, torch.jit.ScriptModule):
        raise TypeError(
            "model: a ScriptModule cannot be trained in copies; pass the nn.Module that it was made of"
        )

    def make_module() -> nn.Module:
        if own_model is None:
            return build_mlp(shape, batch_norm=options.batch_norm)
        if isinstance(own_model, nn.Module):
            return copy.deepcopy(own_model)
        if raw:
            return _call_own(own_model, len(data.feature_of), tuple(data.code_counts), shape.outputs)
        return _call_own(own_model, shape.columns, shape.outputs)

    make_optimizer = options.optimizer or partial(torch.optim.Adam, lr=options.learning_rate)
    seed = members[0].module_seed()
    arguments = make_module, target.loss, seed, make_optimizer, device, options.loss, smoothing, reducer
    return RawModule(data.code_counts, device, *arguments) if raw else TorchModule(*arguments)


def _make_embeddings(
    sizes: Sequence[int], width: int, models: int, device: torch.device
) -> Embeddings | None:
    """Embeddings of the categories; None if there are none."""
    if not sizes:
        return None
    kernels = start_device(device).result()
    fused = kernels is not None and kernels.embeddings_work(width, device)
    embeddings: Embeddings = (kernels.FusedEmbeddings if fused else Embeddings)(sizes, width, models, device)
    return embeddings


def _call_own(make_module: Callable[..., nn.Module], *sizes: Any) -> nn.Module:
    """The module that a user's own function or class makes of the numbers of its inputs and outputs."""
    called = ", ".join(map(str, sizes))
    with_what = (
        ("columns", "outputs") if len(sizes) == 2 else ("numbers", "values of each category", "outputs")
    )
    try:
        inspect.signature(make_module).bind(*sizes)
    except TypeError:
        name = getattr(make_module, "__name__", type(make_module).__name__)
        kind = "class" if isinstance(make_module, type) else "function"
        raise TypeError(
            f"model: the {kind} {name} cannot be called as {name}({called}), with the {' and the '.join(with_what)}; "
            f"pass a module, such as {name}(...), or a function of these that returns an nn.Module"
        ) from None
    except ValueError:  # a built-in function without a signature
        pass
    return make_module(*sizes)
