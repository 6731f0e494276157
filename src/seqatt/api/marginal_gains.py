"""``marginal_gains``: how much each feature lowers the held-out loss beside features already selected."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from seqatt.algorithms.neural.greedy import scatter_values
from seqatt.api.lookup import find_features
from seqatt.api.read_data import choose_target
from seqatt.data.tables.consistency import check_same_order
from seqatt.data.tables.containers import read_input_table
from seqatt.data.tables.groups import Groups
from seqatt.data.tables.scaling import scale_table
from seqatt.data.tables.table_data import read_table_data
from seqatt.options import names_of
from seqatt.progress import progress_bar
from seqatt.selection import Selection
from seqatt.training.backend.device import resolve_device
from seqatt.training.backend.threads import training_threads
from seqatt.training.candidates import CandidateModels, candidates_work, resolve_candidates
from seqatt.training.loaders.batch import DeviceTable
from seqatt.training.options import CandidateOptions
from seqatt.validation import check_option_names, check_seeds

Features = Selection | Sequence[int | str] | NDArray[Any]  # by position, by name or as a mask


def marginal_gains(
    X: Any,
    y: Any = None,
    selected: Features = (),
    candidates: Features | None = None,
    *,
    target: str | None = None,
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
    """By how much each feature lowers the loss on held-out rows when it is added to the ``selected`` features.

    The gain of feature i given the selected set S is ``loss(S) - loss(S + i)``. One model is trained per candidate and
    one on S alone, all from the same initial weights and on the same batches. A fifth of the rows is held out; in
    small tables one fifth after the other, and the gain is the mean over them.

    Parameters
    ----------
    X, y, target : table and target, as in ``select``
    selected : Selection, sequence of int, str or bool, default ()
        Features already selected: a selection, positions, names or a mask.
    candidates : the same, or None, default None
        Features to compute gains of; None is every feature that is neither selected nor constant.
    seed, device, progress, sample_weight, class_weight, groups, task, missing_indicator, max_categories :
        As in ``select``.
    **training
        ``epochs`` (passes of each model over the rows it trains on), ``batch_size``, ``learning_rate``, ``hidden``,
        ``activation`` and ``folds`` (how many fifths of the rows are held out in turn), as for
        ``select(method="greedy")``.

    Returns
    -------
    ndarray of float, shape (features,)
        One gain per feature of ``X``, in the order of ``X``; NaN for features that are not candidates.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> import seqatt
    >>> X, y = load_wine(return_X_y=True)
    >>> gains = seqatt.marginal_gains(X, y, selected=[6], epochs=20)
    >>> len(gains), bool(gains[12] > 0)
    (13, True)
    """
    check_option_names("marginal_gains", training, names_of(CandidateOptions))
    options = CandidateOptions(**training)
    seed = check_seeds([seed])[0]
    torch_device = resolve_device(device)
    y = choose_target(y, target)
    check_same_order(X, y, ("X", "y"))
    check_same_order(X, sample_weight, ("X", "sample_weight"))
    table = read_input_table(X, "X")
    data = read_table_data(
        table,
        y,
        sample_weight=sample_weight,
        class_weight=class_weight,
        groups=groups,
        task=task,
        missing_indicator=missing_indicator,
        max_categories=max_categories,
    )
    data = scale_table(data, options.scaling)
    base = find_features(data, selected, "selected", named=table.named)
    if candidates is None:
        added = [f for f in range(data.features) if f not in base and not data.constant[f]]
    else:
        added = find_features(data, candidates, "candidates", named=table.named)
    repeated = [f for f in added if f in base]
    if repeated:
        raise ValueError(f"candidates: {data.names[repeated[0]]!r} is already selected")
    gains = np.full(data.features, np.nan)
    if added:
        plan = resolve_candidates(data, options)
        with (
            training_threads(candidates_work(data, options, plan), torch_device),
            torch.no_grad(),
            progress_bar("Marginal gains", len(added) + 1, shown=progress) as advance,
        ):
            device_table = DeviceTable.of_data(data, torch_device)
            models = CandidateModels(data, device_table, seed, options, plan, torch_device)
            before, after = models.losses(base, added, advance)
        gains = scatter_values(before - after, added, data.features)
    return np.asarray(gains[np.argsort(data.user_position)])
