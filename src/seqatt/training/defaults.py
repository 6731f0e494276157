"""How long to train when the user does not say."""

from __future__ import annotations

import math

SMALLEST, LARGEST = 64, 256  # rows in a batch
LEAST, MOST = 4_000, 20_000  # steps
EACH = 40  # steps for each feature to choose, at least
PASSES = 10  # over the rows, within those limits
JUDGED_LEAST, JUDGED_MOST, JUDGED_PASSES = 3_000, 12_000, 50  # the same, for a network that judges a choice
JUDGED_ROWS = 10_000  # beyond which it learns faster, with less noise
MEMBERS = 4  # of a trial's committee
HEARD_LEAST, HEARD_MOST = 2.0, 4.0  # how far a feature's own evidence counts, in powers of ten of doubt
CROWDED = 0.4  # correlation by chance from which it counts to the most
FEWEST = 32  # rows below which nothing is dealt to members or dropped


def default_batch_size(rows: int) -> int:
    """A sixteenth of the rows, as a power of two from 64 to 256; small tables are taken whole."""
    if rows <= LARGEST:
        return rows
    size = SMALLEST
    while size < LARGEST and size * 16 < rows:
        size *= 2
    return size


def default_steps(rows: int, batch_size: int, k: int) -> int:
    """Ten passes over the rows, but 4,000 steps at least, 20,000 at most, and 40 for each feature.

    The members of a committee share them.
    """
    passes = PASSES * rows // batch_size
    return max(min(max(passes, LEAST), MOST), EACH * k)


def batch_size_for(rows: int, asked: int | None, members: int = 1) -> int:
    """What a user asked for, or the default; never more rows than a model learns from."""
    return min(asked or default_batch_size(rows), rows_learnt(rows, members))


def steps_for(rows: int, batch_size: int, epochs: float | None, k: int) -> int:
    """What a user asked for in passes over the rows, or the default."""
    if epochs is None:
        return default_steps(rows, batch_size, k)
    return max(1, round(epochs * rows / batch_size))


def judging_steps(rows: int, batch_size: int, epochs: float | None) -> int:
    """How long a network is trained that judges a choice: fifty passes, 3,000 to 12,000 steps."""
    if epochs is not None:
        return steps_for(rows, batch_size, epochs, k=1)
    return min(max(JUDGED_PASSES * rows // batch_size, JUDGED_LEAST), JUDGED_MOST)


def judging_rate(rows: int) -> float:
    """The pace of a network that judges a choice: 0.003, up to six times as much where rows are plenty."""
    return 3e-3 * min(max(1.0, rows / JUDGED_ROWS), 6.0)


def judging_noise(rows: int) -> float:
    """Share of inputs it leaves out, and smoothing of its classes: a tenth, less where rows are plenty."""
    return 0.1 * min(1.0, math.sqrt(JUDGED_ROWS / rows))


def default_replacement(k: int) -> int:
    """Rounds of dropping and choosing again: one for every three features, 5 at most."""
    return min(5, k // 3)


def default_members(rows: int) -> int:
    """Models in a trial's committee: four, but one where its parts would be a handful of rows."""
    return MEMBERS if rows >= FEWEST else 1


def rows_learnt(rows: int, members: int) -> int:
    """How many rows each member of a committee learns from: all but its part of those dealt."""
    return rows if members == 1 else rows - rows // (members + 1)


def default_evidence(rows: int, columns: int) -> float:
    """How far a feature's own evidence counts: the further, the further chance gets in such a table.

    The best of so many columns of noise has about this correlation with any target.
    """
    by_chance = math.sqrt(2 * math.log(max(2, columns)) / rows)
    heard = min(HEARD_MOST, max(HEARD_LEAST, HEARD_MOST * by_chance / CROWDED))
    return heard if rows >= FEWEST else 0.0


def default_squash(rows: int, columns: int) -> bool:
    """Whether far-out values are drawn in: where there are more columns than rows.

    There any target can be fitted, and a far-out value fits its row the cheapest. Where rows are plenty it
    made no difference that was worth another copy of the table.
    """
    return columns > rows


def default_input_dropout(rows: int, columns: int) -> float:
    """How often an input is dropped in training: the more, the more columns there are for the rows.

    A network with many inputs and few rows knows the rows by heart; what it has then no use for looks
    useless. Large tables need none of it, and a little is not worth its cost.
    """
    rate = math.sqrt(columns / rows)
    return min(0.6, rate) if rate >= 0.15 and rows >= FEWEST else 0.0


def default_decay(rows: int) -> float:
    """How strongly the weights of unselected features are pulled to zero at every step.

    Definition 3.1 has this penalty once for all rows, so its share of a step is inverse to their number.
    Without it a small table is fitted by the features that were not chosen, and nothing is left for
    the next choice to explain.
    """
    return min(0.1, 3 / rows)
