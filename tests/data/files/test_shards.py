"""Shards: every one is read by one rank."""

from __future__ import annotations

import pytest

from seqatt.data.files.shards import count_shards, shards_of_rank


@pytest.mark.parametrize(("shards", "ranks"), [(1, 1), (4, 1), (4, 2), (6, 3), (8, 8)])
def test_every_shard_is_read_by_one_rank_and_all_ranks_read_as_many(shards, ranks):
    read = [list(shards_of_rank(shards, rank, ranks)) for rank in range(ranks)]
    assert sorted(shard for own in read for shard in own) == list(range(shards))
    assert len({len(own) for own in read}) == 1


def test_there_is_one_shard_per_rank_unless_another_multiple_is_given():
    assert (count_shards(None, 3), count_shards(6, 3)) == (3, 6)
    with pytest.raises(ValueError, match="shards: 4 cannot be shared by 3 ranks; use a multiple of 3"):
        count_shards(4, 3)
