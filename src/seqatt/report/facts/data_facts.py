"""Facts about the table of a selection: distributions of the selected features, correlations, classes.

All are of bounded size (bins, at most so many features and classes) and hold no rows of the table.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import narwhals.stable.v1 as nw
import numpy as np
from numpy.typing import NDArray

from seqatt.column_names import is_sparse, plain_name, take_columns
from seqatt.display_text import escape_controls
from seqatt.report.values import finite, show_name

if TYPE_CHECKING:
    from seqatt.selection import Selection

MAX_ROWS = 50_000  # of a larger table, rows at equal distances
MAX_DISTRIBUTIONS = 24
MAX_CLASSES = 10  # the most frequent; the others are one class
MAX_HISTOGRAMS = 3  # classes that histograms can show at once
BINS = 24
MAX_VALUES = 12  # distinct values that are shown one by one
MAX_CORRELATED = 20  # features in the table of correlations
STAND_IN = 0.7  # absolute correlation from which a feature stands in for another
MAX_STAND_INS = 5  # names per selected feature
BLOCK = 512  # columns that are correlated at a time

Numbers = NDArray[np.float64]


def data_facts(selection: Selection, X: Any, y: Any = None, *, image: bool = False) -> dict[str, Any]:
    """Facts of the table ``X`` and its target ``y``, which is an array or the name of a column of X."""
    y = _target_column(X, y) if isinstance(y, str) else y
    columns = selection.columns.tolist()
    chosen = _read_columns(X, columns[:MAX_DISTRIBUTIONS], selection.input_names)
    rows = len(chosen[0]) if chosen else 0
    step = -(-rows // MAX_ROWS) if rows else 1
    facts: dict[str, Any] = {"summary": {}}
    target = None
    if y is not None and chosen and getattr(np.asarray(y).dtype, "names", None) is None:
        target = _describe_target(np.asarray(y), rows, selection.settings.get("task"))
    if target is not None and "shares" in target:
        facts["summary"] = {"class_shares": target["shares"]}
    names = [show_name(selection.input_names[column]) for column in columns]
    facts["distributions"] = [
        {"feature": name} | _distribution(values[::step], None if target is None else _thin(target, step))
        for name, values in zip(names, chosen, strict=False)
    ]
    facts["correlation"] = _correlations(X, selection)
    if image:
        facts["pixel_means"] = _pixel_means(X, selection)
    return facts


def _read_columns(X: Any, columns: Sequence[int], names: Sequence[Any]) -> list[NDArray[Any]]:
    """Columns as arrays of numbers, or of texts with None for missing values."""
    if not columns:
        return []
    table = take_columns(X, columns, names)
    frame = nw.from_native(table, eager_only=True, pass_through=True)
    if isinstance(frame, nw.DataFrame):
        return [_series_values(frame[:, i]) for i in range(frame.shape[1])]
    dense = table.toarray() if is_sparse(table) else np.asarray(table)
    return [_array_values(dense[:, i]) for i in range(dense.shape[1])]


def _series_values(series: Any) -> NDArray[Any]:
    if series.dtype.is_numeric() or series.dtype == nw.Boolean:
        return np.asarray(series.cast(nw.Float64).to_numpy(), dtype=np.float64)
    return _texts(series.to_list())


def _array_values(values: NDArray[Any]) -> NDArray[Any]:
    try:
        return values.astype(np.float64)
    except (TypeError, ValueError):
        return _texts(values.tolist())


def _texts(values: list[Any]) -> NDArray[Any]:
    """Values as texts, missing ones as None; NaN is the only value that differs from itself."""
    return np.array([None if v is None or v != v else str(v) for v in values], dtype=object)


def _target_column(X: Any, name: str) -> Any:
    frame = nw.from_native(X, eager_only=True, pass_through=True)
    position = (
        {str(plain_name(n)): i for i, n in enumerate(frame.columns)}
        if isinstance(frame, nw.DataFrame)
        else {}
    )
    if name not in position:
        raise ValueError(f"y: X has no column {name!r}; pass the values of the target as y")
    return _series_values(frame[:, position[name]])


def _describe_target(y: NDArray[Any], rows: int, task: Any) -> dict[str, Any] | None:
    """Class of each row, or the number of each row; None for several outputs."""
    if len(y) != rows:
        raise ValueError(f"y: must have one value for each of the {rows:,} rows of X, got {len(y):,}")
    y = y[:, 0] if y.ndim == 2 and y.shape[1] == 1 else y
    if y.ndim != 1:
        return None
    if task not in (None, "binary", "multiclass", "multilabel"):
        return {"numbers": _array_values(y)}
    labels = np.array(["missing" if v is None else v for v in _texts(_whole(y.tolist()))], dtype=object)
    values, counts = np.unique(labels.astype(str), return_counts=True)
    frequent = values[np.argsort(-counts, kind="stable")[:MAX_CLASSES]]
    order = sorted(frequent.tolist(), key=_sort_key)
    position = {value: i for i, value in enumerate(order)}
    code = np.array([position.get(label, len(order)) for label in labels.tolist()])
    names = order + ["other classes"] * (len(values) > len(order))
    shares = [
        {"class": escape_controls(str(n)), "share": float((code == i).mean())} for i, n in enumerate(names)
    ]
    return {"classes": [escape_controls(str(name)) for name in names], "codes": code, "shares": shares}


def _whole(values: list[Any]) -> list[Any]:
    """Values with whole floats as integers: the class 1 of a column that was read as 1.0."""
    return [int(v) if isinstance(v, float | np.floating) and v.is_integer() else v for v in values]


def _thin(target: dict[str, Any], step: int) -> dict[str, Any]:
    return {n: v[::step] if isinstance(v, np.ndarray) else v for n, v in target.items()}


def _sort_key(text: str) -> tuple[int, float, str]:
    try:
        return 0, float(text), text
    except ValueError:
        return 1, 0.0, text


def _distribution(values: NDArray[Any], target: dict[str, Any] | None) -> dict[str, Any]:
    """Bins of one feature, and in each the share of every class, or mean and spread of a numeric target."""
    missing = (
        np.isnan(values) if values.dtype == np.float64 else np.array([v is None for v in values.tolist()])
    )
    known = ~missing & (np.isfinite(values) if values.dtype == np.float64 else True)
    facts: dict[str, Any] = {"missing": float(missing.mean()) if len(values) else 0.0}
    bins, code = _bins(values[known], quantiles=target is not None and "numbers" in target)
    facts |= bins
    size = len(bins.get("labels", [])) or max(1, len(bins.get("edges", [])) - 1)
    if target is not None and "numbers" in target:
        return facts | {"target": _target_by_bin(target["numbers"][known], code, size)}
    codes = np.zeros(len(values), dtype=np.int64) if target is None else target["codes"]
    names = ["all rows"] if target is None else target["classes"]
    if len(names) > MAX_HISTOGRAMS and values.dtype == np.float64:
        ranges = [_range(values[known & (codes == i)]) for i in range(len(names))]
        listed = [{"name": name} | own for name, own in zip(names, ranges, strict=True)]
        return {"missing": facts["missing"], "ranges": listed}
    if len(names) > MAX_HISTOGRAMS:
        codes, names = np.minimum(codes, MAX_HISTOGRAMS), [*names[:MAX_HISTOGRAMS], "other classes"]
    of_class = [np.bincount(code[codes[known] == i], minlength=size) for i in range(len(names))]
    shares = [[round(float(c) / max(1, counts.sum()), 4) for c in counts] for counts in of_class]
    return facts | {"series": [{"name": n, "shares": s} for n, s in zip(names, shares, strict=True)]}


def _range(values: NDArray[Any]) -> dict[str, Any]:
    """The middle 80 % of the values of a class, and their mean."""
    if not len(values):
        return {"low": None, "mean": None, "high": None}
    low, high = np.quantile(values, [0.1, 0.9])
    return {"low": finite(low), "mean": finite(values.mean()), "high": finite(high)}


def _bins(values: NDArray[Any], quantiles: bool) -> tuple[dict[str, Any], NDArray[np.int64]]:
    """Edges of bins or labels of values, and the bin of each value."""
    if values.dtype != np.float64:
        return _value_bins(values.astype(str), sort_by_count=True)
    distinct = np.unique(values)
    if len(distinct) <= MAX_VALUES:
        return _value_bins(np.array([f"{v:.6g}" for v in values.tolist()]), sort_by_count=False)
    low, high = np.quantile(values, [0.01, 0.99])
    if not high > low:
        low, high = values.min(), values.max()
    edges = np.linspace(low, high, BINS + 1)
    if quantiles:
        edges = np.unique(np.quantile(values, np.linspace(0, 1, 11)))
    code = np.clip(np.searchsorted(edges, values, side="right") - 1, 0, len(edges) - 2)
    return {"edges": [float(f"{edge:.6g}") for edge in edges]}, code.astype(np.int64)


def _value_bins(texts: NDArray[Any], *, sort_by_count: bool) -> tuple[dict[str, Any], NDArray[np.int64]]:
    values, code, counts = np.unique(texts, return_inverse=True, return_counts=True)
    order = np.argsort(-counts, kind="stable")[:MAX_VALUES] if sort_by_count else np.arange(len(values))
    labels = (
        sorted((str(values[i]) for i in order), key=_sort_key)
        if not sort_by_count
        else [str(values[i]) for i in order]
    )
    position = {label: i for i, label in enumerate(labels)}
    of_value = np.array([position.get(str(value), len(labels)) for value in values], dtype=np.int64)
    shown = [escape_controls(str(label)) for label in labels] + ["other values"] * (len(values) > len(labels))
    return {"labels": shown}, of_value[code] if len(code) else np.zeros(0, dtype=np.int64)


def _target_by_bin(y: NDArray[Any], code: NDArray[np.int64], size: int) -> dict[str, Any]:
    """Mean and the middle 80 % of the target in every bin."""
    facts: dict[str, list[Any]] = {"means": [], "low": [], "high": [], "rows": []}
    for i in range(size):
        inside = y[code == i].astype(np.float64)
        inside = inside[np.isfinite(inside)]
        low, high = np.quantile(inside, [0.1, 0.9]) if len(inside) else (None, None)
        facts["means"].append(finite(inside.mean()) if len(inside) else None)
        facts["low"].append(finite(low))
        facts["high"].append(finite(high))
        facts["rows"].append(len(inside))
    return facts


def _correlations(X: Any, selection: Selection) -> dict[str, Any] | None:
    """Correlations of the selected features, and the rejected ones that each stands in for."""
    names, columns = selection.input_names, selection.columns.tolist()
    chosen = _standardize(X, columns, names)
    chosen = {column: values for column, values in chosen.items() if values.any()}
    if not chosen:
        return None
    selected = np.array(list(chosen.values()))
    stand_ins: dict[int, list[tuple[float, str]]] = {}
    rest = [column for column in range(len(names)) if column not in set(columns)]
    for start in range(0, len(rest), BLOCK):
        block = _standardize(X, rest[start : start + BLOCK], names)
        products = selected @ np.array(list(block.values())).T if block else np.zeros((len(selected), 0))
        for position, column in enumerate(block):
            best = int(np.abs(products[:, position]).argmax())
            value = float(products[best, position])
            if abs(value) >= STAND_IN:
                stand_ins.setdefault(best, []).append((value, show_name(names[column])))
    shown = list(chosen)[:MAX_CORRELATED]
    matrix = selected[: len(shown)] @ selected[: len(shown)].T
    listed = [
        {
            "feature": show_name(names[column]),
            "count": len(stand_ins[i]),
            "of": [{"feature": n, "correlation": round(v, 3)} for v, n in _strongest(stand_ins[i])],
        }
        for i, column in enumerate(chosen)
        if i in stand_ins
    ]
    return {
        "features": [show_name(names[column]) for column in shown],
        "matrix": [[round(float(v), 3) for v in row] for row in np.clip(matrix, -1, 1)],
        "stand_ins": listed,
        "threshold": STAND_IN,
    }


def _strongest(pairs: list[tuple[float, str]]) -> list[tuple[float, str]]:
    return sorted(pairs, key=lambda pair: -abs(pair[0]))[:MAX_STAND_INS]


def _standardize(X: Any, columns: Sequence[int], names: Sequence[Any]) -> dict[int, Numbers]:
    """Numeric columns with mean 0 and length 1, missing values at the mean; constant ones are 0."""
    found = {}
    for column, values in zip(columns, _read_columns(X, columns, names), strict=True):
        if values.dtype != np.float64:
            continue
        sample = values[:: -(-len(values) // 5000)]
        known = np.isfinite(sample)
        mean = sample[known].mean() if known.any() else 0.0
        centred = np.where(known, sample - mean, 0.0)
        length = float(np.linalg.norm(centred))
        found[column] = (
            centred / length if np.isfinite(length) and length > 1e-12 * (1 + abs(mean)) else 0 * centred
        )
    return found


def _pixel_means(X: Any, selection: Selection) -> list[float] | None:
    """The mean of every pixel from 0 to 1."""
    names, values = selection.input_names, []
    for start in range(0, len(names), BLOCK):
        columns = _read_columns(X, range(len(names))[start : start + BLOCK], names)
        if any(column.dtype != np.float64 for column in columns):
            return None
        values += [float(np.nan_to_num(column).mean()) for column in columns]
    means, low, high = np.array(values), min(values), max(values)
    return [round(float(v), 2) for v in (means - low) / (high - low)] if high > low else None
