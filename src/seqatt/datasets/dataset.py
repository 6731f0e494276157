"""A data set in memory, with the values of its source, and its splits into training and test rows."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from seqatt.datasets.entry import DatasetEntry, SplitKind
from seqatt.datasets.npz import Arrays

Rows = tuple[NDArray[np.int64], NDArray[np.int64]]  # numbers of training and test rows
TEST_SHARE = 0.2
BUNDLED_OPTIONS = {"diabetes": {"scaled": False}}  # by default scikit-learn standardises this one


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
            return _official_rows(self.official_sizes)
        if kind == "rows":
            return _random_rows(self.y, seed, stratify=self.task != "regression")
        if self.groups is None:
            raise ValueError(f"kind: this copy of {self.name} has no groups of rows; use 'rows'")
        return _grouped_rows(self.groups, self.y, seed)

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


def read_bundled(entry: DatasetEntry) -> Arrays:
    """The arrays of one of scikit-learn's data sets, with raw values."""
    loader = getattr(import_module("sklearn.datasets"), f"load_{entry.name}")
    data = loader(**BUNDLED_OPTIONS.get(entry.name, {}))
    labels = [str(name) for name in data.target_names] if entry.classes else ["progression"]
    return {
        "X": data.data,
        "y": data.target,
        "feature_names": np.array([str(name) for name in data.feature_names]),
        "target_names": np.array(labels),
    }


def _official_rows(rows: tuple[int, ...]) -> Rows:
    """The split of the source, whose training rows come first."""
    return np.arange(rows[0]), np.arange(rows[0], sum(rows))


def _random_rows(y: NDArray[Any], seed: int, *, stratify: bool) -> Rows:
    """A random fifth of the rows for testing, stratified by class if ``stratify``."""
    from sklearn.model_selection import train_test_split

    train, test = train_test_split(
        np.arange(len(y)), test_size=TEST_SHARE, random_state=seed, stratify=y if stratify else None
    )
    return np.sort(train), np.sort(test)


def _grouped_rows(groups: NDArray[Any], y: NDArray[Any], seed: int) -> Rows:
    """A random fifth of the groups for testing, stratified by class; no group is on both sides."""
    names, first = np.unique(groups, return_index=True)
    _, test = _random_rows(y[first], seed, stratify=True)
    is_test = np.isin(groups, names[test])
    return np.flatnonzero(~is_test), np.flatnonzero(is_test)
