"""Embedding tables: looked-up rows, and their gradients."""

import numpy as np
import torch

from seqatt.training.models.embeddings import Embeddings, _sort_distinct, _sort_padded

CPU = torch.device("cpu")


def test_both_ways_to_sort_looked_up_rows_agree():
    looked_up = torch.from_numpy(np.random.default_rng(0).integers(50, size=400).astype(np.int32))
    rows, order, starts = _sort_distinct(looked_up)
    padded, same_order, padded_starts = _sort_padded(looked_up, padding=60)
    count = len(rows)
    assert torch.equal(padded[:count], rows)
    assert torch.equal(padded_starts[:count], starts)
    assert torch.equal(same_order, order)
    assert padded[count:].bincount().max() <= 7  # the padding, which has empty sums, is spread over all rows
    assert (padded_starts[count:] == len(looked_up)).all()


def test_the_gradients_of_table_rows_are_those_of_autograd():
    """Two models, three categories; a gradient is times the rows of the batch."""
    sizes, width, rows = (5, 30, 7), 4, 9
    embeddings = Embeddings(sizes, width, 2, CPU)
    embeddings.reset_parameters([torch.Generator().manual_seed(seed) for seed in range(2)])
    draw = torch.Generator().manual_seed(3)
    codes = torch.stack([torch.randint(size, (2, rows), generator=draw) for size in sizes], 2).int()
    grad = torch.randn(2, rows, embeddings.columns, generator=draw)
    looked_up = embeddings.lookup(codes)
    embeddings.collect(grad)

    values = embeddings.values.clone().requires_grad_()
    tables = torch.split(values, [size for _ in range(2) for size in sizes])
    each = [tables[3 * model + m][codes[model, :, m].long()] for model in range(2) for m in range(3)]
    expected = torch.stack([torch.cat(each[:3], 1), torch.cat(each[3:], 1)])
    (expected * grad * rows).sum().backward()

    torch.testing.assert_close(looked_up, expected.detach())
    numbers, sums = embeddings.grads
    torch.testing.assert_close(torch.zeros_like(values).index_add_(0, numbers, sums), values.grad)
    assert len(numbers.unique()) == len(numbers)


def test_small_tables_have_the_gradients_of_large_ones_bit_for_bit_on_any_number_of_threads():
    sizes, width, rows = (5, 30, 7), 4, 300
    embeddings = Embeddings(sizes, width, 2, CPU)
    draw = torch.Generator().manual_seed(3)
    codes = torch.stack([torch.randint(size, (2, rows), generator=draw) for size in sizes], 2).int()
    grad = torch.randn(2, rows, embeddings.columns, generator=draw)
    looked_up = embeddings.lookup(codes).shape
    assert looked_up == grad.shape
    distinct, sums = embeddings.merge(embeddings._looked_up, grad.reshape(-1, width))
    before = torch.get_num_threads()
    try:
        for threads in (1, 2):
            torch.set_num_threads(threads)
            embeddings.collect(grad)
            numbers, small = embeddings.grads
            assert len(numbers) == 2 * sum(sizes)
            assert torch.equal(small[distinct], sums * rows)
    finally:
        torch.set_num_threads(before)
