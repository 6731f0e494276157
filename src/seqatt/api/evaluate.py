"""``evaluate``: train a network on selected features alone and measure it on test rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypedDict, Unpack

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from seqatt.api.lookup import find_positions
from seqatt.data.tables.containers import InputTable, check_same_columns, read_input_table
from seqatt.data.tables.encoding import SparseColumns
from seqatt.data.tables.table_data import TableData, read_table_data
from seqatt.data.tables.target import Target
from seqatt.options import names_of
from seqatt.selection import Selection
from seqatt.training.backend.device import resolve_device
from seqatt.training.backend.threads import training_threads
from seqatt.training.build import largest_product, make_trial_groups
from seqatt.training.defaults import (
    evaluation_learning_rate,
    evaluation_noise,
    evaluation_steps,
    resolve_batch_size,
)
from seqatt.training.loop import TrialGroup, train
from seqatt.training.options import TrainingOptions
from seqatt.training.schedule import cosine_schedule
from seqatt.validation import check_option_names, check_seeds

PREDICTED_ROWS = 8192  # test rows per forward pass, which bounds memory


class Evaluation(Mapping[str, NDArray[np.float64]]):
    """Metrics on test rows by name, one value per seed: ``evaluation["accuracy"]``.

    Attributes
    ----------
    metric : str
        The main metric: accuracy for classes, R² for numbers.
    seeds : list of int
        The seeds, in the order of the values.
    mean, std : dict of str to float
        Mean and standard deviation of every metric over the seeds. ``std`` divides by n (``compare`` by n - 1).
    """

    def __init__(self, values: dict[str, NDArray[np.float64]], seeds: Sequence[int]) -> None:
        self._values = values
        self.seeds = list(seeds)
        self.metric = next(iter(values))

    def __getitem__(self, name: str) -> NDArray[np.float64]:
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    @property
    def mean(self) -> dict[str, float]:
        return {name: float(v.mean()) for name, v in self._values.items()}

    @property
    def std(self) -> dict[str, float]:
        return {name: float(v.std()) for name, v in self._values.items()}

    def to_dict(self) -> dict[str, Any]:
        """The seeds and the values of every metric, as JSON can hold them."""
        return {"seeds": self.seeds, **{name: v.tolist() for name, v in self._values.items()}}

    def __repr__(self) -> str:
        shown = ", ".join(f"{n} {self.mean[n]:.4f} ± {self.std[n]:.4f}" for n in self)
        return f"Evaluation({shown}; {len(self.seeds)} seed(s))"


class EvaluateOptions(TypedDict, total=False):
    """Training options of ``evaluate`` for editors and type checkers; tests/test_options.py compares the names."""

    epochs: float | None
    batch_size: int | None
    learning_rate: float
    activation: str
    dropout: float
    input_dropout: float | None
    label_smoothing: float
    batch_norm: bool
    model: nn.Module | Callable[[int, int], nn.Module] | None
    loss: Callable[[torch.Tensor, torch.Tensor], torch.Tensor] | None
    optimizer: Callable[[Any], torch.optim.Optimizer] | None


def evaluate(
    X_train: Any,
    y_train: Any,
    X_test: Any,
    y_test: Any,
    indices: Selection | Sequence[int | str] | None = None,
    *,
    hidden: Sequence[int] = (67,),
    seeds: Sequence[int] = range(5),
    device: str = "auto",
    task: str | None = None,
    sample_weight: Any = None,
    class_weight: Mapping[Any, float] | str | None = None,
    missing_indicator: bool = False,
    max_categories: int = 64,
    **training: Unpack[EvaluateOptions],
) -> Evaluation:
    """Train a network on the selected features alone and report its metrics on the test rows.

    One network is trained per seed, all of them together. Standardisation, categories and weights are fitted on the
    training rows. Metrics: accuracy for classes (for two classes also AUC and log loss, for several labels the share
    of correct labels), R² and RMSE for numbers.

    Parameters
    ----------
    X_train, y_train, X_test, y_test : table and target, as in ``select``
        Training rows and test rows, with the same columns.
    indices : Selection, sequence of int, str or bool, or None, default None
        The selected columns: a selection, positions, names or a mask; None is all columns.
    hidden : sequence of int, default (67,)
        Widths of the hidden layers.
    seeds : sequence of int, default 0 to 4
        One network per seed.
    device : str, default "auto"
        "auto" is CUDA where there is one, else "cpu".
    task, sample_weight, class_weight, missing_indicator, max_categories :
        As in ``select``. Weights apply to training rows only.
    **training
        ``epochs``, ``batch_size``, ``learning_rate``, ``activation``, ``dropout``, ``input_dropout``,
        ``label_smoothing``, ``batch_norm``, ``model``, ``loss`` and ``optimizer``, as in ``select``;
        docs/guide.md has their defaults in an evaluation.

    Returns
    -------
    Evaluation
        Metrics by name, one value per seed.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> import seqatt
    >>> X, y = load_wine(return_X_y=True)
    >>> result = seqatt.evaluate(X[::2], y[::2], X[1::2], y[1::2], [0, 6, 9], seeds=[0])
    >>> bool(result["accuracy"][0] > 0.8)
    True
    """
    given: dict[str, Any] = {**training, "hidden": hidden}
    check_option_names("evaluate", given, names_of(TrainingOptions))
    TrainingOptions(**given)  # checks the values before any work
    seeds = check_seeds(seeds)
    train_table, test_table = read_input_table(X_train, "X_train"), read_input_table(X_test, "X_test")
    columns = sorted(_find_columns(train_table, indices))  # the order of selection must not matter
    check_same_columns(train_table, test_table, ("X_train", "X_test"))
    torch_device = resolve_device(device)
    data = read_table_data(
        train_table.select(columns),
        y_train,
        sample_weight=sample_weight,
        class_weight=class_weight,
        task=task,
        missing_indicator=missing_indicator,
        max_categories=max_categories,
        by_name=False,
        arguments=("X_train", "y_train"),
    )
    test_targets = data.target.encode(y_test, "y_test")
    if len(test_targets) != test_table.rows:
        raise ValueError(
            f"X_test has {test_table.rows} rows and y_test has {len(test_targets)}: "
            "they must have the same length"
        )
    options = TrainingOptions(
        **_default_options(data, given) | {name: value for name, value in given.items() if value is not None}
    )
    batch = resolve_batch_size(data.rows, options.batch_size)
    steps = evaluation_steps(data.rows, batch, options.epochs)
    dropout = options.input_dropout or 0.0
    with training_threads(largest_product(data, options, batch), torch_device) as threads:
        groups = make_trial_groups(
            data, seeds, options, torch_device, batch, input_dropout=dropout, rescale=False
        )
        train(groups, cosine_schedule(steps), threads=threads)
        outputs = _predict(groups, data, test_table.select(columns), torch_device)
    per_seed = [compute_metrics(data.target, out, test_targets) for out in outputs]
    values = {name: np.array([metrics[name] for metrics in per_seed]) for name in per_seed[0]}
    return Evaluation(values, seeds)


def _default_options(data: TableData, given: dict[str, Any]) -> dict[str, Any]:
    """Defaults that follow the data and differ from those of ``select``; the same for every selection."""
    noise = evaluation_noise(data.rows)
    defaults = {"learning_rate": evaluation_learning_rate(data.rows), "input_dropout": noise}
    # Not with two classes: smoothed labels would spoil the probabilities that log loss measures.
    if data.target.task == "multiclass" and given.get("loss") is None:
        defaults["label_smoothing"] = noise
    return defaults


def _find_columns(table: InputTable, indices: Selection | Sequence[int | str] | None) -> list[int]:
    if indices is None:
        return list(range(len(table.names)))
    columns = find_positions(
        indices, table.names, named=table.named, kind="column", argument="indices", table="X_train"
    )
    if not columns:
        raise ValueError("indices: at least one feature is needed")
    return columns


def _predict(
    groups: list[TrialGroup], data: TableData, test: InputTable, device: torch.device
) -> NDArray[np.float64]:
    """Outputs of shape (seeds, rows, outputs)."""
    columns = data.encoder.encode(test, "X_test")
    chunks = []
    for start in range(0, test.rows, PREDICTED_ROWS):
        rows = np.arange(start, min(start + PREDICTED_ROWS, test.rows))
        dense = columns.to_dense(rows) if isinstance(columns, SparseColumns) else columns[rows]
        x = torch.from_numpy(dense).to(device)
        chunks.append(torch.cat([group.trainers[0].predict(x) for group in groups]).double().cpu().numpy())
    return np.concatenate(chunks, axis=1)


def compute_metrics(target: Target, outputs: NDArray[np.float64], targets: NDArray[Any]) -> dict[str, float]:
    """Metrics of ``outputs`` (rows, outputs) by name; the first one is the main metric."""
    from sklearn.metrics import log_loss, roc_auc_score

    if target.task == "regression":
        assert target.scale is not None
        assert target.shift is not None
        error = outputs * target.scale + target.shift - targets
        total = ((targets - targets.mean(0)) ** 2).sum(0)
        r2 = 1 - (error**2).sum(0) / np.where(total > 0, total, 1.0)
        return {"r2": float(r2.mean()), "rmse": float(np.sqrt((error**2).mean()))}
    if target.task == "multilabel":
        return {"accuracy": float(((outputs > 0) == (targets > 0.5)).mean())}
    if target.task == "multiclass":
        return {"accuracy": float((outputs.argmax(1) == targets).mean())}
    logit = outputs[:, 1] - outputs[:, 0] if outputs.shape[1] == 2 else outputs[:, 0]
    label = targets[:, 0]
    both_classes = len(np.unique(label)) == 2  # AUC is undefined for one
    probability = 1 / (1 + np.exp(-np.clip(logit, -500, 500)))
    return {
        "accuracy": float(((logit > 0) == (label > 0.5)).mean()),
        "auc": float(roc_auc_score(label, logit)) if both_classes else float("nan"),
        "log_loss": float(log_loss(label, probability, labels=[0, 1])),
    }
