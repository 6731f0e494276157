"""The layer ``SequentialAttention`` before models that normalise, and on inputs of three dimensions."""

from __future__ import annotations

import warnings

import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits, mse_loss

from seqatt import SequentialAttention

PLANTED = [3, 11, 19, 24, 28]


def regression(seed: int) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(1000, 30, generator=generator)
    return x, (x[:, PLANTED] @ torch.tensor([1.5, -1.2, 1.0, 0.8, -0.6]))[:, None]


class NormInForward(nn.Module):
    """A module that normalises first, though its norm is defined last."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(30, 1)
        self.norm = nn.BatchNorm1d(30)

    def forward(self, x: Tensor) -> Tensor:
        return self.linear(self.norm(x))


def train(
    attention: SequentialAttention, first: nn.Module, seed: int = 0, steps: int = 400, call=None
) -> set[int]:
    x, y = regression(seed)
    torch.manual_seed(seed)
    model = nn.Sequential(first, nn.LazyLinear(32), nn.ReLU(), nn.Linear(32, 1))
    model(x[:2])
    groups = [{"params": model.parameters()}, {"params": attention.parameters(), "lr": 0.05}]
    optimizer = torch.optim.Adam(groups, lr=3e-3)
    for _ in range(steps):
        rows = torch.randint(0, 1000, (128,))
        optimizer.zero_grad()
        mse_loss(model((attention if call is None else call)(x[rows])), y[rows]).backward()
        optimizer.step()
        attention.advance()
    return set(attention.selected)


@pytest.mark.parametrize("seed", range(3))
def test_planted_features_are_found_before_a_batch_norm(seed):
    attention = SequentialAttention(30, k=5, total_steps=400)
    with pytest.warns(UserWarning, match="normalises its input.* rows are blended instead"):
        assert train(attention, nn.BatchNorm1d(30), seed) == set(PLANTED)


@pytest.mark.parametrize(
    "norm",
    [nn.BatchNorm1d(30), nn.LayerNorm(30), nn.RMSNorm(30), nn.GroupNorm(3, 30)],
    ids=lambda module: type(module).__name__,
)
def test_planted_features_are_found_behind_a_normalisation_as_the_warning_recommends(norm):
    attention = SequentialAttention(30, k=5, total_steps=400)
    assert train(attention, nn.Identity(), call=lambda x: attention(norm(x))) == set(
        PLANTED
    )  # and no warning
    with pytest.warns(
        UserWarning, match=r"Better put the layer behind the normalisation: nn\.Sequential\(norm, att"
    ):
        train(SequentialAttention(30, k=5, total_steps=400), norm, steps=1)


@pytest.mark.parametrize(
    "first",
    [nn.BatchNorm1d(30), nn.LayerNorm(30), nn.RMSNorm(30), nn.GroupNorm(3, 30), NormInForward()],
    ids=lambda module: type(module).__name__,
)
def test_a_model_that_normalises_its_input_is_noticed_in_the_first_step(first):
    attention = SequentialAttention(30, k=5, total_steps=400)
    with pytest.warns(UserWarning, match="normalises its input") as caught:
        train(attention, first, steps=1)
    assert attention.blend_rows is True
    assert caught[0].filename == __file__


@pytest.mark.parametrize(
    "first",
    [
        nn.Identity(),
        nn.Dropout(0.3),
        nn.Sequential(nn.Linear(30, 30), nn.BatchNorm1d(30)),
        nn.Sequential(nn.Linear(30, 30), nn.LayerNorm(30)),
    ],
    ids=["plain", "dropout", "batch norm later", "layer norm later"],
)
def test_a_model_that_does_not_normalise_its_input_is_scaled_without_a_warning(first):
    attention = SequentialAttention(30, k=5, total_steps=400)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        train(attention, first, steps=1)
    assert attention.blend_rows is False


@pytest.mark.parametrize("blend_rows", [False, True])
def test_blend_rows_that_is_given_is_kept_without_a_warning(blend_rows):
    attention = SequentialAttention(30, k=5, total_steps=400, blend_rows=blend_rows)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        train(attention, nn.BatchNorm1d(30), steps=2)
    assert attention.blend_rows is blend_rows


def test_the_decision_to_blend_rows_is_in_the_state_dict():
    attention = SequentialAttention(30, k=5, total_steps=400)
    with pytest.warns(UserWarning, match="normalises its input"):
        train(attention, nn.BatchNorm1d(30), steps=1)
    resumed = SequentialAttention(30, k=5, total_steps=400)
    resumed.load_state_dict(attention.state_dict())
    assert resumed.blend_rows is True
    scaled = SequentialAttention(30, k=5, total_steps=400, blend_rows=False)
    scaled.load_state_dict(attention.state_dict())
    assert scaled.blend_rows is False


def test_compiled_code_that_cannot_be_examined_is_warned_about_at_the_first_selection():
    torch._dynamo.reset()
    attention = SequentialAttention(30, k=2, total_steps=20)
    compiled = torch.compile(attention, backend="eager")
    with pytest.warns(UserWarning, match="could not examine .* because the code is compiled") as caught:
        train(attention, nn.BatchNorm1d(30), steps=20, call=compiled)
    assert len([w for w in caught if "could not examine" in str(w.message)]) == 1


def test_blending_mixes_each_row_with_another_and_keeps_selected_features():
    attention = SequentialAttention(4, k=2, total_steps=10, warmup=0, blend_rows=True)
    attention.selected_mask[2] = True
    attention.order[0] = 2
    x = torch.randn(50, 4)
    out = attention(x)
    torch.testing.assert_close(out[:, 2], x[:, 2])
    torch.testing.assert_close(out.mean(0), x.mean(0))  # a permutation of the rows keeps the mean
    assert not torch.allclose(out[:, 0], x[:, 0])


def test_dim_1_gates_fields_and_not_the_entries_of_their_embeddings():
    attention = SequentialAttention(8, k=1, total_steps=10, warmup=0, dim=1)
    with torch.no_grad():
        attention.logits.copy_(torch.arange(8.0))
    x = torch.randn(5, 8, 8)  # as many fields as entries
    torch.testing.assert_close(attention(x), x * torch.softmax(torch.arange(8.0), 0)[None, :, None])


def test_dim_counts_from_the_end_too_and_groups_divide_that_dimension():
    weights = torch.tensor([0.25, 0.25, 0.75])
    for dim in (1, -2):
        attention = SequentialAttention(2, k=1, total_steps=10, warmup=0, dim=dim, groups=[0, 0, 1])
        with torch.no_grad():
            attention.logits.copy_(torch.tensor([0.25, 0.75]).log())
        x = torch.randn(5, 3, 4)
        torch.testing.assert_close(attention(x), x * weights[None, :, None])


@pytest.mark.parametrize(
    ("arguments", "shape", "message"),
    [
        (
            {},
            (5, 6),
            r"x: dimension -1 of \(5, 6\) holds the features and has 6 entries, but the layer has 8",
        ),
        ({}, (5, 8, 8), r"x: has 3 dimensions, .* dim=1\) for \(batch, fields, embedding\) or dim=-1"),
        ({"dim": -1}, (5, 8, 3), "has 3 entries, but the layer has 8; use dim=1"),
        ({"dim": 1}, (5, 6, 8), "has 6 entries, but the layer has 8; use dim=2"),
        ({"dim": 2}, (5, 8), "dim=2 is not one of them"),
        ({"groups": [0, 1, 2, 3, 4, 5, 6, 7, 7]}, (5, 8), "has 8 entries, but the layer has 9"),
    ],
)
def test_an_input_of_another_shape_is_an_error_that_names_the_dimension(arguments, shape, message):
    attention = SequentialAttention(8, k=2, total_steps=10, **arguments)
    with pytest.raises(ValueError, match=message):
        attention(torch.zeros(shape))


def clicks(rows: int = 3000) -> tuple[Tensor, Tensor, Tensor]:
    """25 categories of 100 values and 13 numbers; of the fields 3, 17, 25 + 2 and 25 + 9 depends the target."""
    generator = torch.Generator().manual_seed(0)
    codes = torch.randint(0, 100, (rows, 25), generator=generator)
    numbers = torch.randn(rows, 13, generator=generator)
    effects = torch.randn(2, 100, generator=generator)
    score = effects[0][codes[:, 3]] + effects[1][codes[:, 17]] + 1.2 * numbers[:, 2] - 0.8 * numbers[:, 9]
    return codes, numbers, (score > 0).float()[:, None]


class FieldModel(nn.Module):
    """Embeddings and numbers as fields (batch, 38, 8), or as columns (batch, 25 * 8 + 13) with groups."""

    def __init__(self, attention: SequentialAttention, norm: nn.Module | None = None) -> None:
        super().__init__()
        self.attention = attention
        self.embeddings = nn.ModuleList(nn.Embedding(100, 8) for _ in range(25))
        self.directions = nn.Parameter(torch.randn(13, 8) / 8**0.5)
        self.norm = norm or nn.Identity()
        self.head = nn.Sequential(nn.Flatten(), nn.LazyLinear(64), nn.ReLU(), nn.Linear(64, 1))

    def forward(self, codes: Tensor, numbers: Tensor) -> Tensor:
        embedded = torch.stack([embed(codes[:, i]) for i, embed in enumerate(self.embeddings)], 1)
        if self.attention.dim is None:
            inputs = torch.cat([embedded.flatten(1), numbers], 1)
        else:
            inputs = torch.cat([embedded, numbers[:, :, None] * self.directions], 1)
        return self.head(self.norm(self.attention(inputs)))


@pytest.mark.parametrize("form", ["fields", "columns"])
def test_planted_fields_are_found_among_25_embeddings_and_13_numbers(form):
    columns = torch.cat([torch.arange(25).repeat_interleave(8), torch.arange(25, 38)])
    options = {"dim": 1} if form == "fields" else {"groups": columns}
    attention = SequentialAttention(38, k=4, total_steps=300, **options)
    codes, numbers, y = clicks()
    torch.manual_seed(0)
    model = FieldModel(attention)
    model(codes[:2], numbers[:2])
    rest = [p for p in model.parameters() if p is not attention.logits]
    optimizer = torch.optim.Adam([{"params": rest}, {"params": attention.parameters(), "lr": 0.05}], lr=3e-3)
    for _ in range(300):
        rows = torch.randint(0, len(y), (256,))
        optimizer.zero_grad()
        binary_cross_entropy_with_logits(model(codes[rows], numbers[rows]), y[rows]).backward()
        optimizer.step()
        attention.advance()
    assert set(attention.selected) == {3, 17, 25 + 2, 25 + 9}


def test_a_layer_norm_of_each_embedding_is_noticed():
    attention = SequentialAttention(38, k=4, total_steps=300, dim=1)
    codes, numbers, y = clicks(256)
    model = FieldModel(attention, norm=nn.LayerNorm(8))
    binary_cross_entropy_with_logits(model(codes, numbers), y).backward()
    with pytest.warns(UserWarning, match="normalises its input"):
        attention.advance()
