"""The target: the task, and the values in the form that the loss takes."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, Literal

import narwhals.stable.v1 as nw
import numpy as np
from numpy.typing import NDArray

from seqatt.data.tables.containers import to_array
from seqatt.data.tables.numbers.target_extremes import read_numbers
from seqatt.data.tables.objects import find_distinct, find_missing, value_types
from seqatt.data.tables.options import TASKS, Task
from seqatt.losses.loss import Loss, to_floats
from seqatt.losses.table import find_loss
from seqatt.validation import show

FEW_CLASSES, MAX_CLASSES = 20, 100  # distinct whole numbers that are classes if they repeat; most that can be
NUMBER_STRATA = 10  # ranges of a numeric target; every part of the rows has its share of each
FEW_VALUES = 5  # distinct whole numbers that are hardly a count or a score
BALANCED = 1.25  # rows of the most frequent class per row of the rarest, where rows were collected by class
# Classes from which on it is refused that most occur once; smaller tables are for trying out.
MANY_CLASSES = 10
CLASS_ROWS = 3  # rows per class from which on whole numbers repeat as classes do


@dataclass(frozen=True)
class Target:
    """An encoded target; ``values`` are class numbers (n,) for multiclass, otherwise floats, mostly (n, outputs).

    A numeric target is encoded as ``(y - shift) / scale``. ``classes`` are the labels of a binary or multiclass target
    and the levels of an ordinal one, sorted. ``quantile`` is the level of the task "quantile".
    """

    task: Task
    values: NDArray[Any]
    outputs: int
    classes: NDArray[Any] | None = None
    shift: NDArray[np.float64] | None = None
    scale: NDArray[np.float64] | None = None
    quantile: float | None = None

    @property
    def loss(self) -> Loss:
        return find_loss(self.task, self.quantile)

    @property
    def codes(self) -> NDArray[np.int64] | None:
        """The class or level of each row, (n,), by number; None for other targets."""
        if self.classes is None:
            return None
        values = self.values.sum(1) if self.task == "ordinal" else self.values.reshape(-1)
        return np.asarray(values.astype(np.int64))

    @property
    def strata(self) -> NDArray[np.int64]:
        """The stratum of each row (n,), for stratified splits: its class, or one of ten ranges of the numbers."""
        codes = self.codes
        if codes is not None:
            return codes
        numbers = self.values.reshape(len(self.values), -1)[:, 0]
        strata = np.empty(len(numbers), dtype=np.int64)
        strata[np.argsort(numbers, kind="stable")] = (
            np.arange(len(numbers)) * NUMBER_STRATA // max(1, len(numbers))
        )
        return strata

    @property
    def queries(self) -> NDArray[np.float32] | None:
        """The query of each row to be ranked; None for other targets."""
        return self.values[:, 1] if self.task == "ranking" else None

    def facts(self, *, uses_loss: bool) -> dict[str, Any]:
        """For ``Selection.settings``: classes, the quantile, and what a method sees that does not use the loss."""
        stand_in = None if uses_loss else self.loss.stand_in
        classes = None if self.classes is None else len(self.classes)
        facts = {"classes": classes, "quantile": self.quantile, "stand_in": stand_in}
        return {name: value for name, value in facts.items() if value is not None}

    def as_numbers(self) -> NDArray[Any]:
        """The target for a test of each feature alone, and for methods without a network."""
        return self.loss.as_numbers(self.values)

    def encode(self, y: Any, argument: str) -> NDArray[Any]:
        """Encode the target of other rows with the same classes; a numeric target is not standardised."""
        if self.task == "reconstruction":
            raise AssertionError("the target of other rows is their columns")
        array = target_array(y, argument)
        if self.task not in ("binary", "multiclass", "multilabel", "regression"):
            return self.loss.encode(array, self, argument)
        if self.task in ("regression", "multilabel"):
            values = to_floats(array, argument)
            values = values[:, None] if values.ndim == 1 else values
            if values.shape[1] != self.outputs:
                raise ValueError(
                    f"{argument}: has {values.shape[1]} column(s), the training rows have {self.outputs}"
                )
            return values
        assert self.classes is not None
        codes = _codes(array, self.classes, argument)
        return codes if self.task == "multiclass" else codes.astype(np.float32)[:, None]


def read_target(
    y: Any,
    weights: NDArray[np.float64] | None,
    task: str | None = None,
    argument: str = "y",
    quantile: float | None = None,
) -> Target:
    """Check and encode the target of the training rows; infer the task if ``task`` is None."""
    if task is not None and task not in (*TASKS, "classification"):
        raise ValueError(f"task: unknown task {show(task)}; use one of {', '.join(TASKS)} or classification")
    array = target_array(y, argument)
    kind: Any = _infer(array, argument) if task is None else task
    if kind == "multilabel":
        return _multilabel(array, argument)
    if kind in ("classification", "binary", "multiclass"):
        return _classification(array, kind, argument)
    quantile = quantile if kind == "quantile" else None
    return Target(kind, *read_numbers(find_loss(kind, quantile), array, weights, argument), quantile)


def target_array(y: Any, argument: str) -> NDArray[Any]:
    """The target as an array of one or two dimensions, without missing or infinite values."""
    if y is None:
        # The words from "requires" on are those that scikit-learn's estimator checks look for.
        raise ValueError(
            f"{argument}: a target is needed. Selection requires y to be passed, but the target y is None; pass it, or "
            "the name of a column as target (only task='reconstruction' needs none)"
        )
    frame = nw.from_native(y, eager_only=True, allow_series=True, pass_through=True)
    array: NDArray[Any]
    if is_structured(y):
        array = np.stack([np.asarray(y[name], dtype=np.float64) for name in y.dtype.names], axis=1)
    elif isinstance(frame, nw.Series):
        array = _labels(frame) if _is_text(frame) else frame.to_numpy()
    elif isinstance(frame, nw.DataFrame):
        array = frame.to_numpy()
    else:
        array = to_array(y, argument)
    if array.dtype.kind == "c":
        raise ValueError(
            f"{argument}: complex numbers cannot be predicted; pass two columns, y.real and y.imag"
        )
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim not in (1, 2) or array.size == 0:
        raise ValueError(f"{argument}: must have one or several values per row, got shape {array.shape}")
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        what = "NaN" if np.isnan(array).any() else "infinity"
        bad = _count_rows(~np.isfinite(array))
        raise ValueError(f"{argument}: contains {what} in {bad}; drop those rows or fill them in")
    if array.dtype == object and (missing := find_missing(array)).any():
        raise ValueError(
            f"{argument}: contains NaN (missing values) in {_count_rows(missing)}; drop those rows"
        )
    return array


def _count_rows(bad: NDArray[np.bool_]) -> str:
    rows = np.atleast_1d(bad.reshape(len(bad), -1).any(axis=1))
    return f"{rows.sum():,} of {len(rows):,} rows"


def is_structured(y: Any) -> bool:
    """Whether a target is a structured array, which holds events and times, as in scikit-survival."""
    return isinstance(y, np.ndarray) and y.dtype.names is not None


def _labels(series: nw.Series[Any]) -> NDArray[np.object_]:
    """Text unchanged; the levels of a categorical column, of any type, as text."""
    if series.dtype in (nw.Categorical, nw.Enum):
        from seqatt.data.tables.arrow_columns import categorical_values, read_column

        native = series.to_native()
        categories = getattr(getattr(native, "dtype", None), "categories", None)
        if getattr(getattr(categories, "dtype", None), "kind", "O") in "iuf":
            # Unlike a category of a feature, the class 1.0 is not 1.
            series = nw.from_native(native.cat.rename_categories(str), series_only=True)
        texts, positions = categorical_values(read_column(series, "y"))
        return np.array([*texts.to_pylist(), None], dtype=object)[positions]
    return np.array(series.to_list(), dtype=object)


def _is_text(series: nw.Series[Any]) -> bool:
    return not (series.dtype.is_numeric() or series.dtype == nw.Boolean)


def _infer(array: NDArray[Any], argument: str) -> Task | Literal["classification"]:
    if array.ndim == 2:
        numbers = to_floats(array, argument)
        labels = [bool(np.isin(column, (0, 1)).all()) for column in numbers.T]
        if len(labels) == 2 and sum(labels) == 1 and (numbers >= 0).all():
            warnings.warn(
                f"{argument} holds two columns, one of them of 0 and 1, and is read as regression of both; "
                "pass task='survival' if they are times and events",
                stacklevel=2,
            )
        return "multilabel" if all(labels) else "regression"
    if array.dtype.kind == "b" or _holds_text(array):
        return "classification"
    numbers = to_floats(array, argument)
    if not (numbers == np.round(numbers)).all():
        return "regression"
    distinct, rows = np.unique(numbers, return_counts=True)
    classes = _are_classes(distinct, rows)
    plausible = _may_be_numbers(distinct, rows, array.dtype) if classes else len(distinct) <= MAX_CLASSES
    if plausible:
        task, other = ("classification", "regression") if classes else ("regression", "classification")
        warnings.warn(
            f"{argument} holds {len(distinct)} distinct whole numbers and is read as {task}; "
            f"pass task={other!r} if that is wrong, or task={task!r} to confirm it",
            stacklevel=2,
        )
    return "classification" if classes else "regression"


def _are_classes(distinct: NDArray[np.float64], rows: NDArray[np.int64]) -> bool:
    """Whether whole numbers, sorted, with the rows of each, are class labels.

    They are if there are two of them, up to 20 that occur three times on average, or up to 100 that run from 0 or 1
    without a gap and occur three times each. Counts have no gap either, but their largest values are rare; ages, years
    and prices do not start at 0 or 1. Where both are possible, classes are the smaller mistake: the order of labels
    means nothing to a regression, but numbers read as classes still show which features matter.
    """
    if len(distinct) <= FEW_CLASSES:
        return len(distinct) <= 2 or bool(rows.mean() >= CLASS_ROWS)
    without_gap = distinct[0] in (0, 1) and distinct[-1] - distinct[0] == len(distinct) - 1
    return bool(without_gap and len(distinct) <= MAX_CLASSES and rows.min() >= CLASS_ROWS)


def _may_be_numbers(distinct: NDArray[np.float64], rows: NDArray[np.int64], dtype: np.dtype[Any]) -> bool:
    """Whether whole numbers that are read as classes may be counts or scores as well.

    They may if they are floats, or if they run without a gap over more than a few values and some values are more
    frequent than others. Where every value has about as many rows, as with handwritten digits, rows were collected by
    class.
    """
    if len(distinct) <= 2:
        return False
    without_gap = distinct[-1] - distinct[0] == len(distinct) - 1
    by_class = rows.max() <= BALANCED * rows.min() and len(distinct) <= FEW_CLASSES
    return bool(dtype.kind == "f" or (without_gap and len(distinct) > FEW_VALUES and not by_class))


def _holds_text(array: NDArray[Any]) -> bool:
    return array.dtype.kind in "US" or (
        array.dtype == object and any(issubclass(type_, str | bytes) for type_ in value_types(array))
    )


def _codes(array: NDArray[Any], classes: NDArray[Any], argument: str) -> NDArray[np.int64]:
    if array.ndim == 2:
        raise ValueError(f"{argument}: one label per row is needed, got {array.shape[1]} columns")
    lookup = {label: code for code, label in enumerate(classes.tolist())}
    if array.dtype == object:
        distinct, positions = find_distinct(array)
    else:
        values, positions = np.unique(array, return_inverse=True)
        distinct = values.tolist()
    unknown = sorted((value for value in distinct if value not in lookup), key=str)
    if unknown:
        raise ValueError(f"{argument}: label {show(unknown[0])} does not occur in the training rows")
    return np.array([lookup[value] for value in distinct], dtype=np.int64)[positions]


def _classification(array: NDArray[Any], kind: str, argument: str) -> Target:
    if array.ndim == 2:
        raise ValueError(f"{argument}: one label per row is needed for {kind}, got {array.shape[1]} columns")
    if array.dtype == object and len({issubclass(type_, str) for type_ in value_types(array)}) > 1:
        raise ValueError(f"{argument}: labels mix text and numbers; convert all of them to text")
    distinct = np.array(find_distinct(array)[0], dtype=object) if array.dtype == object else array
    classes = np.unique(distinct)
    if len(classes) < 2:
        raise ValueError(f"{argument}: only one class, {show(classes[0])}, occurs; add rows of another class")
    if kind == "binary" and len(classes) != 2:
        raise ValueError(f"{argument}: task='binary' needs 2 classes, got {len(classes)}")
    codes = _codes(array, classes, argument)
    once = int((np.bincount(codes) == 1).sum())
    if len(classes) >= MANY_CLASSES and once > len(codes) / 2:
        raise ValueError(
            f"{argument}: {once:,} of its {len(classes):,} classes occur once, in {len(codes):,} rows, so that there "
            "is nothing to learn about them; if the values are numbers, convert text to numbers and pass "
            "task='regression', else choose another column as the target"
        )
    if len(classes) == 2 and kind != "multiclass":
        return Target("binary", codes.astype(np.float32)[:, None], 1, classes)
    return Target("multiclass", codes, len(classes), classes)


def _multilabel(array: NDArray[Any], argument: str) -> Target:
    values = to_floats(array, argument)
    if values.ndim == 1 or not np.isin(values, (0, 1)).all():
        raise ValueError(f"{argument}: task='multilabel' needs several columns of 0 and 1")
    return Target("multilabel", values.astype(np.float32), values.shape[1])
