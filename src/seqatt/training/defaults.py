"""Default sizes and rates: what each option is for a table of a given size when the user does not set it."""

from __future__ import annotations

import math
from typing import NamedTuple

MIN_BATCH, MAX_BATCH = 64, 256  # rows per batch of a table
STREAM_MAX_BATCH = 4096  # rows per batch of files
STREAM_MIN_STEPS = 1_000  # steps of a model on files that the default batch size aims for, at least
STREAM_STEPS_PER_PHASE = 32  # the same per phase
MIN_STEPS, MAX_STEPS = 4_000, 20_000  # steps per selection
STEPS_PER_FEATURE = 40  # at least this many steps for each feature to select
EPOCHS = 10  # passes over the rows, within the limits above
EVALUATION_MIN_STEPS, EVALUATION_MAX_STEPS = 1_000, 4_000  # steps of a network that evaluates a selection
EVALUATION_EPOCHS = 17  # its passes over the rows, within these limits
EVALUATION_ROWS = 10_000  # above this many rows, it has a larger learning rate and less dropout and smoothing
MAX_REPLACEMENT = 5  # rounds of dropping and selecting again
# Rounds of exchanges, where at most so many features are to be selected from at least so many rows.
EXCHANGE_ROUNDS, MAX_EXCHANGE_K, MIN_EXCHANGE_ROWS = 4, 3, 200
ENSEMBLE_SIZE = 4  # models per trial
SURPLUS = 2.0  # features that are selected at first, per feature to select; the others are dropped again
MIN_HELD_OUT_ROWS = 8  # per member of an ensemble, else none: the estimate from fewer rows would be too noisy
MIN_UNIVARIATE, MAX_UNIVARIATE = 2.0, 4.0  # of univariate_test, a threshold on -log10 of the FDR q-value
MIN_PENALTY_SHARE = 0.25  # by which univariate_test counts when features are selected, where rows are many
ROWS_PER_LOG_COLUMN = 20  # rows up to which univariate_test counts in full when features are selected
CHANCE_CORRELATION = 0.4  # largest correlation expected by chance at which univariate_test is at its maximum
MIN_WORKING_SET, WORKING_SET_PER_FEATURE = 1024, 8  # features that train together on a wide table, at least
MAX_WORKING_CELLS = 1 << 27  # cells of its table (512 MiB as float32), at most
LOGIT_LEARNING_RATE = 0.03  # of attention logits: in a phase of a few dozen steps, features must compete


def default_batch_size(rows: int) -> int:
    """A sixteenth of the rows, as a power of two from 64 to 256; up to 256 rows form one batch."""
    if rows <= MAX_BATCH:
        return rows
    size = MIN_BATCH
    while size < MAX_BATCH and size * 16 < rows:
        size *= 2
    return size


def default_steps(rows: int, batch_size: int, k: int) -> int:
    """Ten passes over the rows, from 4,000 to 20,000 steps, and at least 40 steps per feature to select.

    The members of an ensemble share them.
    """
    passes = EPOCHS * rows // batch_size
    return max(min(max(passes, MIN_STEPS), MAX_STEPS), STEPS_PER_FEATURE * k)


def resolve_batch_size(rows: int, requested: int | None, members: int = 1) -> int:
    """The requested batch size or the default; never more rows than a member trains on."""
    return min(requested or default_batch_size(rows), training_rows(rows, members))


def resolve_steps(rows: int, batch_size: int, epochs: float | None, k: int) -> int:
    """The steps of the requested passes over the rows, or the default."""
    if epochs is None:
        return default_steps(rows, batch_size, k)
    return max(1, round(epochs * rows / batch_size))


class StreamBudget(NamedTuple):
    """How files are trained on: ``passes`` over the rows in batches of ``batch_size``, ``steps`` per model."""

    batch_size: int
    passes: int
    steps: int


def resolve_stream_budget(
    rows: float, table_steps: int, models: int, batch_size: int | None, phases: int = 1
) -> StreamBudget:
    """The budget for files of ``rows`` rows on which ``models`` models train, all on the same batches.

    ``table_steps`` is the number of steps that they would share on a table of this size. Files are read in whole
    passes, at least once. The default batch size is that of a table, and larger where enough steps remain.
    """
    batch_size = batch_size and min(batch_size, max(1, round(rows)))
    table_batch = batch_size or default_batch_size(round(rows))
    passes = max(1, round(table_steps * table_batch / (models * rows)))
    if batch_size is None:
        most = passes * rows / max(STREAM_MIN_STEPS, STREAM_STEPS_PER_PHASE * phases)
        batch_size = min(max(table_batch, 1 << max(1, int(most)).bit_length() - 1), STREAM_MAX_BATCH)
    return StreamBudget(batch_size, passes, max(1, round(passes * rows / batch_size)))


