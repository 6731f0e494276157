"""The pairwise loss against its definition, and rows of a query that stay together."""

import numpy as np
import pandas as pd
import pytest
import torch

import seqatt
from seqatt.data.tables.row_units import adjacent_order
from seqatt.data.tables.table_data import read_table_data
from seqatt.data.tables.target import read_target
from seqatt.losses.table import LOSSES
from seqatt.training.ensemble import Member
from seqatt.training.evaluation.batches import SeedBatches
from seqatt.training.loaders.batch import DeviceTable
from seqatt.training.loaders.in_memory import InMemoryLoader, MemberData

RANKING = LOSSES["ranking"]


def ranking_problem(seed, queries=60, documents=10):
    """Features 0, 1 and 2 decide about the relevance within a query; feature 3 tells easy queries from hard ones."""
    rng = np.random.default_rng(seed)
    query = np.repeat(np.arange(queries), documents)
    X = rng.normal(size=(len(query), 20))
    level = 3 * rng.normal(size=queries)
    X[:, 3] = level[query] + 0.1 * rng.normal(size=len(query))
    score = X[:, 0] - X[:, 1] + 0.7 * X[:, 2] + 0.5 * rng.normal(size=len(query)) + level[query]
    y = np.stack([np.digitize(score, [-3, -1, 1, 3]), query], axis=1)
    shuffled = rng.permutation(len(query))
    return X[shuffled], y[shuffled]


def batch():
    rng = np.random.default_rng(0)
    y = np.stack([rng.integers(0, 3, (2, 30)), rng.integers(0, 6, (2, 30))], axis=2)
    return torch.from_numpy(rng.normal(size=(2, 30, 1))), torch.from_numpy(y.astype(np.float64))


def by_definition(out, y):
    """The sum over queries of the mean loss of their pairs, each times the rows of the query."""
    total = out.new_zeros(())
    for query in y[:, 1].unique():
        rows = torch.nonzero(y[:, 1] == query)[:, 0]
        losses = [
            torch.log1p(torch.exp(-(out[i, 0] - out[j, 0]))) for i in rows for j in rows if y[i, 0] > y[j, 0]
        ]
        total = total + len(rows) * torch.stack(losses).mean() if losses else total
    return total


def test_the_loss_is_the_mean_over_pairs_of_a_query_and_the_gradient_its_own():
    out, y = batch()
    out.requires_grad_()
    losses = RANKING.per_row(out, y)
    expected = torch.stack([by_definition(out[t], y[t]) for t in range(2)])
    torch.testing.assert_close(losses.sum(1), expected)
    (gradient,) = torch.autograd.grad(losses.sum(), out)
    torch.testing.assert_close(RANKING.grad(out.detach(), y), gradient)


def test_metrics_of_a_ranking():
    from sklearn.metrics import ndcg_score

    rng = np.random.default_rng(0)
    y = np.stack([rng.integers(0, 4, 60), np.repeat(np.arange(5), 12)], axis=1).astype(float)
    out = rng.integers(0, 8, (60, 1)).astype(float)  # with ties
    measured = RANKING.measure(None, out, y)
    by_query = [(out[y[:, 1] == q, 0], y[y[:, 1] == q, 0]) for q in range(5)]
    gains = [ndcg_score([2.0 ** (r - r.min()) - 1], [o], k=10) for o, r in by_query]
    assert measured["ndcg@10"] == pytest.approx(np.mean(gains))
    assert RANKING.measure(None, y[:, :1], y) == {"ndcg@10": 1.0, "pair_accuracy": 1.0}
    assert RANKING.measure(None, np.zeros((60, 1)), y)["pair_accuracy"] == 0.5


@pytest.mark.parametrize("method", ["sequential_attention", "omp", "f_test"])
def test_planted_features_are_found_where_relevance_itself_shows_the_query(method):
    X, y = ranking_problem(0)
    found = seqatt.select(X, y, 3, task="ranking", method=method)
    assert sorted(found.indices) == [0, 1, 2]
    assert seqatt.select(X, y[:, 0].astype(float), 1, task="regression", method=method).indices.tolist() == [
        3
    ]


def test_batches_hold_the_rows_of_a_query_together():
    X, y = ranking_problem(1)
    data = read_table_data(X, y, task="ranking")
    member = MemberData(Member(0, 0).generator(1), Member(0, 0).generator(2), torch.arange(500))
    loader = InMemoryLoader(DeviceTable.of_data(data, torch.device("cpu")), 64, [member])
    loader.load(7)
    order = SeedBatches(0, data.rows, 64, data.target.queries)
    for i in range(7):
        for queries in (
            loader.batch(i).y[0, :, 1].numpy(),
            data.target.values[order.next(None)[0].numpy(), 1],
        ):
            assert len(np.unique(queries)) <= 10  # of random rows, 64 would be of about 40 queries
    np.testing.assert_array_equal(adjacent_order(np.array([7, 5, 7, 6, 5])), [0, 2, 1, 4, 3])


def test_rows_of_a_query_are_never_divided():
    X, y = ranking_problem(2)
    data = read_table_data(X, y, task="ranking")
    for train, held_out in data.units.hold_out(5, 4, np.random.default_rng(0)):
        assert not set(y[train, 1]) & set(y[held_out, 1])


def test_queries_may_be_texts_and_columns_and_k_is_found():
    X, y = ranking_problem(3, queries=30)
    frame = pd.DataFrame(X).rename(columns=str).assign(rel=y[:, 0], q=[f"query {q}" for q in y[:, 1]])
    found = seqatt.select(frame, target="rel,q", k="auto", max_k=5, task="ranking", epochs=20)
    assert found.curve["metric"] == "pair_accuracy"
    assert not {"rel", "q"} & set(found.names)
    assert set(found.features[:3]) == {"0", "1", "2"}
    rows = frame[:200], "rel,q", frame[200:]
    scores = seqatt.evaluate(*rows, indices=["0", "1", "2"], task="ranking", seeds=[0, 1], epochs=30)
    alone = seqatt.evaluate(*rows, indices=["0", "1", "2"], task="ranking", seeds=[1], epochs=30)
    assert scores["ndcg@10"][1] == alone["ndcg@10"][0] > 0.85


@pytest.mark.parametrize(
    ("y", "weights", "message"),
    [
        ([1.0, 2.0], None, "y: task='ranking' needs two columns, the relevance and the query of each row"),
        ([[1, 1], [1, 1], [2, 2]], None, "y: no query has rows of different relevance"),
        ([[1, 1], [2, 1]], np.ones(2), "sample_weight: pairs of rows have no weights"),
    ],
)
def test_a_ranking_target_that_cannot_be_used_is_refused(y, weights, message):
    with pytest.raises(ValueError, match=message):
        read_target(np.array(y), weights, "ranking")
