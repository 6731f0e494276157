"""A small model for every candidate feature beside those already chosen, all trained in one step.

Each sees the columns of the chosen features and of its candidate, gathered, so it is as small as it can be.
All start from the same weights and see the same batches: where two differ, their candidates do. One more sees
the chosen features alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from seqatt.data.tables.table_data import TableData
from seqatt.training.batch import Batch, DeviceTable
from seqatt.training.build import NOISE, ORDER, PARTS, WEIGHTS, Member
from seqatt.training.defaults import batch_size_for
from seqatt.training.loader import InMemoryLoader, MemberData
from seqatt.training.models.architecture import MLPShape
from seqatt.training.models.mlp import MLP
from seqatt.training.options import GreedyOptions
from seqatt.training.schedule import cosine_schedule

PARTS_DEALT = 5  # of the rows; one of them is held out
JUDGES = 500  # held-out rows wanted: of a small table several parts are held out in turn
CELLS = (1 << 28, 1 << 21)  # numbers in the layers trained at a time: on an accelerator, on a CPU
JUDGED_ROWS = 4096  # held out, at most
LOOKS = 4  # at the held-out rows in the course of a training, the best of which counts


class CandidateModels:
    """Trainings for one seed: the same rows held out and the same batches every time."""

    def __init__(
        self, source: TableData, rows: DeviceTable, seed: int, options: GreedyOptions, device: torch.device
    ) -> None:
        self._source, self._rows, self._options, self._device = source, rows, options, device
        self._member = Member(seed, 0)
        self._learns, judged = _deal(source.rows, folds_of(source, options), self._member)
        self._judged = judged.to(device)
        self._batch_size = batch_size_of(source, options)
        self.steps = steps_of(source, options)
        self._columns = [np.flatnonzero(source.feature_of == f) for f in range(source.features)]

    def losses(
        self, chosen: Sequence[int], candidates: Sequence[int], advance: Callable[[int], None]
    ) -> tuple[float, NDArray[np.float64]]:
        """The loss on held-out rows with the chosen features alone, and with each candidate beside them."""
        shared = [int(c) for f in chosen for c in self._columns[f]]
        widest = max(len(self._columns[f]) for f in candidates)
        nothing = len(self._source.feature_of)  # the number of a column of zeros
        wanted = np.full((len(candidates) + 1, len(shared) + widest), nothing)
        wanted[:, : len(shared)] = shared
        for row, feature in zip(wanted[1:], candidates, strict=True):
            own = self._columns[feature]
            row[len(shared) : len(shared) + len(own)] = own
        found = []
        for some in np.array_split(wanted, -(-len(wanted) // self._at_once(wanted.shape[1]))):
            found.append(self._train(torch.from_numpy(some).to(self._device)))
            advance(len(some))
        after = np.concatenate(found)
        return float(after[0]), after[1:]

    def _at_once(self, columns: int) -> int:
        """As many models as memory should hold."""
        held = columns + sum(self._options.hidden) + self._source.target.outputs
        models = CELLS[self._device.type == "cpu"] // (self._batch_size * held * len(self._judged))
        return max(1, models)

    def _train(self, columns: Tensor) -> NDArray[np.float64]:
        """The lowest held-out loss of a model for each row of column numbers (m, p), the mean over folds."""
        folds, (models, width) = len(self._judged), columns.shape
        options, target = self._options, self._source.target
        shape = MLPShape(width, options.hidden, target.outputs, options.activation)
        same = [self._member.generator(WEIGHTS) for _ in range(folds * models)]
        model = MLP(shape, target.task, same, options.learning_rate, self._device)
        everything = torch.ones(folds * models, width, device=self._device)
        loader = self._loader()
        best = torch.full((folds * models,), torch.inf, device=self._device)
        schedule = cosine_schedule(self.steps, min(20, self.steps))
        looks = {round(len(schedule) * (i + 1) / LOOKS) - 1 for i in range(LOOKS)}
        for part, phase in enumerate(schedule):
            model.set_rate(phase.rate)
            for at in range(0, phase.steps, loader.chunk_steps):
                some = min(loader.chunk_steps, phase.steps - at)
                loader.load(some)
                for i in range(some):
                    model.train(_for_models(loader.at(i), columns), everything)
            if part in looks:
                loss = self._judge(model, columns, everything)
                best = torch.fmin(best, loss)  # a number wins over none
        return best.view(folds, models).mean(0).double().cpu().numpy()

    def _judge(self, model: MLP, columns: Tensor, everything: Tensor) -> Tensor:
        total = torch.zeros(len(everything), device=self._device)
        for index in torch.split(self._judged, self._batch_size, 1):
            batch = _for_models(self._rows.take(index), columns)
            total += model.loss(batch, everything) * index.shape[1]
        return total / self._judged.shape[1]

    def _loader(self) -> InMemoryLoader:
        draws = []
        for fold in range(len(self._judged)):
            member = Member(self._member.seed, fold)
            learns = None if self._learns is None else self._learns[fold]
            draws.append(MemberData(member.generator(ORDER), member.generator(NOISE), learns))
        return InMemoryLoader(self._rows, self._batch_size, draws)


def _for_models(batch: Batch, columns: Tensor) -> Batch:
    """A batch of folds (f, B, c) as one of models (f * m, B, p): each sees its own columns."""
    models, width = columns.shape
    folds, rows, _ = batch.x.shape
    tall = torch.cat([batch.x.mT, batch.x.new_zeros(folds, 1, rows)], 1)
    x = tall.index_select(1, columns.flatten()).view(folds * models, width, rows).mT
    w = None if batch.w is None else batch.w.repeat_interleave(models, 0)
    return Batch(x, batch.y.repeat_interleave(models, 0), w)


def _deal(rows: int, folds: int, member: Member) -> tuple[Tensor | None, Tensor]:
    """For each fold the rows to learn from and those held out; a handful of rows serves as both."""
    size = rows // PARTS_DEALT
    if size == 0:
        return None, torch.arange(rows)[None]
    order = torch.randperm(rows, generator=member.generator(PARTS))
    starts = range(0, folds * size, size)
    judged = torch.stack([order[at : at + size] for at in starts])[:, :JUDGED_ROWS]
    return torch.stack([torch.cat([order[:at], order[at + size :]]) for at in starts]), judged


def folds_of(source: TableData, options: GreedyOptions) -> int:
    """How many parts of the rows are held out in turn."""
    if source.rows < PARTS_DEALT:
        return 1
    wanted = -(-JUDGES // (source.rows // PARTS_DEALT))
    return min(PARTS_DEALT, wanted) if options.folds is None else options.folds


def learnt_rows(source: TableData) -> int:
    """How many rows each model learns from: all but the part held out."""
    return source.rows - source.rows // PARTS_DEALT


def batch_size_of(source: TableData, options: GreedyOptions) -> int:
    return batch_size_for(learnt_rows(source), options.batch_size)


def steps_of(source: TableData, options: GreedyOptions) -> int:
    """Of each model: three passes over the rows, 200 to 1,000 steps, where the user does not say."""
    batch = batch_size_for(source.rows, options.batch_size)
    passes = 3 if options.epochs is None else options.epochs
    steps = max(1, round(passes * source.rows / batch))
    return min(max(steps, 200), 1000) if options.epochs is None else steps
