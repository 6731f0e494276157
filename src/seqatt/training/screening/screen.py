"""What is known of a trial's rows before training: a sample of them, the univariate test and the score penalty."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from seqatt.data.tables.table_data import TableData
from seqatt.training.defaults import penalty_share
from seqatt.training.screening.row_sample import RowSample, draw_sample
from seqatt.training.screening.score_penalty import ScorePenalty
from seqatt.training.screening.univariate_test import univariate_test


class Screening(NamedTuple):
    """A sample of the rows, the score penalty of the trial if it has one, and facts for ``Selection.settings``.

    ``explained`` is the share of the target that each feature (d,) explains by itself, None if they were not tested.
    """

    sample: RowSample | None = None
    score_penalty: ScorePenalty | None = None
    explained: NDArray[np.float64] | None = None
    facts: Mapping[str, Any] = MappingProxyType({})


def screen(
    data: TableData,
    threshold: float,
    rows: int,
    device: torch.device,
    table: Tensor | None = None,
    subset: NDArray[np.int64] | None = None,
) -> Screening:
    """The penalty of features that fall short of ``threshold`` in the univariate test; 0 disables the test.

    Features beyond the threshold have a penalty of zero, so that their scores come from attention alone. The penalty
    is None where it is the same for all features. The data may be a sample of files of ``rows`` rows; ``table`` are its
    columns on the device, where they are there already, and ``subset`` the rows that the trial sees, if not all.
    """
    sample = draw_sample(data, subset, table=table, device=device)
    if not threshold:
        return Screening(sample)
    log_q, explained = univariate_test(sample)
    shortfall = np.minimum(log_q, threshold) - threshold
    differs = len(np.unique(shortfall[~sample.data.constant])) > 1
    share = penalty_share(rows, data.encoded_columns)
    penalty = ScorePenalty(sample, shortfall, share) if differs else None
    return Screening(sample, penalty, explained, {"min_q_value": float(f"{10.0 ** -log_q.max():.3g}")})
