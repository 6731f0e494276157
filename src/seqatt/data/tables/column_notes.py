"""Notes on the columns of a table: sentences for ``Selection.notes``, one per kind of defect."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from seqatt.data.tables.containers import InputTable
from seqatt.data.tables.encoding import Encoder
from seqatt.data.tables.numbers.extremes import Extremes
from seqatt.data.tables.target import Target
from seqatt.validation import name_some

MAX_NAMED = 3  # columns that a sentence names; the rest are counted
# Text is an identifier from this many distinct texts per row on, in a table of at least this many rows.
ID_SHARE, MIN_ROWS = 0.5, 20
MAX_TESTED_ROWS = 10_000  # rows that missing values are tested on
# Missing values are reported if the p-value of their test, times the number of columns tested, is below the first, and
# the share of their variance that the target explains is at least the second.
MAX_P_VALUE, MIN_EXPLAINED = 1e-3, 0.01

Floats = NDArray[np.float64]


def note_columns(
    table: InputTable, encoder: Encoder, target: Target, *, missing_indicator: bool
) -> tuple[str, ...]:
    """The sentences about a table, in the order of the columns of its encoder."""
    names = [str(table.given_names.get(name, name)) for name in table.names]
    categories = sorted((encoder.levels | encoder.coded).items())
    numeric = [names[p] for p in encoder.numeric]
    logarithms = np.isin(encoder.extremes.columns, encoder.log1p)
    notes = [
        note_identifiers([(names[p], c.distinct) for p, c in categories], table.rows),
        note_extremes(numeric, encoder.extremes, logarithms),
    ]
    if not missing_indicator and not table.sparse:
        first = np.searchsorted(encoder.input_of, encoder.numeric)
        shares = encoder.missing_shares[first]
        incomplete = np.flatnonzero((shares > 0) & (shares < 1))
        step = -(-table.rows // MAX_TESTED_ROWS)
        rows = np.arange(table.rows) % step == 0
        if len(incomplete):
            tested = table.select([encoder.numeric[j] for j in incomplete]).select_rows(rows)
            missing = np.isnan(tested.numbers(range(len(incomplete))).astype(np.float64))
            notes.append(note_missing([numeric[j] for j in incomplete], missing, target, rows))
    return tuple(note for note in notes if note)


def note_identifiers(distinct: Sequence[tuple[str, int]], rows: int) -> str:
    """About categorical columns, given by name and number of distinct values, whose values hardly repeat."""
    found = [name for name, values in distinct if rows >= MIN_ROWS and values >= ID_SHARE * rows]
    if not found:
        return ""
    looks = "looks like an identifier" if len(found) == 1 else "look like identifiers"
    return (
        f"{listed(found)} {looks}: text that hardly repeats. Rare values count as one; ignore (--ignore) leaves a "
        "column out."
    )


def note_extremes(names: Sequence[str], extremes: Extremes, logarithms: NDArray[np.bool_]) -> str:
    """About numeric columns whose extreme values are clipped, the most frequent first."""
    values = extremes.farthest.copy()
    values[logarithms] = np.sign(values[logarithms]) * np.expm1(np.abs(values[logarithms]))
    found = [
        f"{names[extremes.columns[j]]} ({extremes.rows[j]:,} {'row' if extremes.rows[j] == 1 else 'rows'}, "
        f"up to {values[j]:.6g})"
        for j in np.argsort(-extremes.rows, kind="stable")
    ]
    if not found:
        return ""
    holds = "holds" if len(found) == 1 else "hold"
    return (
        f"{listed(found)} {holds} extreme values, which are clipped to the range of the others; NaN is better where "
        "they mean missing."
    )


def note_missing(
    names: Sequence[str], missing: NDArray[np.bool_], target: Target, rows: NDArray[np.bool_]
) -> str:
    """About numeric columns whose missing values are related to the target.

    ``missing`` (tested rows, columns) says where values are missing, and ``rows`` (rows,) which rows are tested.
    """
    informative = _informative(missing, _target_columns(target, rows))
    found = [name for name, is_informative in zip(names, informative, strict=True) if is_informative]
    if not found:
        return ""
    are = "is" if len(found) == 1 else "are"
    return (
        f"Whether {listed(found)} {are} missing is related to the target; missing_indicator=True "
        "(--missing-indicator) lets features say it."
    )


def _target_columns(target: Target, rows: NDArray[np.bool_]) -> Floats:
    """The target of some rows as centred columns (rows, outputs), one per class but the first; none for some tasks."""
    if target.task == "reconstruction":
        return np.zeros((int(rows.sum()), 0))
    if target.task == "multiclass":
        columns = np.eye(target.outputs)[target.values[rows]][:, 1:]
    else:
        columns = np.asarray(target.as_numbers()[rows], dtype=np.float64).reshape(int(rows.sum()), -1)
    return np.asarray(columns - columns.mean(0))


def _informative(missing: NDArray[np.bool_], target: Floats) -> NDArray[np.bool_]:
    """Whether the target explains each indicator (rows, columns): an F-test, corrected for the number of columns."""
    from scipy.special import fdtrc  # here: few tables need it, and it takes a while to import

    rows = len(target)
    basis, sizes, _ = np.linalg.svd(target, full_matrices=False)
    basis = basis[:, sizes > 1e-9 * sizes.max(initial=1e-9)]
    degrees = basis.shape[1]
    if not degrees or rows <= degrees + 1:
        return np.zeros(missing.shape[1], dtype=bool)
    indicators = missing - missing.mean(0)
    total = (indicators**2).sum(0)
    explained = ((basis.T @ indicators) ** 2).sum(0) / np.where(total > 0, total, 1.0)
    left = np.maximum(1 - explained, 1e-12) / (rows - degrees - 1)
    p_values = fdtrc(degrees, rows - degrees - 1, explained / degrees / left)
    return np.asarray((p_values * missing.shape[1] < MAX_P_VALUE) & (explained >= MIN_EXPLAINED))


def listed(names: Sequence[str]) -> str:
    """Some names, and how many more there are: "a, b, c and 2 more"."""
    shown = list(names[:MAX_NAMED])
    if len(names) > MAX_NAMED:
        return name_some(shown, len(names))
    return " and ".join([", ".join(shown[:-1]), shown[-1]]) if len(shown) > 1 else shown[0]
