"""``FittedModel``: networks retrained on selected columns, with everything that is needed to predict other rows."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from seqatt.api.evaluation.reading import only_columns
from seqatt.api.read_data import read_table
from seqatt.data.tables.column_roles import read_columns
from seqatt.data.tables.encoding import SparseColumns
from seqatt.data.tables.options import TableOptions, Task
from seqatt.json_files import write_atomically
from seqatt.prediction.inputs import OTHER, ModelInputs
from seqatt.prediction.module import PredictionModule
from seqatt.prediction.train import NETWORKS, NO_COLUMNS, SHARES, constant_module, train_module
from seqatt.progress import progress_bar
from seqatt.version import __version__

PREDICTED_ROWS = 8192  # rows per forward pass, which bounds memory


@dataclass(frozen=True)
class FittedModel:
    """A trained module, the columns it takes, and what its outputs are.

    ``classes`` are the labels of a binary or multiclass target; ``outputs`` is their number, or that of the columns of
    a numeric target or of one of several labels.
    """

    inputs: ModelInputs
    module: PredictionModule
    task: Task
    classes: NDArray[Any] | None
    outputs: int

    def predict(self, X: Any, *, selected_only: bool = False) -> NDArray[np.float64]:
        """Probabilities (rows, classes), or predicted values (rows, outputs).

        ``X`` has all columns of the training table or, with ``selected_only``, those of the model.
        """
        return self._apply(self.module, X, selected_only)

    def predict_logits(self, X: Any, *, selected_only: bool = False) -> NDArray[np.float64]:
        """Logits, from which probabilities are made: (rows, classes), or (rows, 1) for two classes."""
        return self._apply(self.module.outputs, X, selected_only)

    @torch.no_grad()
    def _apply(self, function: Any, X: Any, selected_only: bool) -> NDArray[np.float64]:
        numbers, codes = map(torch.from_numpy, self.inputs.read(X, selected_only=selected_only))
        blocks = zip(*(torch.split(part, PREDICTED_ROWS) for part in (numbers, codes)), strict=True)
        return np.concatenate([function(*block).numpy() for block in blocks])

    def export(self, path: str | os.PathLike[str]) -> None:
        """Write a file that predicts without seqatt: ``.onnx`` or ``.pt2``, completely or not at all."""
        path = Path(path)
        if path.suffix not in (".onnx", ".pt2"):
            raise ValueError(f"path: must end with .onnx or .pt2, got {str(path)!r}")
        if not self.inputs.columns:
            raise ValueError(
                "export: no feature was selected, so the model has no inputs; it predicts a constant"
            )
        if path.suffix == ".onnx":
            try:
                from seqatt.prediction.onnx_file import onnx_bytes
            except ModuleNotFoundError:
                raise ModuleNotFoundError(
                    "export: an .onnx file needs the package onnx; pip install 'seqatt[onnx]', or write a .pt2 file"
                ) from None

            write_atomically(path, onnx_bytes(self))
        else:
            from seqatt.prediction.torch_file import program_bytes

            write_atomically(path, program_bytes(self))

    def metadata(self) -> dict[str, Any]:
        """Description of the model that its file holds, for JSON."""
        return {
            "seqatt": __version__,
            "task": self.task,
            "features": self.inputs.names_in_table,
            "numbers": [self.inputs.names[position] for position in self.inputs.numeric],
            "categories": self.inputs.category_codes(),
            "other_code": OTHER,
            "classes": None if self.classes is None else self.classes.tolist(),
            "networks": NETWORKS,
        }


def fit_model(
    X: Any,
    y: Any,
    sample_weight: Any,
    columns: Sequence[int] | None,
    options: TableOptions,
    network: dict[str, Any],
    seed: int,
    *,
    progress: bool = False,
) -> FittedModel:
    """Train networks on these columns of a table, by default on all; ``network`` are options such as ``hidden``."""
    # What was decided about text was reported when the features were selected.
    roles = read_columns(X, y, sample_weight, options.ignore, options.column_types, ("X", "y"), report=False)
    # Neither the order of selection nor that of the columns of a data frame must matter.
    names = roles.table.names
    chosen = tuple(sorted(range(len(names)) if columns is None else columns))
    if roles.table.named:
        chosen = tuple(sorted(chosen, key=names.__getitem__))
    # Without a feature, all columns are read for the sake of the target and the weights.
    table = roles.table.select(chosen) if chosen else roles.table
    log1p = only_columns(options.log1p, set(table.names))
    weights = roles.sample_weight
    # Every row is held out once, whatever its time: the model is for rows that come later anyway.
    own: dict[str, Any] = {"groups": None, "ignore": (), "column_types": {}, "time": None}
    options = replace(options, sample_weight=weights, log1p=log1p, **own)
    data = read_table(table, roles.y, options, "mixed", by_name=False)
    if isinstance(data.columns, SparseColumns):
        data = replace(data, columns=data.columns.to_dense(np.arange(data.rows)))
    if chosen:
        with progress_bar("Training", NETWORKS * len(SHARES), shown=progress) as advance:
            module = train_module(data, network, seed, advance)
        inputs = ModelInputs.of(table, chosen, data.encoder)
    else:
        module, inputs = constant_module(data), ModelInputs.of(table.select(()), (), NO_COLUMNS)
    target = data.target
    outputs = target.outputs if target.classes is None else len(target.classes)
    return FittedModel(inputs, module, target.task, target.classes, outputs)
