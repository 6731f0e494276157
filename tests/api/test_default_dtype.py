"""The caller's default type of tensors: the networks of seqatt have their own, a model of the user's has it."""

import threading

import numpy as np
import pytest
import torch

import seqatt
from seqatt.algorithms.registry import all_methods
from seqatt.training.backend.threads import default_dtype


@pytest.fixture(autouse=True)
def double():
    torch.set_default_dtype(torch.float64)
    yield
    assert torch.get_default_dtype() is torch.float64
    torch.set_default_dtype(torch.float32)


@pytest.fixture(scope="module")
def problem():
    X = np.random.default_rng(0).normal(size=(300, 6))
    return X, (X[:, 0] + X[:, 1] > 0).astype(int)


@pytest.mark.parametrize("name", [name for name, method in all_methods().items() if method.uses_loss])
def test_every_method_with_networks_selects(name, problem):
    assert len(seqatt.select(*problem, 2, method=name, epochs=20, batch_size=64).features) == 2


def test_the_selection_and_the_evaluation_are_those_of_the_usual_default(problem):
    in_double = seqatt.select(*problem, 2), seqatt.evaluate(*problem, *problem, [0, 1], seeds=1)
    torch.set_default_dtype(torch.float32)
    usual = seqatt.select(*problem, 2), seqatt.evaluate(*problem, *problem, [0, 1], seeds=1)
    torch.set_default_dtype(torch.float64)
    assert in_double[0].features == usual[0].features
    assert in_double[0].importance == usual[0].importance
    assert in_double[1]["log_loss"].tolist() == usual[1]["log_loss"].tolist()


def test_a_loss_of_the_users_is_for_networks_of_seqatt(problem):
    X, _ = problem
    numbers = 2 * X[:, 0] + X[:, 1]
    selection = seqatt.select(X, numbers, 2, loss=torch.nn.functional.huber_loss, epochs=40)
    assert sorted(selection.indices.tolist()) == [0, 1]


def test_threads_that_overlap_leave_the_default_as_it_was():
    opened, closed = threading.Event(), threading.Event()

    def hold():
        with default_dtype(own_model=False):
            opened.set()
            closed.wait()
            assert torch.get_default_dtype() is torch.float32

    with default_dtype(own_model=False):
        thread = threading.Thread(target=hold)
        thread.start()
        opened.wait()
    assert torch.get_default_dtype() is torch.float32  # the thread still needs it
    closed.set()
    thread.join()
    assert torch.get_default_dtype() is torch.float64


def test_a_model_of_the_callers_type_is_trained(problem):
    model = torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1))
    assert model[0].weight.dtype is torch.float64
    assert sorted(seqatt.select(*problem, 2, model=model, epochs=40).indices.tolist()) == [0, 1]
