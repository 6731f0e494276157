"""Checks of a user's own model, loss and optimizer on a few rows, before any training."""

from __future__ import annotations

import copy
import warnings
from typing import TYPE_CHECKING

import torch
from torch import nn

from seqatt.data.tables.table_data import TableData
from seqatt.training.loaders.batch import Batch, DeviceTable
from seqatt.training.models.torch_module import TorchModule
from seqatt.training.options import TrainingOptions

if TYPE_CHECKING:  # files need pyarrow, tables do not
    from seqatt.data.files.file_data import FileData

EMBEDDING_HINT = (
    "a model gets numbers, scaled and then weighted by attention, not codes for an nn.Embedding; say inputs='raw' for "
    "a model that embeds categories, leave model out, as the built-in network embeds them, or put the layer "
    "seqatt.SequentialAttention behind your embeddings"
)
FUNCTION_HINT = (
    "pass a function (columns, outputs) that returns a module, to make one that fits the columns of the table, or "
    "those that are evaluated"
)
PROBES = 8  # with other parameters, for which outputs between 0 and 1 are no coincidence
ROWS = 64  # on which models and losses are examined


def check_own_model(
    model: TorchModule, data: TableData | FileData, table: DeviceTable, options: TrainingOptions
) -> None:
    """Run the model on a few rows before any training, so that a model that does not fit the data is an error."""
    try:
        out = model.dry_run(_rows(table, ROWS))
    except ValueError as error:
        if options.own_inputs == "raw":
            raise
        embeds = any(isinstance(m, nn.Embedding | nn.EmbeddingBag) for m in model.module.modules())
        hint = EMBEDDING_HINT if embeds else FUNCTION_HINT
        if not str(error).startswith("model:") or not (embeds or isinstance(options.model, nn.Module)):
            raise
        raise ValueError(f"{error}; {hint}") from error.__cause__
    if not any(parameter.requires_grad for parameter in model.module.parameters()):
        warnings.warn(
            "model: has no parameter that requires a gradient, so that it stays as it is, and only the weights of the "
            "features are trained; if that is wrong, call .requires_grad_(True) on it",
            stacklevel=2,
        )
    batch = model.embed(_rows(table, ROWS))
    model.blend_rows = model.is_scale_invariant(batch)
    target = data.target
    widths = {target.outputs, 2} if target.task == "binary" else {target.outputs}
    if options.loss is not None:
        model.check_custom_loss(batch)
        return
    if target.loss.smoothed:
        _warn_about_probabilities(model, batch.x, target.task)
    if out.ndim != 2 or out.shape[-1] not in widths:
        raise ValueError(
            f"model: returns shape {tuple(out.shape)} for {len(out)} rows, but the {target.task} target "
            f"needs {target.outputs} output(s) per row"
        )


def _rows(table: DeviceTable, count: int) -> Batch:
    """Rows with targets from the smallest to the largest, so that there are some of a rare class."""
    count = min(count, table.count)
    by_target = table.y.reshape(table.count, -1)[:, 0].argsort(stable=True)
    places = torch.arange(count, device=table.device) * (table.count - 1) // max(1, count - 1)
    return table.batch(by_target[places][None])


def _warn_about_probabilities(model: TorchModule, x: torch.Tensor, task: str) -> None:
    """Warn if the outputs are probabilities, because the built-in loss applies a sigmoid or softmax itself.

    Probabilities lie between 0 and 1 whatever the parameters are; the logits of an untrained model may by chance.
    """
    name = _last_activation(model.predict(x, torch.ones(1, x.shape[2], device=x.device))[0], task)
    if name is None:
        return
    probe, generator = copy.deepcopy(model.module).eval(), torch.Generator().manual_seed(0)
    with torch.random.fork_rng([x.device] if x.device.type == "cuda" else []), torch.no_grad():
        for _ in range(PROBES):
            for parameter in filter(torch.is_floating_point, probe.parameters()):
                parameter.add_(torch.randn(parameter.shape, generator=generator).to(parameter))
            try:
                out = probe(*model.inputs(x[0], torch.ones_like(x[0, 0])))
            except Exception:  # a model that needs parameters of some kind; the warning is not worth an error
                return
            if torch.isfinite(out).all() and _last_activation(out, task) is None:
                return
    warnings.warn(
        f"model: its outputs look like probabilities, and the built-in loss applies a {name} itself, so that it "
        f"would be applied twice; leave out the last {name}, or pass a loss of your own",
        stacklevel=2,
    )


def _last_activation(out: torch.Tensor, task: str) -> str | None:
    """The activation whose values the outputs (B, o) or (B,) may be: "softmax", "sigmoid" or None."""
    if not bool(((out >= 0) & (out <= 1)).all()):
        return None
    if task == "multilabel" or (task == "binary" and (out.ndim == 1 or out.shape[-1] == 1)):
        return "sigmoid"
    return "softmax" if torch.allclose(out.sum(-1), torch.ones_like(out[..., 0]), atol=1e-3) else None
