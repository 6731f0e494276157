"""From data and options to trial groups that are ready to train."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import torch

from seqatt.data.files.encoding.rows import EncodedRows
from seqatt.data.tables.table_data import TableData
from seqatt.training.defaults import ENSEMBLE_SIZE
from seqatt.training.ensemble import NOISE, ORDER, Member, split_rows
from seqatt.training.gates.gate import Gate
from seqatt.training.loaders.batch import DeviceTable
from seqatt.training.loaders.device_transfer import DeviceTransfer
from seqatt.training.loaders.in_memory import InMemoryLoader, Loader, MemberData
from seqatt.training.loaders.input_dropout import InputDropout
from seqatt.training.loaders.stream import FileStream, Gather, StreamLoader, device_table
from seqatt.training.model_factory import check_own_model, make_feature_columns, make_model
from seqatt.training.models.model import Model
from seqatt.training.models.torch_module import TorchModule
from seqatt.training.options import TrainingOptions
from seqatt.training.reducer import Reducer
from seqatt.training.screening.score_penalty import ScorePenalty
from seqatt.training.screening.working_set import WorkingSet
from seqatt.training.selection_state import Quotas, SelectionState
from seqatt.training.trainer import Trainer
from seqatt.training.trial_group import TrialGroup

if TYPE_CHECKING:  # files need pyarrow, tables do not
    from seqatt.data.files.file_data import FileData
    from seqatt.data.files.loader import FileLoader

MakeGate = Callable[[Model, Sequence[Member]], Gate]


@dataclass(frozen=True)
class StreamSource:
    """How files are read for training: one loader per seed, batch size and number of passes.

    ``validation`` are rows that no batch trains on. ``gather`` collects a text from every rank.
    """

    make_loader: Callable[[int, int, int], FileLoader]
    validation: EncodedRows | None = None
    reducer: Reducer = field(default_factory=Reducer)
    gather: Gather = lambda text: [text]


@dataclass(frozen=True)
class TrainingSetup:
    """How the models of a request train.

    Parameters
    ----------
    steps, passes : steps per model, and passes over streamed files.
    weight_decay : decay per step of the first-layer weights of unselected features.
    members : models per trial.
    variants : models per member that differ in the strength of a penalty. Each is a trial of its own; all of them
        hold out the same rows.
    kept, quotas : features that are selected from the start, and bounds on how many of some sets are.
    working_set : the smallest number of features that train together, as on wide tables; 0 if all always do.
    input_dropout, rescale : probability of dropping an input; whether the other inputs are scaled up in return.
    """

    batch_size: int
    steps: int
    passes: int = 1
    weight_decay: float = 0.0
    members: int = 1
    variants: int = 1
    kept: tuple[int, ...] = ()
    quotas: Quotas | None = None
    working_set: int = 0
    input_dropout: float = 0.0
    rescale: bool = True


def make_trial_groups(
    data: TableData | FileData,
    seeds: Sequence[int],
    options: TrainingOptions,
    device: torch.device,
    setup: TrainingSetup,
    make_gate: MakeGate | None = None,
    *,
    score_penalty: ScorePenalty | None = None,
    source: StreamSource | None = None,
) -> Iterable[TrialGroup]:
    """One trial group per seed, or one for all where trials share kernels (the built-in model of a table on a GPU).

    Groups of a table are a list, because they train together. Those of files are made one after another.
    ``score_penalty`` gives the penalties (0 or less) that are added to the scores.
    """
    builder = _GroupBuilder(data, options, device, setup, make_gate, score_penalty, source)
    if not isinstance(data, TableData):
        return (builder.on_files(seed) for seed in seeds)
    groups = [list(seeds)] if builder.together else [[seed] for seed in seeds]
    return [builder.on_table(some) for some in groups]


class _GroupBuilder:
    """Makes trial groups; what they share is made once."""

    def __init__(
        self,
        data: TableData | FileData,
        options: TrainingOptions,
        device: torch.device,
        setup: TrainingSetup,
        make_gate: MakeGate | None,
        score_penalty: ScorePenalty | None,
        source: StreamSource | None,
    ) -> None:
        self._data, self._options, self._device, self._setup = data, options, device, setup
        self._make_gate, self._score_penalty, self._source = make_gate, score_penalty, source
        self.together = options.built_in and device.type != "cpu"  # models of a group share one tensor
        self._columns = make_feature_columns(data, options, device)
        cells = setup.batch_size * (len(data.feature_of) + len(data.coded_features))
        dropout = setup.input_dropout
        self._dropout = InputDropout(dropout, cells, device, rescale=setup.rescale) if dropout else None
        self._reducer = Reducer() if source is None else source.reducer
        self._table = DeviceTable.of_data(data, device) if isinstance(data, TableData) else None
        self._validation: DeviceTable | None = None

    def on_table(self, seeds: Sequence[int]) -> TrialGroup:
        """The trials of some seeds; the rows of a table are divided anew for each seed."""
        table, setup = self._table, self._setup
        assert table is not None
        units = self._data.units if isinstance(self._data, TableData) else None
        members = self._members(seeds)
        parts = setup.members if setup.variants == 1 else ENSEMBLE_SIZE
        rows = {seed: split_rows(table.count, seed, parts, units) for seed in seeds}

        def make_loader(some: Sequence[Member]) -> Loader:
            member_data = [
                MemberData(m.generator(ORDER), m.generator(NOISE), *rows[m.seed][m.number]) for m in some
            ]
            return InMemoryLoader(table, setup.batch_size, member_data, self._dropout)

        return self._make_group(members, make_loader, table)

    def on_files(self, seed: int) -> TrialGroup:
        """The trials of one seed, which read the files in the order of that seed."""
        data, setup, source = self._data, self._setup, self._source
        assert not isinstance(data, TableData) and source is not None  # noqa: PT018
        plain = not self._options.built_in and data.target_column.unweighted
        stream = FileStream(
            source.make_loader(seed, setup.batch_size, setup.passes),
            setup.batch_size,
            setup.steps,
            setup.passes,
            self._device,
            source.reducer,
            multiclass=data.target.task == "multiclass",
            drop_weightless=plain,
            gather=source.gather,
            unopened=[{"file": path, "reason": reason, "rows": None} for path, reason in data.files.skipped],
        )
        if self._validation is None and source.validation is not None:
            transfer, multiclass = DeviceTransfer(self._device), data.target.task == "multiclass"
            self._validation = device_table(transfer, source.validation, multiclass, weighted=not plain)

        def make_loader(some: Sequence[Member]) -> Loader:
            noise = [member.generator(NOISE) for member in some]
            parts = [member.number for member in some]
            return StreamLoader(stream, noise, self._dropout, self._validation, parts, setup.members)

        return self._make_group(self._members([seed]), make_loader, self._validation, stream)

    def _members(self, seeds: Sequence[int]) -> list[Member]:
        variants, members = range(self._setup.variants), range(self._setup.members)
        return [Member(seed, number, variant) for seed in seeds for variant in variants for number in members]

    def _make_group(
        self,
        members: list[Member],
        make_loader: Callable[[Sequence[Member]], Loader],
        some_rows: DeviceTable | None,
        stream: FileStream | None = None,
    ) -> TrialGroup:
        """``some_rows`` are rows on which a user's own model is tried before training."""
        setup, data = self._setup, self._data
        trials = len(members) // setup.members
        state = SelectionState(trials, data.constant, self._device, setup.members, setup.kept, setup.quotas)
        trainers = []
        for first, some in self._per_trainer(members):
            model = make_model(data, some, self._options, self._device, self._reducer)
            if isinstance(model, TorchModule) and some_rows is not None:
                check_own_model(model, data, some_rows, self._options)
            gate = None if self._make_gate is None else self._make_gate(model, some)
            own_state = state.of_models(slice(first, first + len(some)))
            trainers.append(
                Trainer(
                    model,
                    gate,
                    make_loader(some),
                    own_state,
                    self._columns,
                    setup.weight_decay,
                    setup.members,
                    self._reducer,
                )
            )
        working_set = None
        if setup.working_set and some_rows is not None:
            feature_of = torch.from_numpy(data.feature_of)
            working_set = WorkingSet(some_rows, feature_of, data.constant, setup.working_set)
        return TrialGroup(trainers, state, self._score_penalty, stream, working_set)

    def _per_trainer(self, members: list[Member]) -> Iterator[tuple[int, list[Member]]]:
        """The members of each trainer, with the number of the first: all of them on a GPU, one each on a CPU."""
        if self.together:
            yield 0, members
        else:
            yield from ((number, [member]) for number, member in enumerate(members))