def default_stream_ensemble(rows: float) -> int:
    """Models per trial on files: four or two if that stays within a table's budget, else one; each sees all rows."""
    return next((size for size in (ENSEMBLE_SIZE, 2) if size * rows <= MAX_STEPS * MAX_BATCH), 1)


def evaluation_steps(rows: int, batch_size: int, epochs: float | None) -> int:
    """Steps of a network that evaluates a selection: 17 passes over the rows, from 1,000 to 4,000 steps."""
    if epochs is not None:
        return resolve_steps(rows, batch_size, epochs, k=1)
    return min(max(EVALUATION_EPOCHS * rows // batch_size, EVALUATION_MIN_STEPS), EVALUATION_MAX_STEPS)


def evaluation_learning_rate(rows: int) -> float:
    """Learning rate of a network that evaluates a selection: 0.009, up to twice that from 20,000 rows on."""
    return 9e-3 * min(max(1.0, rows / EVALUATION_ROWS), 2.0)


def evaluation_noise(rows: int) -> float:
    """Its input dropout and label smoothing: 0.1, falling in proportion to the rows from 10,000 rows on."""
    return 0.1 * min(1.0, EVALUATION_ROWS / rows)


def default_replacement(k: int) -> int:
    """Rounds of dropping and selecting again: one per three features, at most 5."""
    return min(MAX_REPLACEMENT, k // 3)


def default_exchanges(k: int, rows: float) -> int:
    """Rounds of exchanges: up to 4 for at most three features, and none below 200 rows of balanced classes.

    Of more features they gain nothing (decision 37), and fewer rows cannot tell sets apart.
    """
    return EXCHANGE_ROUNDS if k <= MAX_EXCHANGE_K and rows >= MIN_EXCHANGE_ROWS else 0


def training_rows(rows: int, members: int) -> int:
    """Rows that each member of an ensemble trains on: all but its own held-out part, if that is not too small."""
    held_out = rows // (members + 1) if members > 1 else 0
    return rows - held_out if held_out >= MIN_HELD_OUT_ROWS else rows


def default_univariate_test(rows: int, columns: int) -> float:
    """Threshold of the univariate test, which grows with the largest correlation expected by chance.

    The best of ``columns`` noise columns has a correlation of about sqrt(2 log(columns) / rows) with any target.
    """
    by_chance = math.sqrt(2 * math.log(max(2, columns)) / rows)
    return min(MAX_UNIVARIATE, max(MIN_UNIVARIATE, MAX_UNIVARIATE * by_chance / CHANCE_CORRELATION))


def penalty_share(rows: int, columns: int, values: int = 1) -> float:
    """How much the univariate test counts beside attention: 20 values log(columns) / rows, from 1/4 to 1.

    A network tells useful features from noise by itself if it has many rows for the logarithm of its columns, and for
    each of the ``values`` of a category: an embedding learns the rows of a rare value by heart.
    """
    return min(1.0, max(MIN_PENALTY_SHARE, ROWS_PER_LOG_COLUMN * values * math.log(max(2, columns)) / rows))


def default_asinh_inputs(rows: int, columns: int) -> bool:
    """Whether inputs are transformed by asinh: where there are more columns than rows.

    A network can fit any target on such a table, most easily by an outlier in the row to fit. On tables with more rows
    than columns the transformation changed too little to be worth another copy of the table.
    """
    return columns > rows


def default_input_dropout(rows: int, columns: int) -> float:
    """Probability of dropping an input in training: sqrt(columns / rows), at most 0.6, and 0 below 0.15.

    A network with many inputs and few rows memorises the rows, and inputs that it no longer needs look useless.
    Large tables do not need dropout, and a small rate is not worth its cost.
    """
    rate = math.sqrt(columns / rows)
    return min(0.6, rate) if rate >= 0.15 else 0.0


def default_working_set(rows: int, features: int, selected: int) -> int:
    """The smallest number of features that train together: eight per feature to select, at least 1,024; 0 if all train.

    A working set is used where it leaves out at least half of the features. Every trial copies its columns, at first a
    quarter of the table, so this copy must not be large; ``rows`` is 0 for a sparse table, whose copy is small.
    """
    size = max(MIN_WORKING_SET, WORKING_SET_PER_FEATURE * selected)
    small = rows * max(size, features // 4) <= MAX_WORKING_CELLS
    return size if small and features >= 2 * size else 0


def default_weight_decay(rows: int) -> float:
    """Decay per step of the first-layer weights of unselected features.

    Definition 3.1 has this penalty once for all rows, so its share of a step is inverse to their number. Without
    it the unselected features fit a small table, and nothing is left for the next feature to explain.
    """
    return min(0.1, 3 / rows)
