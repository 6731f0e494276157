"""How good are the chosen features? Retrain on them alone and look at rows never seen."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from seqatt.api.lookup import find_positions
from seqatt.data.tables.containers import InputTable, check_same_columns, read_input_table
from seqatt.data.tables.encoding import SparseColumns
from seqatt.data.tables.table_data import TableData, read_table_data
from seqatt.data.tables.target import Target
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
from seqatt.validation import check_seeds

ROWS_AT_ONCE = 8192


class Evaluation(Mapping[str, NDArray[np.float64]]):
    """Test metrics by name, a value a seed: ``evaluation["accuracy"]``.

    ``mean`` and ``std`` summarise every metric; ``metric`` names the one to look at first. ``std``, also
    after the ±, is the spread of these values themselves: n divides, where ``compare`` has n - 1.
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
        return {"seeds": self.seeds, **{name: v.tolist() for name, v in self._values.items()}}

    def __repr__(self) -> str:
        shown = ", ".join(f"{n} {self.mean[n]:.4f} ± {self.std[n]:.4f}" for n in self)
        return f"Evaluation({shown}; {len(self.seeds)} seed(s))"


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
    **training: Any,
) -> Evaluation:
    """Train an MLP on the chosen features alone and report its metrics on the test rows.

    Every seed trains its own network, all of them together; everything that is fitted, is fitted on the
    training rows. Classification reports accuracy (binary also AUC and log loss, multilabel the share of
    right labels), regression R² and RMSE.

    Parameters
    ----------
    indices : Selection, column positions or names, a mask over columns, or None for all of them.
    hidden, seeds, device : the network's widths, one seed a network, where to train.
    training : ``epochs``, ``batch_size``, ``learning_rate``, ``activation``, ``dropout``,
        ``input_dropout``, ``label_smoothing``, ``batch_norm``, ``model``, ``loss`` or
        ``optimizer``, as in ``select``; the recipe where they are not given is in the guide.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> import seqatt
    >>> X, y = load_wine(return_X_y=True)
    >>> result = seqatt.evaluate(X[::2], y[::2], X[1::2], y[1::2], [0, 6, 9], seeds=[0])
    >>> bool(result["accuracy"][0] > 0.8)
    True
    """
    asked = training | {"hidden": hidden}
    _training(asked)
    seeds = check_seeds(seeds)
    train_table, test_table = read_input_table(X_train, "X_train"), read_input_table(X_test, "X_test")
    columns = sorted(_columns(train_table, indices))  # the same set is judged alike, however it was chosen
    check_same_columns(train_table, test_table, ("X_train", "X_test"))
    picked = resolve_device(device)
    source = read_table_data(
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
    truth = source.target.encode(y_test, "y_test")
    if len(truth) != test_table.rows:
        raise ValueError(f"X_test has {test_table.rows} rows and y_test has {len(truth)}")
    options = _training(_recipe(source, asked) | {name: v for name, v in asked.items() if v is not None})
    batch = resolve_batch_size(source.rows, options.batch_size)
    steps = evaluation_steps(source.rows, batch, options.epochs)
    dropout = options.input_dropout or 0.0
    with training_threads(largest_product(source, options, batch), picked) as threads:
        groups = make_trial_groups(
            source, seeds, options, picked, batch, input_dropout=dropout, rescale=False
        )
        train(groups, cosine_schedule(steps), threads=threads)
        outputs = _predict(groups, source, test_table.select(columns), picked)
    per_seed = [metrics_of(source.target, out, truth) for out in outputs]
    values = {name: np.array([metrics[name] for metrics in per_seed]) for name in per_seed[0]}
    return Evaluation(values, seeds)


def _recipe(source: TableData, asked: dict[str, Any]) -> dict[str, Any]:
    """How every choice is judged where nothing else is asked for."""
    noise = evaluation_noise(source.rows)
    recipe = {"learning_rate": evaluation_learning_rate(source.rows), "input_dropout": noise}
    if source.target.task == "multiclass" and asked.get("loss") is None:
        recipe["label_smoothing"] = noise  # two classes keep their labels, as log loss asks how sure it is
    return recipe


def _training(options: dict[str, Any]) -> TrainingOptions:
    unknown = sorted(set(options) - set(TrainingOptions.__dataclass_fields__))
    if unknown:
        known = ", ".join(TrainingOptions.__dataclass_fields__)
        raise TypeError(f"evaluate: unknown option {unknown[0]!r}; the options are {known}")
    return TrainingOptions(**options)


def _columns(table: InputTable, indices: Selection | Sequence[int | str] | None) -> list[int]:
    if indices is None:
        return list(range(len(table.names)))
    columns = find_positions(
        indices, table.names, named=table.named, kind="column", argument="indices", table="X_train"
    )
    if not columns:
        raise ValueError("indices: at least one feature is needed")
    return columns


def _predict(
    groups: list[TrialGroup], source: TableData, test: InputTable, device: torch.device
) -> NDArray[np.float64]:
    """Outputs (seeds, rows, outputs)."""
    columns = source.encoder.encode(test, "X_test")
    parts = []
    for start in range(0, test.rows, ROWS_AT_ONCE):
        rows = np.arange(start, min(start + ROWS_AT_ONCE, test.rows))
        part = columns.to_dense(rows) if isinstance(columns, SparseColumns) else columns[rows]
        x = torch.from_numpy(part).to(device)
        parts.append(torch.cat([group.trainers[0].predict(x) for group in groups]).double().cpu().numpy())
    return np.concatenate(parts, axis=1)


def metrics_of(target: Target, out: NDArray[np.float64], truth: NDArray[Any]) -> dict[str, float]:
    """Of outputs (rows, o), the one to look at first first."""
    from sklearn.metrics import log_loss, roc_auc_score

    if target.task == "regression":
        assert target.scale is not None
        assert target.shift is not None
        error = out * target.scale + target.shift - truth
        spread = ((truth - truth.mean(0)) ** 2).sum(0)
        r2 = 1 - (error**2).sum(0) / np.where(spread > 0, spread, 1.0)
        return {"r2": float(r2.mean()), "rmse": float(np.sqrt((error**2).mean()))}
    if target.task == "multilabel":
        return {"accuracy": float(((out > 0) == (truth > 0.5)).mean())}
    if target.task == "multiclass":
        return {"accuracy": float((out.argmax(1) == truth).mean())}
    margin = out[:, 1] - out[:, 0] if out.shape[1] == 2 else out[:, 0]
    label = truth[:, 0]
    both = len(np.unique(label)) == 2
    chance = 1 / (1 + np.exp(-np.clip(margin, -500, 500)))
    return {
        "accuracy": float(((margin > 0) == (label > 0.5)).mean()),
        "auc": float(roc_auc_score(label, margin)) if both else float("nan"),
        "log_loss": float(log_loss(label, chance, labels=[0, 1])),
    }
