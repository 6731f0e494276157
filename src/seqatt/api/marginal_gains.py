"""What each feature would add to those already chosen, by training a model with it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from seqatt.algorithms.neural.greedy import scatter_values
from seqatt.api.lookup import find_positions
from seqatt.data.tables.containers import read_input_table
from seqatt.data.tables.table_data import Groups, TableData, read_table_data
from seqatt.progress import progress_bar
from seqatt.selection import Selection
from seqatt.training.backend.device import resolve_device
from seqatt.training.backend.threads import training_threads
from seqatt.training.batch import DeviceTable
from seqatt.training.candidates import CandidateModels, CandidateOptions, candidates_work
from seqatt.validation import check_seeds

Asked = Selection | Sequence[int | str] | NDArray[Any]


def marginal_gains(
    X: Any,
    y: Any,
    chosen: Asked = (),
    candidates: Asked | None = None,
    *,
    seed: int = 0,
    device: str = "auto",
    progress: bool = False,
    sample_weight: Any = None,
    class_weight: Mapping[Any, float] | str | None = None,
    groups: Groups | None = None,
    task: str | None = None,
    missing_indicator: bool = False,
    max_categories: int = 64,
    **training: Any,
) -> NDArray[np.float64]:
    """By how much each feature would lower the loss on held-out rows, beside the ``chosen`` ones.

    The gain of feature i given S is ``loss(S) - loss(S + i)``: a model is trained for every candidate, and
    one on S alone, all from the same weights and on the same batches. A fifth of the rows is held out; of
    small tables one fifth after the other, and the gain is the mean.

    Parameters
    ----------
    chosen, candidates : features by position or name, a mask over features, or a Selection; by default none,
        and all that are not chosen.
    seed, device, progress : as in ``select``.
    training : ``epochs`` (of each model), ``batch_size``, ``learning_rate``, ``hidden``, ``activation`` and
        ``folds`` (how many of the five parts of the rows are held out in turn).

    Returns
    -------
    A gain for each feature of ``X`` in its own order; NaN for those that were no candidates.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> import seqatt
    >>> X, y = load_wine(return_X_y=True)
    >>> gains = seqatt.marginal_gains(X, y, chosen=[6], epochs=20)
    >>> len(gains), bool(gains[12] > 0)
    (13, True)
    """
    unknown = sorted(set(training) - set(CandidateOptions.__dataclass_fields__))
    if unknown:
        known = ", ".join(CandidateOptions.__dataclass_fields__)
        raise TypeError(f"marginal_gains: unknown option {unknown[0]!r}; the options are {known}")
    options = CandidateOptions(**training)
    seed = check_seeds([seed])[0]
    picked = resolve_device(device)
    table = read_input_table(X, "X")
    source = read_table_data(
        table,
        y,
        sample_weight=sample_weight,
        class_weight=class_weight,
        groups=groups,
        task=task,
        missing_indicator=missing_indicator,
        max_categories=max_categories,
    )
    taken = _features(source, table.named, chosen, "chosen")
    others = [f for f in range(source.features) if f not in taken and not source.constant[f]]
    asked = others if candidates is None else _features(source, table.named, candidates, "candidates")
    again = [f for f in asked if f in taken]
    if again:
        raise ValueError(f"candidates: {source.names[again[0]]!r} is already chosen")
    gains = np.full(source.features, np.nan)
    if asked:
        with (
            training_threads(candidates_work(source, options), picked),
            torch.no_grad(),
            progress_bar("Marginal gains", len(asked) + 1, shown=progress) as advance,
        ):
            made = CandidateModels(source, DeviceTable(source, picked), seed, options, picked)
            before, after = made.losses(taken, asked, advance)
        gains = scatter_values(before - after, asked, source.features)
    return np.asarray(gains[np.argsort(source.user_position)])


def _features(source: TableData, named: bool, asked: Asked, argument: str) -> list[int]:
    """Features as the user has them, in the source's layout."""
    layout = np.argsort(source.user_position)
    names = [source.names[f] for f in layout]
    found = find_positions(asked, names, named=named, kind="feature", argument=argument, table="X")
    return [int(layout[user_position]) for user_position in found]
