"""Batches of a table: every row once per pass, in a new order, and the same batches after a checkpoint."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.stats import chisquare

from seqatt.data.tables.table_data import read_table_data, take_features
from seqatt.training.ensemble import NOISE, ORDER, Member
from seqatt.training.loaders.batch import DeviceTable
from seqatt.training.loaders.in_memory import InMemoryLoader, MemberData
from seqatt.training.loaders.input_dropout import InputDropout
from seqatt.training.loaders.row_order import HashedRows

CPU = torch.device("cpu")
ROWS = 24


def make_loader(
    batch_size: int = 6,
    seeds: tuple[int, ...] = (0,),
    rows: int = ROWS,
    dropout: float = 0.0,
    train_rows=None,
    hashed: bool = False,
) -> InMemoryLoader:
    """A loader of rows whose inputs, target and weight tell their number; ``hashed`` as on an accelerator."""
    numbers = torch.arange(rows, dtype=torch.float32)
    table = DeviceTable(numbers[:, None].repeat(1, 3) + 1, numbers[:, None] * 10, numbers + 100)
    members = [
        MemberData(Member(seed, 0).generator(ORDER), Member(seed, 0).generator(NOISE), train_rows)
        for seed in seeds
    ]
    bank = InputDropout(dropout, batch_size * 3, CPU) if dropout else None
    loader = InMemoryLoader(table, batch_size, members, bank)
    if hashed:
        own, generators = [member.train_rows for member in members], [member.order for member in members]
        loader._order = HashedRows(table, loader._count, batch_size, generators, own, batches=5)
    return loader


def next_batches(loader: InMemoryLoader, count: int) -> torch.Tensor:
    """The row numbers (count, T, B) of the next batches."""
    loader.load(count)
    return torch.stack([loader.batch(i).index.clone() for i in range(count)])


ORDERS = pytest.mark.parametrize("hashed", [False, True])


@ORDERS
def test_a_pass_has_every_row_once_and_the_next_one_another_order(hashed):
    loader = make_loader(hashed=hashed)
    passes = [next_batches(loader, 4)[:, 0] for _ in range(3)]
    for batches in passes:
        assert sorted(batches.flatten().tolist()) == list(range(ROWS))
    groups = [{tuple(sorted(batch.tolist())) for batch in batches} for batches in passes]
    assert groups[0] != groups[1] != groups[2]
    assert tuple(range(6)) not in groups[0]  # not the order of the table


@ORDERS
def test_the_order_is_that_of_the_seed_whatever_other_seeds_are_beside_it(hashed):
    alone = next_batches(make_loader(seeds=(3,), hashed=hashed), 12)[:, 0]
    beside = next_batches(make_loader(seeds=(0, 3), hashed=hashed), 12)
    assert torch.equal(beside[:, 1], alone)
    assert not torch.equal(beside[:, 0], alone)


@ORDERS
def test_rows_that_do_not_fill_a_batch_are_in_other_passes(hashed):
    seen = next_batches(make_loader(batch_size=7, hashed=hashed), 30)
    assert set(seen.flatten().tolist()) == set(range(ROWS))
    first = next_batches(make_loader(batch_size=7, hashed=hashed), 3).flatten().tolist()
    assert len(set(first)) == 21  # no row twice in a pass


def test_a_batch_has_the_inputs_the_target_and_the_weights_of_its_rows():
    loader = make_loader(seeds=(0, 1))
    loader.load(5)
    for i in range(5):
        batch = loader.batch(i)
        index = batch.index.float()
        assert torch.equal(batch.x, (index + 1)[:, :, None].expand(-1, -1, 3))
        assert torch.equal(batch.y[:, :, 0], index * 10)
        assert torch.equal(batch.w, index + 100)


@ORDERS
@pytest.mark.parametrize("batch_size", [4, 8])
def test_a_member_sees_its_own_rows_alone(hashed, batch_size):
    own = torch.tensor([1, 5, 6, 7, 11, 13, 17, 23])
    loader = make_loader(batch_size=batch_size, train_rows=own, dropout=0.5, hashed=hashed)
    seen = next_batches(loader, 10)
    assert set(seen.flatten().tolist()) == set(own.tolist())
    assert seen.shape == (10, 1, batch_size)


def test_hashed_orders_are_as_random_as_permutations():
    """Every row is equally often at every place, and next to every other row: chi-squared tests of 4,000 orders."""
    rows, passes = 6, 4000
    loader = make_loader(batch_size=1, rows=rows, hashed=True)
    orders = torch.cat([next_batches(loader, 60) for _ in range(passes * rows // 60)]).view(-1, rows).numpy()
    places = np.array([np.bincount(column, minlength=rows) for column in orders.T])
    assert chisquare(places.ravel()).pvalue > 1e-4
    pairs = np.bincount((orders[:, :-1] * rows + orders[:, 1:]).ravel(), minlength=rows * rows)
    assert chisquare(pairs[pairs > 0]).pvalue > 1e-4
    assert (pairs > 0).sum() == rows * (rows - 1)
    assert len(np.unique(orders, axis=0)) > 700  # of 720


@pytest.mark.parametrize("done", [0, 1, 3, 4, 9])
@pytest.mark.parametrize("dropout", [0.0, 0.5])
@ORDERS
def test_a_restored_loader_continues_with_the_same_batches(done, dropout, hashed):
    """Before the first batch, within a pass, and at its end."""

    def batches(loader: InMemoryLoader, count: int) -> list[torch.Tensor]:
        taken = []
        for _ in range(count):
            loader.load(1)
            taken.append(loader.batch(0).x.clone())
        return taken

    loader = make_loader(dropout=dropout, hashed=hashed)
    batches(loader, done)
    saved = loader.state_arrays()
    expected = batches(loader, 6)
    restored = make_loader(dropout=dropout, hashed=hashed)
    restored.load_arrays(saved)
    assert all(torch.equal(*pair) for pair in zip(batches(restored, 6), expected, strict=True))


def test_all_training_rows_as_one_batch_are_gathered_once():
    loader = make_loader(batch_size=4, seeds=(0, 1), train_rows=torch.tensor([3, 8, 9, 20]))
    loader.load(5)
    batch = loader.batch(0)
    assert loader.batch(4).x is batch.x
    assert batch.x[:, :, 0].tolist() == [[4, 9, 10, 21]] * 2
    assert batch.y[1, :, 0].tolist() == [30, 80, 90, 200]
    assert batch.w[1].tolist() == [103, 108, 109, 120]
    loader.use_table(DeviceTable(torch.arange(ROWS * 2.0).view(ROWS, 2), torch.zeros(ROWS, 1), None))
    assert loader.batch(0).x[0, :, 1].tolist() == [7, 17, 19, 41]


def test_a_table_of_some_features_lies_row_after_row_on_the_device():
    rng = np.random.default_rng(0)
    data = take_features(read_table_data(rng.normal(size=(20, 6)), rng.normal(size=20)), np.array([1, 4]))
    assert not data.columns.flags.c_contiguous  # otherwise this test could not fail
    table = DeviceTable.of_data(data, torch.device("cpu"))
    assert table.x.is_contiguous()
    np.testing.assert_array_equal(table.x.numpy(), data.columns)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
def test_the_order_of_rows_is_the_same_on_every_device():
    numbers, own = torch.arange(50.0), torch.arange(0, 50, 2)
    drawn = []
    for device in ("cpu", "cuda"):
        table = DeviceTable(numbers[:, None].to(device), numbers[:, None].to(device), None)
        generators = [Member(seed, 0).generator(ORDER) for seed in (0, 1)]
        order = HashedRows(table, 25, 4, generators, [own, own], batches=20)
        drawn.append(torch.cat([order.draw(), order.draw()]).cpu())
    assert torch.equal(*drawn)
