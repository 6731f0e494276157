"""Who deals which rows: the batches of a stream, for one rank or for many."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from seqatt.stream.batches import Batches, Mixing, Reader
from seqatt.stream.options import Reading
from seqatt.stream.source import Stream


def batches_of(
    stream: Stream,
    options: Reading,
    size: int,
    seed: int,
    *,
    passes: int = 1,
    mine: Sequence[int] = (0,),
    shards: int = 1,
    **others: Any,
) -> Batches:
    """All passes, each in an order of its own."""
    reader = Reader(stream.files.parts, stream.read_piece, stream.no_rows())
    skip = options.on_bad_file == "skip"
    mixing = Mixing(size, options.buffer, seed, passes, shards, tuple(mine), skip)
    return Batches(reader, mixing, **others)


def share_out(shards: int | None, ranks: int) -> int:
    """How many shards there are: what the user says, else one a rank."""
    shards = int(shards or ranks)
    if shards % ranks:
        raise ValueError(f"shards: {shards} cannot be shared by {ranks} ranks; use a multiple of {ranks}")
    return shards


def own_shards(shards: int, rank: int, ranks: int) -> range:
    each = shards // ranks
    return range(rank * each, (rank + 1) * each)
