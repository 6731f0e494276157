"""A fitted model as a ``torch.export`` program."""

from __future__ import annotations

import io
import json
from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from seqatt.prediction.fitted_model import FittedModel

METADATA = "metadata.json"


def program_bytes(model: FittedModel) -> bytes:
    """The content of a ``.pt2`` file: ``program(numbers, codes)``, with the metadata as the extra file METADATA.

    ``numbers`` (rows, numbers) are float64, NaN where missing, and ``codes`` (rows, categories) int64: both in the
    order of the metadata, which has the code of every value.
    """
    inputs = model.inputs
    example = (
        torch.zeros(2, len(inputs.numeric), dtype=torch.float64),
        torch.zeros(2, len(inputs.categories)).long(),
    )
    rows = torch.export.Dim("rows")
    # Of several inputs with the same number of rows, each has the dimension.
    program = torch.export.export(
        model.module.eval(), example, dynamic_shapes={"numbers": {0: rows}, "codes": {0: rows}}
    )
    file = io.BytesIO()
    torch.export.save(program, file, extra_files={METADATA: json.dumps(model.metadata())})
    return file.getvalue()
