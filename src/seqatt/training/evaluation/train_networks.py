"""Train a network for each of several sets of columns and seeds, those of one width together, and predict test rows.

A CPU takes longer to start the operations of a step than to compute them for one small network. So networks of one
width are one tensor. What trains together is chosen for speed and memory alone: no result depends on it
(``networks.py``), nor on the number of threads.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from itertools import groupby
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from seqatt.data.tables.table_data import TableData
from seqatt.training.backend.threads import run_concurrently
from seqatt.training.ensemble import WEIGHTS, Member
from seqatt.training.evaluation.batches import Network, SetBatches, SetInputs
from seqatt.training.evaluation.networks import NetworkParameters, Networks, padded_width
from seqatt.training.loaders.input_dropout import InputDropout
from seqatt.training.models.architecture import MLPShape
from seqatt.training.models.embeddings import Embeddings, default_embedding_width
from seqatt.training.options import TrainingOptions
from seqatt.training.schedule import cosine_schedule

CHUNK_STEPS = 32  # steps whose batches are drawn at a time, and after which progress is reported
MAX_BYTES = 1 << 28  # of the tables and buffers of networks that train together
MIN_WORK = 2_000_000  # multiply-adds of a step: less is not divided among threads
OTHER_WORK = 30  # work of a network besides its first layer, in columns of that layer
PREDICTED_ROWS = 1024  # rows per forward pass
REMEMBERED_CELLS = 1 << 17  # of a batch whose dropout is kept for the next networks, which are often as wide
CPU = torch.device("cpu")


class NetworkTraining(NamedTuple):
    """How every network is trained."""

    options: TrainingOptions
    batch_size: int
    steps: int


@torch.no_grad()
def train_networks(
    data: TableData,
    networks: Sequence[Network],
    training: NetworkTraining,
    threads: int,
    advance: Callable[[int], None],
) -> list[TrainedGroup]:
    """Train every network; ``advance`` is called with the steps done, summed over the networks."""
    waiting = deque(divide(networks, data, training, threads))
    workers = min(threads, len(waiting))
    trained: list[TrainedGroup] = []

    def work() -> Iterator[int]:
        while True:
            try:
                positions = waiting.popleft()
            except IndexError:
                return
            group = TrainedGroup(data, networks, positions, training)
            for steps in group.train():
                yield steps * len(positions) * workers
            trained.append(group)

    if workers > 1:
        run_concurrently([work() for _ in range(workers)], workers, advance)
    else:
        for steps in work():
            advance(steps)
    return trained


def divide(
    networks: Sequence[Network], data: TableData, training: NetworkTraining, threads: int
) -> list[list[int]]:
    """Groups of networks of one width and of the same categories, by position, those of most work first."""
    hidden, rows = training.options.hidden, training.batch_size

    def kind(position: int) -> tuple[int, tuple[int, ...]]:
        return padded_width(len(networks[position].columns)), networks[position].coded

    def work(positions: Sequence[int]) -> int:
        columns = sum(kind(position)[0] + OTHER_WORK for position in positions)
        return columns * rows * max(hidden, default=1)

    everything = range(len(networks))
    most_work = max(MIN_WORK, -(-work(everything) // threads))
    groups: list[list[int]] = []
    for (width, _), alike in groupby(sorted(everything, key=kind), kind):
        positions = sorted(alike, key=lambda position: (networks[position].seed, position))
        cells = data.rows * width + rows * (width + 4 * (sum(hidden) + data.target.outputs))
        parts = max(-(-work(positions) // most_work), -(-4 * cells * len(positions) // MAX_BYTES))
        divided = np.array_split(np.array(positions), min(parts, len(positions)))
        groups += [part.tolist() for part in divided]
    return sorted(groups, key=work, reverse=True)


@lru_cache(maxsize=4)
def _make_dropout(rate: float, cells: int) -> InputDropout:
    """The dropout of inputs, shared by all networks: drawing its bank takes as long as dozens of steps."""
    return InputDropout(rate, cells, CPU, rescale=False)


class TrainedGroup:
    """The networks at some ``positions``, which are of one width and in the order of their seeds."""

    def __init__(
        self,
        data: TableData,
        networks: Sequence[Network],
        positions: Sequence[int],
        training: NetworkTraining,
    ) -> None:
        options, target = training.options, data.target
        self.positions = list(positions)
        self._columns = [len(networks[position].columns) for position in positions]
        trained = [networks[position] for position in positions]
        if len(trained) == 1 and options.activation == "gelu":
            trained *= 2  # torch computes gelu of a single matrix, which has no gaps, by other instructions
        columns, coded = [len(network.columns) for network in trained], trained[0].coded
        width = padded_width(columns[0])
        shape = MLPShape(
            width, options.hidden, target.outputs, options.activation, label_smoothing=options.label_smoothing
        )
        embeddings = None
        if coded:
            counts = [data.code_counts[position] for position in coded]
            embedding_width = options.embedding_dim or default_embedding_width(counts)
            embeddings = Embeddings(counts, embedding_width, len(trained), CPU)
        generators = [Member(network.seed, 0).generator(WEIGHTS) for network in trained]
        lr, rate = options.learning_rate, options.input_dropout
        self._networks = Networks(shape, columns, target.loss, generators, lr, embeddings)
        self._rows, self._steps = min(training.batch_size, data.rows), training.steps
        cells = self._rows * (width + len(coded))
        make_dropout = _make_dropout if cells <= REMEMBERED_CELLS else _make_dropout.__wrapped__
        dropout = make_dropout(rate, cells) if rate else None
        self._inputs = SetInputs(trained, width)
        self._batches: SetBatches | None = SetBatches(data, trained, self._inputs, self._rows, dropout)

    def train(self) -> Iterator[int]:
        """Train through the schedule; yields the steps done."""
        networks, batches, rows = self._networks, self._batches, self._rows
        assert batches is not None
        x = networks.inputs(rows)
        for phase in cosine_schedule(self._steps):
            networks.scale_learning_rate(phase.lr_factor)
            for start in range(0, phase.steps, CHUNK_STEPS):
                steps = min(CHUNK_STEPS, phase.steps - start)
                batches.load(steps)
                for step in range(steps):
                    batches.fill(step, x)
                    networks.train_step(rows, *batches.targets(step), batches.codes(step))
                yield steps
        self._batches = None  # the weights are all that is needed from here on
        networks.release_buffers()

    @torch.no_grad()
    def predict(self, columns: NDArray[np.float32], codes: NDArray[np.int32]) -> NDArray[np.float64]:
        """Outputs (T, n, o) for rows encoded as those of training: columns (n, c) and codes (n, m)."""
        outputs = []
        for start in range(0, len(columns), PREDICTED_ROWS):
            block = slice(start, start + PREDICTED_ROWS)
            rows = len(columns[block])
            x = self._networks.inputs(rows)
            x[:, :rows] = self._inputs.tables(columns[block])[self._inputs.set_of]
            predicted = self._networks.predict(rows, self._inputs.codes(codes[block]))
            outputs.append(predicted.double().numpy())
        self._networks.release_buffers()
        return np.concatenate(outputs, axis=1)[: len(self.positions)]

    def parameters(self) -> list[NetworkParameters]:
        """The parameters of each network, in the order of ``positions``."""
        return [self._networks.parameters(model, columns) for model, columns in enumerate(self._columns)]

    def finite(self) -> list[bool]:
        """Whether the training of each network did not diverge."""
        return self._networks.finite().tolist()[: len(self.positions)]
