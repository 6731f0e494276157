import pytest
import torch

from seqatt.training.models.losses import LOSSES, autograd_loss


def targets(task: str, outputs: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(1)
    if task == "multiclass":
        return torch.randint(outputs, (2, 9), generator=generator)
    values = torch.randn(2, 9, outputs, generator=generator, dtype=torch.float64)
    return values if task == "regression" else (values > 0).double()


@pytest.mark.parametrize(
    ("task", "outputs"), [("binary", 1), ("multiclass", 4), ("multilabel", 3), ("regression", 2)]
)
def test_losses_per_row_and_gradients_agree_with_torch(task, outputs):
    y = targets(task, outputs)
    generator = torch.Generator().manual_seed(2)
    out = torch.randn(2, 9, outputs, generator=generator, dtype=torch.float64, requires_grad=True)
    expected = torch.stack([autograd_loss(task, out[t], y[t]) for t in range(2)])
    (expected_grad,) = torch.autograd.grad(expected.sum(), out)
    with torch.no_grad():
        torch.testing.assert_close(LOSSES[task].per_row(out, y), expected)
        torch.testing.assert_close(LOSSES[task].grad(out, y), expected_grad)


def test_a_binary_target_may_have_two_outputs():
    one = torch.tensor([[0.7], [-0.2]])
    two = torch.cat([torch.zeros_like(one), one], 1)
    y = torch.tensor([[1.0], [0.0]])
    torch.testing.assert_close(autograd_loss("binary", one, y), autograd_loss("binary", two, y))
