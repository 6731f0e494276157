"""A data set in memory, with the values of its source."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from seqatt.datasets.entry import DatasetEntry, SplitKind
from seqatt.datasets.npz import Arrays
from seqatt.datasets.splits import Rows, grouped_rows, official_rows, random_rows


class Split(NamedTuple):
    """Training and test rows, in the order of the arguments of ``seqatt.evaluate``."""

    X_train: NDArray[Any]
    y_train: NDArray[Any]
    X_test: NDArray[Any]
    y_test: NDArray[Any]


@dataclass(frozen=True, eq=False)
class Dataset:
    """Features and target with raw values: not scaled, NaN where a value is missing.

    For classification ``y`` holds class numbers from 0 and ``target_names[y]`` are the original labels; for
    regression it holds numbers. ``task`` is that of ``select`` and ``evaluate``. ``groups`` has the origin of
    each row (a mouse, a subject, a set of speakers) where it is known. ``official_sizes`` are the numbers of
    training and test rows of the official split.
    """

    name: str
    title: str
    X: NDArray[Any] = field(repr=False)
    y: NDArray[Any] = field(repr=False)
    feature_names: tuple[str, ...] = field(repr=False)
    target_names: tuple[str, ...] = field(repr=False)
    task: str
    licence: str
    citation: str
    splits: tuple[SplitKind, ...]
    groups: NDArray[Any] | None = field(repr=False, default=None)
    image_shape: tuple[int, int] | None = None
    official_sizes: tuple[int, ...] = field(repr=False, default=())

    def split(self, kind: SplitKind | None = None, *, seed: int = 0) -> Split:
        """Training and test rows.

        ``official`` is the split of the source, the same for every seed. ``rows`` holds out a random fifth of
        the rows, stratified by class; ``groups`` holds out a fifth of the groups, so that no group is on both
        sides. The default is the first of ``splits``. Values stay raw: ``select`` and ``evaluate`` standardise
        and impute with statistics of the training rows.
        """
        train, test = self.split_rows(kind, seed=seed)
        if (kind or self.splits[0]) == "official":  # two contiguous ranges: views, not copies
            n = len(train)
            return Split(self.X[:n], self.y[:n], self.X[n:], self.y[n:])
        return Split(self.X[train], self.y[train], self.X[test], self.y[test])

    def split_rows(self, kind: SplitKind | None = None, *, seed: int = 0) -> Rows:
        """The row numbers of training and test rows."""
        kind = self.splits[0] if kind is None else kind
        if kind not in self.splits:
            offered = " or ".join(map(repr, self.splits))
            raise ValueError(f"kind: {self.name} has no split {kind!r}; it has {offered}")
        if kind == "official":
            return official_rows(self.official_sizes)
        if kind == "rows":
            return random_rows(self.y, seed, stratify=self.task != "regression")
        if self.groups is None:
            raise ValueError(f"kind: this copy of {self.name} has no groups of rows; use 'rows'")
        return grouped_rows(self.groups, self.y, seed)

    def frame(self) -> Any:
        """A pandas DataFrame with one column per feature, and ``target`` with the original labels.

        Column names must be unique: a name that occurs twice in the source is followed by its position.
        """
        try:
            import pandas as pd
        except ImportError:
            raise ImportError("frame: needs pandas; pip install 'seqatt[pandas]'") from None
        counts = Counter(self.feature_names)
        names = [n if counts[n] == 1 else f"{n} [{i}]" for i, n in enumerate(self.feature_names)]
        labels = self.y if self.task == "regression" else np.array(self.target_names)[self.y]
        return pd.concat([pd.DataFrame(self.X, columns=names), pd.Series(labels, name="target")], axis=1)


def make_dataset(entry: DatasetEntry, arrays: Arrays) -> Dataset:
    """A data set from the arrays of its .npz file."""
    if len(entry.rows) == 2:
        X, y = (np.concatenate([arrays[f"{key}_train"], arrays[f"{key}_test"]]) for key in "Xy")
    else:
        X, y = arrays["X"], arrays["y"]
    tasks = {0: "regression", 2: "binary"}
    return Dataset(
        name=entry.name,
        title=entry.title,
        X=X,
        y=y.astype(np.int64 if entry.classes else np.float64),
        feature_names=tuple(arrays["feature_names"].tolist()),
        target_names=tuple(arrays["target_names"].tolist()),
        task=tasks.get(entry.classes, "multiclass"),
        licence=entry.licence,
        citation=entry.citation,
        splits=entry.splits,
        groups=_groups(entry, arrays),
        image_shape=entry.image_shape,
        official_sizes=entry.rows,
    )


def _groups(entry: DatasetEntry, arrays: Arrays) -> NDArray[Any] | None:
    if "mouse_id" in arrays:  # 309_1 to 309_15 are the fifteen rows of mouse 309
        return np.array([mouse.rsplit("_", 1)[0] for mouse in arrays["mouse_id"].tolist()])
    if "subject_train" in arrays and "subject_test" in arrays:
        return np.concatenate([arrays["subject_train"], arrays["subject_test"]])
    if "subset_train" in arrays:  # ISOLET's test rows are its fifth group of speakers
        return np.concatenate([arrays["subset_train"], np.full(entry.rows[1], 5, np.uint8)])
    return None
