"""One small model per candidate feature beside those already selected, all trained in one step.

The inputs of a model are the columns of the selected features and of its candidate alone. All models start from the
same weights and see the same batches, so that two of them differ by their candidates only. One more model sees the
selected features alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from seqatt.data.tables.table_data import TableData
from seqatt.training.defaults import resolve_batch_size
from seqatt.training.ensemble import NOISE, ORDER, WEIGHTS, Member, hold_out
from seqatt.training.loaders.batch import Batch, DeviceTable
from seqatt.training.loaders.in_memory import InMemoryLoader, MemberData, spread_rows
from seqatt.training.models.architecture import MLPShape
from seqatt.training.models.mlp import MLP
from seqatt.training.options import FOLDS, CandidateOptions
from seqatt.training.schedule import cosine_schedule

HELD_OUT_ROWS = 500  # per candidate, at least: in a small table several folds are held out in turn
CHUNK_CELLS = (1 << 28, 1 << 21)  # numbers in the layers of models trained at a time: on a GPU, on a CPU
MAX_VALIDATION_ROWS = 4096  # held-out rows per fold that are used
DEFAULT_EPOCHS = 3.75  # passes over four fifths of the rows: as many steps as three passes over all of them
MIN_STEPS, MAX_STEPS = 200, 1000  # limits where ``epochs`` is not given
VALIDATIONS = 4  # evaluations on the held-out rows per training; the best counts


class CandidatePlan(NamedTuple):
    """How each model trains: ``epochs`` are passes over the rows outside the fold that is held out."""

    batch_size: int
    steps: int
    epochs: float
    folds: int


def resolve_candidates(data: TableData, options: CandidateOptions) -> CandidatePlan:
    """The requested training of candidate models, with every default resolved."""
    rows = data.rows - data.rows // FOLDS  # that a model trains on
    batch_size = resolve_batch_size(rows, options.batch_size)
    epochs = DEFAULT_EPOCHS if options.epochs is None else options.epochs
    steps = max(1, round(epochs * rows / batch_size))
    if options.epochs is None:
        steps = min(max(steps, MIN_STEPS), MAX_STEPS)
    folds = options.folds or min(FOLDS, -(-HELD_OUT_ROWS // max(1, data.rows // FOLDS)))
    return CandidatePlan(batch_size, steps, steps * batch_size / rows, folds if data.rows >= FOLDS else 1)


def candidates_work(data: TableData, options: CandidateOptions, plan: CandidatePlan) -> int:
    """Multiply-adds of a step's largest products, one per candidate; the number of threads is chosen by it."""
    return plan.batch_size * data.features * max(options.hidden, default=1) * plan.folds


