"""``inputs="raw"``: a user's own model gets numbers, codes of the categories, and the weights of these."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from torch import nn

import seqatt

ROWS = 1_500
QUICK: dict[str, Any] = {"target": "y", "inputs": "raw", "epochs": 12, "batch_size": 64}


class Recommender(nn.Module):
    """Embeddings of the categories and the numbers, added up by a small network."""

    def __init__(self, numbers: int, values: tuple[int, ...], outputs: int, width: int = 4):
        super().__init__()
        self.embeddings = nn.ModuleList(nn.Embedding(count, width) for count in values)
        size = numbers + width * len(values)
        self.head = nn.Sequential(nn.Linear(size, 16), nn.ReLU(), nn.Linear(16, outputs))

    def forward(self, numbers: torch.Tensor, codes: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
        fields = [embed(codes[:, j]) * weights[j] for j, embed in enumerate(self.embeddings)]
        return self.head(torch.cat([numbers, *fields], 1))


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    """Two categories of eight and two of a number of columns decide; "shop" has few values, "user" 40."""
    rng = np.random.default_rng(0)
    columns: dict[str, Any] = {f"n{j}": rng.normal(size=ROWS) for j in range(3)}
    columns |= {f"c{j}": rng.integers(0, 5, ROWS).astype(str) for j in range(3)}
    user, shop = rng.integers(0, 40, ROWS), rng.integers(0, 3, ROWS)
    taste = rng.permutation(np.linspace(-2, 2, 40))
    score = taste[user] + np.array([-1.5, 0.0, 1.5])[shop] + columns["n1"]
    return pd.DataFrame(
        {**columns, "user": [f"u{u}" for u in user], "shop": [f"s{s}" for s in shop], "y": score > 0}
    )


def test_a_model_that_embeds_categories_itself_selects_the_planted_ones(frame):
    selection = seqatt.select(frame, k=3, model=Recommender, **QUICK)
    assert set(selection.features) == {"user", "shop", "n1"}
    assert selection.settings["inputs"] == "raw"
    again = seqatt.select(frame, k=3, model=Recommender, **QUICK)
    assert again.scores.tolist() == selection.scores.tolist()


def test_the_module_gets_numbers_and_codes_in_the_order_of_the_columns(frame):
    seen: list[tuple[torch.Tensor, ...]] = []

    class Watcher(Recommender):
        def forward(self, *inputs):
            seen.append(tuple(each.detach().clone() for each in inputs))
            return super().forward(*inputs)

    seqatt.select(frame, k=2, model=Watcher, **QUICK | {"epochs": 1, "univariate_test": 0})
    numbers, codes, weights = seen[-1]
    assert numbers.shape[1] == 3
    assert codes.dtype == torch.long
    assert codes.shape[1] == len(weights) == 5
    # The last is a model of the selected features: every other weight is 0, and so are its numbers.
    assert set(weights.tolist()) <= {0.0, 1.0}
    assert all(set(column.unique().tolist()) <= set(range(60)) for column in codes.T)
    assert codes[:, 3].max() > 16 > codes[:, 4].max()  # user, shop


def test_rows_read_batch_by_batch_evaluation_and_groups_have_raw_inputs_too(frame, tmp_path):
    frame.to_parquet(tmp_path / "rows.parquet", row_group_size=500)
    streamed = seqatt.select(tmp_path / "rows.parquet", k=3, model=Recommender, memory=0, **QUICK)
    assert streamed.settings["reading"] == "batches"
    assert set(streamed.features) == {"user", "shop", "n1"}
    grouped = seqatt.select(frame, k=1, model=Recommender, groups={"both": ["user", "shop"]}, **QUICK)
    assert grouped.features == ["both"]
    found = seqatt.evaluate(
        frame[:1_000],
        "y",
        frame[1_000:],
        indices=["user", "shop", "n1"],
        model=Recommender,
        inputs="raw",
        seeds=[0],
    )
    assert found.mean["accuracy"] > 0.85


def test_categories_alone_and_numbers_alone_are_raw_inputs(frame):
    only = frame[["user", "shop", "c0", "y"]]
    assert set(seqatt.select(only, k=2, model=Recommender, **QUICK).features) == {"user", "shop"}
    assert seqatt.select(frame[["n0", "n1", "n2", "y"]], k=1, model=Recommender, **QUICK).features == ["n1"]


@pytest.mark.parametrize(
    "method", ["stochastic_gates", "permutation_importance", "cancel_out", "gumbel_gates"]
)
def test_other_gates_take_raw_inputs(frame, method):
    selection = seqatt.select(frame, k=3, method=method, model=Recommender, **QUICK)
    assert "user" in selection.features


class Deaf(Recommender):
    def forward(self, numbers, codes, weights):
        return super().forward(numbers, codes, torch.ones_like(weights))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"model": None}, "inputs: 'raw' is for your own model"),
        ({"inputs": "codes"}, "inputs: unknown 'codes'; use one of columns, raw"),
        ({"model": Deaf}, r"do not depend on its third argument, the weights of the codes; multiply"),
        (
            {"model": Recommender(3, (2, 2, 2, 2, 2), 1)},
            r"codes of categories with \[.*\] values .*out of range",
        ),
        (
            {"model": lambda columns, outputs: nn.Linear(columns, outputs)},
            r"cannot be called as .*\(3, \(.*\), 1\)",
        ),
        ({"method": "batch_attention"}, "inputs: this method looks at columns"),
        ({"method": "deep_lasso"}, "inputs: this method looks at columns"),
        ({"method": "omp"}, "first Linear layer"),
    ],
)
def test_what_does_not_fit_is_refused_before_training(frame, options, message):
    with pytest.raises((TypeError, ValueError), match=message):
        seqatt.select(frame, k=2, **{"model": Recommender, **QUICK, **options})


class Misweighted(Recommender):
    """Multiplies embeddings by these weights instead of their own; None for 1."""

    used: tuple[int | None, ...] = ()
    normalised = False

    def forward(self, numbers, codes, weights):
        own = torch.stack([torch.ones_like(weights[0]) if j is None else weights[j] for j in self.used])
        if not self.normalised:
            return super().forward(numbers, codes, own)
        fields = [embed(codes[:, j]) * own[j] for j, embed in enumerate(self.embeddings)]
        return self.head(torch.cat([numbers, *(nn.functional.layer_norm(f, f.shape[1:]) for f in fields)], 1))


@pytest.mark.parametrize(
    ("used", "normalised", "named"),
    [((0, 1, 2, None, 4), False, 3), ((0, 0, 0, 0, 0), False, 1)],
)
def test_a_weight_that_changes_no_output_is_named(frame, used, normalised, named):
    model = type("Model", (Misweighted,), {"used": used, "normalised": normalised})
    with pytest.warns(UserWarning, match=rf"do not seem to depend on weights\[{named}\]"):
        seqatt.select(frame, k=2, model=model, **QUICK | {"epochs": 1, "univariate_test": 0})


def test_a_norm_behind_the_weights_is_refused(frame):
    model = type("Model", (Misweighted,), {"used": (0, 1, 2, 3, 4), "normalised": True})
    with pytest.raises(ValueError, match="do not depend on its third argument"):
        seqatt.select(frame, k=2, model=model, **QUICK)


def test_maxima_over_categories_are_accepted(frame):
    class Largest(Recommender):
        def forward(self, numbers, codes, weights):
            fields = [embed(codes[:, j]) * weights[j] for j, embed in enumerate(self.embeddings)]
            pooled = torch.stack(fields).amax(0)
            return self.head(torch.cat([numbers, *[pooled] * len(fields)], 1))

    seqatt.select(frame, k=2, model=Largest, **QUICK | {"epochs": 1, "univariate_test": 0})


def test_a_last_layer_that_starts_at_zero_is_accepted(frame):
    class FromZero(Recommender):
        def __init__(self, *sizes):
            super().__init__(*sizes)
            nn.init.zeros_(self.head[-1].weight)

    seqatt.select(frame, k=2, model=FromZero, **QUICK | {"epochs": 1, "univariate_test": 0})


def test_the_hint_for_a_model_with_embeddings_names_raw_inputs(frame):
    class Embeds(nn.Module):
        def __init__(self, columns, outputs):
            super().__init__()
            self.embedding = nn.Embedding(10, outputs)

        def forward(self, x):
            return self.embedding(x).sum(1)

    with pytest.raises(ValueError, match="say inputs='raw' for a model that embeds categories"):
        seqatt.select(frame, target="y", k=2, model=Embeds)


@pytest.mark.parametrize(
    "own",
    [
        {"loss": nn.functional.binary_cross_entropy_with_logits},
        {"optimizer": torch.optim.Adam},
        {"batch_norm": True},
    ],
)
def test_without_an_own_model_networks_trained_through_autograd_get_columns(frame, own):
    options: dict[str, Any] = {"epochs": 12, "batch_size": 64, **own}
    selection = seqatt.select(frame, target="y", k=3, **options)
    assert "user" in selection.features  # of more values than are encoded one-hot for the built-in network
    found = seqatt.evaluate(frame[:1_000], "y", frame[1_000:], indices=selection, seeds=[0], **options)
    assert found.mean["accuracy"] > 0.7


def test_the_rows_of_a_data_loader_train_an_own_model_in_memory_and_batch_by_batch(frame):
    x = torch.tensor(frame[["n0", "n1", "n2"]].to_numpy(), dtype=torch.float32)
    y = (x[:, 1] > 0).long()
    batches = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x, y), batch_size=100)
    for memory in ("1GB", 0):
        selection = seqatt.select(batches, k=1, model=nn.Linear, memory=memory, epochs=3)
        assert selection.features == ["x1"]
        assert selection.settings["reading"] == ("batches" if memory == 0 else "memory")
