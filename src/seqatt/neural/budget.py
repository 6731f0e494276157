"""How long to train when the user does not say."""

from __future__ import annotations

SMALLEST, LARGEST = 64, 256  # rows in a batch
LEAST, MOST = 3_000, 20_000  # steps
EACH = 40  # steps for each feature to choose, at least
PASSES = 10  # over the rows, within those limits


def default_batch_size(rows: int) -> int:
    """A sixteenth of the rows, as a power of two from 64 to 256; small tables are taken whole."""
    if rows <= LARGEST:
        return rows
    size = SMALLEST
    while size < LARGEST and size * 16 < rows:
        size *= 2
    return size


def default_steps(rows: int, batch_size: int, k: int) -> int:
    """Ten passes over the rows, but 3,000 steps at least, 20,000 at most, and 40 for each feature."""
    passes = PASSES * rows // batch_size
    return max(min(max(passes, LEAST), MOST), EACH * k)


def batch_size_for(rows: int, asked: int | None) -> int:
    """What a user asked for, or the default; never more rows than there are."""
    return min(asked or default_batch_size(rows), rows)


def steps_for(rows: int, batch_size: int, epochs: float | None, k: int) -> int:
    """What a user asked for in passes over the rows, or the default."""
    if epochs is None:
        return default_steps(rows, batch_size, k)
    return max(1, round(epochs * rows / batch_size))


def default_replacement(k: int) -> int:
    """Rounds of dropping and choosing again: one for every three features, 15 at most."""
    return min(15, k // 3)


def default_decay(rows: int) -> float:
    """How strongly the weights of unselected features are pulled to zero at every step.

    Definition 3.1 has this penalty once for all rows, so its share of a step is inverse to their number.
    Without it a small table is fitted by the features that were not chosen, and nothing is left for
    the next choice to explain.
    """
    return min(0.1, 3 / rows)