class CandidateModels:
    """Models of one seed: the same rows are held out and the same batches are used every time."""

    def __init__(
        self,
        data: TableData,
        table: DeviceTable,
        seed: int,
        options: CandidateOptions,
        plan: CandidatePlan,
        device: torch.device,
    ) -> None:
        self._data, self._table, self._options, self._device = data, table, options, device
        self.plan = plan
        self._member = Member(seed, 0)
        self._train_rows, validation_rows = _split_folds(data, seed, plan.folds)
        self._validation_rows = validation_rows.to(device)
        self._columns = [np.flatnonzero(data.feature_of == f) for f in range(data.features)]

    def losses(
        self, selected: Sequence[int], candidates: Sequence[int], advance: Callable[[int], None]
    ) -> tuple[float, NDArray[np.float64]]:
        """The loss on held-out rows with the selected features alone, and with each candidate added to them."""
        shared = [int(c) for f in selected for c in self._columns[f]]
        widest = max(len(self._columns[f]) for f in candidates)
        zeros = len(self._data.feature_of)  # the number of an extra column of zeros, for padding
        columns_of = np.full((len(candidates) + 1, len(shared) + widest), zeros)
        columns_of[:, : len(shared)] = shared
        for row, feature in zip(columns_of[1:], candidates, strict=True):
            added = self._columns[feature]
            row[len(shared) : len(shared) + len(added)] = added
        losses = []
        chunks = -(-len(columns_of) // self._models_at_once(columns_of.shape[1]))
        for chunk in np.array_split(columns_of, chunks):
            losses.append(self._train(torch.from_numpy(chunk).to(self._device)))
            advance(len(chunk))
        after = np.concatenate(losses)
        return float(after[0]), after[1:]

    def _models_at_once(self, columns: int) -> int:
        """Models trained at a time: as many as memory should hold."""
        cells_per_row = columns + sum(self._options.hidden) + self._data.target.outputs
        models = CHUNK_CELLS[self._device.type == "cpu"] // (
            self.plan.batch_size * cells_per_row * len(self._validation_rows)
        )
        return max(1, models)

    def _train(self, columns: Tensor) -> NDArray[np.float64]:
        """The lowest held-out loss of one model per row of column numbers (m, p), averaged over the folds."""
        folds, (models, width) = len(self._validation_rows), columns.shape
        options, target = self._options, self._data.target
        shape = MLPShape(width, options.hidden, target.outputs, options.activation)
        same = [self._member.generator(WEIGHTS) for _ in range(folds * models)]
        model = MLP(shape, target.loss, same, options.learning_rate, self._device)
        all_columns = torch.ones(folds * models, width, device=self._device)
        loader = self._loader()
        best = torch.full((folds * models,), torch.inf, device=self._device)
        schedule = cosine_schedule(self.plan.steps, min(20, self.plan.steps))
        validations = {round(len(schedule) * (i + 1) / VALIDATIONS) - 1 for i in range(VALIDATIONS)}
        for i, phase in enumerate(schedule):
            model.scale_learning_rate(phase.lr_factor)
            for start in range(0, phase.steps, loader.chunk_steps):
                steps = min(loader.chunk_steps, phase.steps - start)
                loader.load(steps)
                for step in range(steps):
                    model.train_step(_for_models(loader.batch(step), columns), all_columns)
            if i in validations:
                loss = self._validate(model, columns, all_columns)
                best = torch.fmin(best, loss)  # fmin ignores NaN
        return best.view(folds, models).mean(0).double().cpu().numpy()

    def _validate(self, model: MLP, columns: Tensor, all_columns: Tensor) -> Tensor:
        total = torch.zeros(len(all_columns), device=self._device)
        for index in torch.split(self._validation_rows, self.plan.batch_size, 1):
            batch = _for_models(self._table.batch(index), columns)
            total += model.loss(batch, all_columns) * index.shape[1]
        return total / self._validation_rows.shape[1]

    def _loader(self) -> InMemoryLoader:
        member_data = []
        for fold in range(len(self._validation_rows)):
            member = Member(self._member.seed, fold)
            train_rows = None if self._train_rows is None else self._train_rows[fold]
            member_data.append(MemberData(member.generator(ORDER), member.generator(NOISE), train_rows))
        return InMemoryLoader(self._table, self.plan.batch_size, member_data)


def _for_models(batch: Batch, columns: Tensor) -> Batch:
    """A batch of folds (f, B, c) as a batch of models (f * m, B, p), each with its own columns."""
    models, width = columns.shape
    folds, rows, _ = batch.x.shape
    padded = torch.cat([batch.x.mT, batch.x.new_zeros(folds, 1, rows)], 1)
    x = padded.index_select(1, columns.flatten()).view(folds * models, width, rows).mT
    w = None if batch.w is None else batch.w.repeat_interleave(models, 0)
    return Batch(x, batch.y.repeat_interleave(models, 0), w)


def _split_folds(data: TableData, seed: int, folds: int) -> tuple[Tensor | None, Tensor]:
    """For each fold the rows to train on and those held out; with fewer than 5 rows, all rows are both."""
    if data.rows < FOLDS:
        return None, torch.arange(data.rows)[None]
    pairs = hold_out(data.target.strata, seed, FOLDS, folds, data.units)
    trained, held_out = (torch.from_numpy(np.stack(side)) for side in zip(*pairs, strict=True))
    return trained, spread_rows(held_out, MAX_VALIDATION_ROWS)
