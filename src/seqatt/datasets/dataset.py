"""A data set in memory, as its source has it."""

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
    """Rows to learn from and to test on, in the order ``seqatt.evaluate`` takes them."""

    X_train: NDArray[Any]
    y_train: NDArray[Any]
    X_test: NDArray[Any]
    y_test: NDArray[Any]


@dataclass(frozen=True, eq=False)
class Dataset:
    """Features and target with raw values: nothing is scaled, what is missing is NaN.

    ``y`` counts classes from 0 and ``target_names[y]`` are the original labels (or y holds numbers);
    ``task`` says which, in the words of ``select`` and ``evaluate``. ``groups`` tells whose row it is (a
    mouse, a subject, a subset of speakers) where that is known.
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
    parts: tuple[int, ...] = field(repr=False, default=())

    def split(self, kind: SplitKind | None = None, *, seed: int = 0) -> Split:
        """Training and test rows.

        ``official`` is the source's own split, which no seed changes. ``rows`` keeps a random fifth of the
        rows for testing, every class in proportion; ``groups`` a fifth of the groups, none of them on both
        sides. By default the first of ``splits``. The values stay raw: ``select`` and ``evaluate``
        standardise and impute with what they find in the training rows.
        """
        train, test = self.split_rows(kind, seed=seed)
        if (kind or self.splits[0]) == "official":  # two stretches: views, not copies
            cut = len(train)
            return Split(self.X[:cut], self.y[:cut], self.X[cut:], self.y[cut:])
        return Split(self.X[train], self.y[train], self.X[test], self.y[test])

    def split_rows(self, kind: SplitKind | None = None, *, seed: int = 0) -> Rows:
        """The same as row numbers."""
        kind = self.splits[0] if kind is None else kind
        if kind not in self.splits:
            offered = " or ".join(map(repr, self.splits))
            raise ValueError(f"kind: {self.name} has no split {kind!r}; it has {offered}")
        if kind == "official":
            return official_rows(self.parts)
        if kind == "rows":
            return random_rows(self.y, seed, stratify=self.task != "regression")
        if self.groups is None:
            raise ValueError(f"kind: this copy of {self.name} does not tell whose rows are whose; use 'rows'")
        return grouped_rows(self.groups, self.y, seed)

    def frame(self) -> Any:
        """A pandas DataFrame: a column a feature, and ``target`` with the original labels.

        A name that the source gives twice is followed by its position, since columns need unique names.
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
    if len(entry.rows) == 2:
        X, y = (np.concatenate([arrays[f"{key}_train"], arrays[f"{key}_test"]]) for key in "Xy")
    else:
        X, y = arrays["X"], arrays["y"]
    kinds = {0: "regression", 2: "binary"}
    return Dataset(
        name=entry.name,
        title=entry.title,
        X=X,
        y=y.astype(np.int64 if entry.classes else np.float64),
        feature_names=tuple(arrays["feature_names"].tolist()),
        target_names=tuple(arrays["target_names"].tolist()),
        task=kinds.get(entry.classes, "multiclass"),
        licence=entry.licence,
        citation=entry.citation,
        splits=entry.splits,
        groups=_groups(entry, arrays),
        image_shape=entry.image_shape,
        parts=entry.rows,
    )


def _groups(entry: DatasetEntry, arrays: Arrays) -> NDArray[Any] | None:
    if "mouse_id" in arrays:  # 309_1 to 309_15 are the fifteen rows of mouse 309
        return np.array([mouse.rsplit("_", 1)[0] for mouse in arrays["mouse_id"].tolist()])
    if "subject_train" in arrays and "subject_test" in arrays:
        return np.concatenate([arrays["subject_train"], arrays["subject_test"]])
    if "subset_train" in arrays:  # ISOLET's test rows are its fifth group of speakers
        return np.concatenate([arrays["subset_train"], np.full(entry.rows[1], 5, np.uint8)])
    return None
