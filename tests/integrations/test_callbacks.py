"""Callbacks advance the layer in the training loops of Lightning, Hugging Face transformers and skorch."""

from __future__ import annotations

import logging
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn.functional import binary_cross_entropy_with_logits
from torch.utils.data import DataLoader, TensorDataset

from seqatt import SequentialAttention
from seqatt.integrations import find_attention, start

ROWS, FEATURES, PLANTED = 512, 12, {2, 7}
NAMES = [f"column {i}" for i in range(FEATURES)]

pytestmark = pytest.mark.filterwarnings(
    "ignore"
)  # of the libraries themselves, which differ between releases


def rows() -> TensorDataset:
    x = torch.randn(ROWS, FEATURES, generator=torch.Generator().manual_seed(0))
    return TensorDataset(x, (x[:, 2] - x[:, 7] > 0).float())


def network(**options: Any) -> nn.Sequential:
    torch.manual_seed(0)
    attention = SequentialAttention(FEATURES, k=2, **options)
    return nn.Sequential(attention, nn.Linear(FEATURES, 16), nn.ReLU(), nn.Linear(16, 1))


def parameter_groups(model: nn.Module) -> list[dict[str, Any]]:
    logits = find_attention(model).logits
    others = [parameter for parameter in model.parameters() if parameter is not logits]
    return [{"params": others}, {"params": [logits], "lr": 0.05}]


@pytest.fixture
def pl() -> Any:
    return pytest.importorskip("pytorch_lightning", reason="needs Lightning: pip install 'seqatt[lightning]'")


def lightning_module(pl: Any, network: nn.Module) -> Any:
    class Module(pl.LightningModule):
        def __init__(self) -> None:
            super().__init__()
            self.network = network

        def training_step(self, batch: Any, number: int) -> torch.Tensor:
            return binary_cross_entropy_with_logits(self.network(batch[0])[:, 0], batch[1])

        def validation_step(self, batch: Any, number: int) -> None:
            self.log("validation_loss", self.training_step(batch, number))

        def configure_optimizers(self) -> Any:
            return torch.optim.Adam(parameter_groups(self), lr=1e-2)

    return Module()


def fit(pl: Any, module: Any, folder: Any, *, epochs: int = 6, path: Any = None, **options: Any) -> Any:
    from seqatt.integrations.lightning import LightningCallback

    trainer = pl.Trainer(
        max_epochs=epochs,
        accelerator="cpu",
        default_root_dir=folder,
        callbacks=[LightningCallback(NAMES)],
        enable_progress_bar=False,
        enable_model_summary=False,
        logger=False,
        **options,
    )
    batches = DataLoader(rows(), batch_size=16, shuffle=True)
    trainer.fit(module, batches, DataLoader(rows(), batch_size=256), ckpt_path=path)
    return trainer


@pytest.mark.parametrize("accumulated", [1, 4])
def test_lightning_makes_as_many_steps_as_its_optimizer(pl, tmp_path, caplog, accumulated):
    module = lightning_module(pl, network())
    with caplog.at_level(logging.INFO, logger="seqatt"):
        trainer = fit(
            pl,
            module,
            tmp_path,
            epochs=6 * accumulated,
            accumulate_grad_batches=accumulated,
            enable_checkpointing=False,
        )
    attention = find_attention(module)
    assert attention.total_steps == int(attention.steps_done) == trainer.global_step == 6 * ROWS // 16
    assert set(attention.selected) == PLANTED
    assert trainer.callback_metrics["selected_features"] == 2
    assert [f"selected feature {NAMES[i]}" in caplog.text for i in range(FEATURES)] == [
        i in PLANTED for i in range(FEATURES)
    ]


def test_lightning_resumes_in_the_middle_of_a_selection(pl, tmp_path):
    whole = lightning_module(pl, network(total_steps=192))
    trainer = fit(pl, whole, tmp_path / "whole", epochs=3)
    trainer.save_checkpoint(tmp_path / "middle.ckpt")
    assert int(find_attention(whole).steps_done) == 96
    resumed = lightning_module(pl, network())  # total_steps comes from the checkpoint
    fit(pl, resumed, tmp_path / "resumed", epochs=6, path=tmp_path / "middle.ckpt")
    attention = find_attention(resumed)
    assert attention.total_steps == int(attention.steps_done) == 192
    assert set(attention.selected) == PLANTED


class WithLoss(nn.Module):
    """As the Trainer calls a model: it returns the loss."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network

    def forward(self, x: torch.Tensor, labels: torch.Tensor) -> dict[str, torch.Tensor]:
        logits = self.network(x)[:, 0]
        return {"loss": binary_cross_entropy_with_logits(logits, labels), "logits": logits}


@pytest.mark.parametrize("accumulated", [1, 2])
def test_the_trainer_of_transformers_makes_as_many_steps_as_its_optimizer(tmp_path, accumulated, capsys):
    transformers = pytest.importorskip("transformers", reason="needs transformers: 'seqatt[transformers]'")
    pytest.importorskip(
        "accelerate", reason="the Trainer needs accelerate: pip install 'seqatt[transformers]'"
    )
    from seqatt.integrations.transformers import TransformersCallback

    model = WithLoss(network())
    data = [{"x": x, "labels": y} for x, y in rows()]
    trainer = transformers.Trainer(
        model,
        transformers.TrainingArguments(
            output_dir=str(tmp_path),
            per_device_train_batch_size=16 // accumulated,
            gradient_accumulation_steps=accumulated,
            num_train_epochs=6,
            lr_scheduler_type="constant",
            logging_steps=50,
            save_strategy="no",
            report_to=[],
            use_cpu=True,
            disable_tqdm=True,
        ),
        train_dataset=data,
        optimizers=(torch.optim.Adam(parameter_groups(model), lr=1e-2), None),
        callbacks=[TransformersCallback(NAMES)],
    )
    trainer.train()
    attention = find_attention(model)
    assert attention.total_steps == int(attention.steps_done) == trainer.state.global_step == 6 * ROWS // 16
    assert set(attention.selected) == PLANTED
    assert [entry["selected_features"] for entry in trainer.state.log_history if "loss" in entry][-1] >= 1


def test_a_net_of_skorch_selects_inside_cross_validation():
    skorch = pytest.importorskip("skorch", reason="needs skorch: pip install 'seqatt[skorch]'")
    from sklearn.model_selection import cross_val_score

    from seqatt.integrations.skorch import SkorchCallback

    net = skorch.NeuralNetBinaryClassifier(
        network,
        optimizer=torch.optim.Adam,
        optimizer__param_groups=[("0.logits", {"lr": 0.05})],
        lr=1e-2,
        max_epochs=12,
        batch_size=16,
        callbacks=[("attention", SkorchCallback(NAMES))],
        verbose=0,
    )
    x, y = (tensor.numpy() for tensor in rows().tensors)
    net.fit(x, y)
    attention = find_attention(net.module_)
    assert set(attention.selected) == PLANTED
    assert attention.total_steps == int(attention.steps_done)
    assert net.history[-1, "selected_features"] == 2
    assert cross_val_score(net, x, y, cv=2, scoring="accuracy").min() > 0.85


def test_the_callback_needs_one_layer_and_a_number_of_steps():
    with pytest.raises(
        ValueError, match="Linear has 0 layers SequentialAttention, and the callback needs one"
    ):
        find_attention(nn.Linear(2, 2))
    with pytest.raises(ValueError, match="has 2 layers SequentialAttention"):
        find_attention(nn.Sequential(network(), network()))
    with pytest.raises(ValueError, match="the trainer does not know how many steps it makes"):
        start(find_attention(network()), float("inf"))
    given = find_attention(network(total_steps=30))
    start(given, 500)  # what the user gave stays
    assert given.total_steps == 30
