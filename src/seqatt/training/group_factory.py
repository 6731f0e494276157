"""From data and options to trial groups that are ready to train."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from seqatt.data.files.encoding.rows import EncodedRows
from seqatt.data.tables.table_data import TableData, constant_within
from seqatt.data.tables.weights import balanced_share
from seqatt.training.backend.threads import SERIAL_WORK
from seqatt.training.ensemble import NOISE, ORDER, Member, split_rows, split_subset
from seqatt.training.gates.gate import Gate
from seqatt.training.loaders.batch import DeviceTable
from seqatt.training.loaders.device_transfer import DeviceTransfer
from seqatt.training.loaders.in_memory import InMemoryLoader, Loader, MemberData
from seqatt.training.loaders.input_dropout import InputDropout
from seqatt.training.loaders.stream import FileStream, Gather, StreamLoader, device_table
from seqatt.training.model_factory import largest_product, make_feature_columns, make_model
from seqatt.training.models.model import Model
from seqatt.training.models.own_model_checks import check_own_model
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
Rows = NDArray[np.int64]


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
    variants : models per member that differ in the strength of a penalty or in their features. Each is a trial of its
        own; all of them hold out the same rows.
    hold_outs : how many parts of the rows are held out in turn; as many as ``members``, each another one, if None.
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
    hold_outs: int | None = None
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
    score_penalties: Sequence[ScorePenalty | None] | None = None,
    subsets: Sequence[Rows] | None = None,
    source: StreamSource | None = None,
    table: DeviceTable | None = None,
) -> Iterable[TrialGroup]:
    """One trial group per seed, or one for all where trials share a tensor.

    Groups of a table are a list, because they train together. Those of files are made one after another.
    ``score_penalties`` give the penalties (0 or less) that are added to the scores, and ``subsets`` the rows of the
    table that a trial sees, if not all: one of each per seed. ``table`` is the data on the device, if it is there.
    """
    if table is None and isinstance(data, TableData):
        table = DeviceTable.of_data(data, device)
    builder = _GroupBuilder(data, options, device, setup, make_gate, source, table)
    nothing = [None] * len(seeds)
    trials = [
        _Trial(*parts) for parts in zip(seeds, subsets or nothing, score_penalties or nothing, strict=True)
    ]
    if not isinstance(data, TableData):
        return (builder.on_files(trial) for trial in trials)
    if share_a_tensor(options, device):
        return [builder.on_table(trials)]
    return [builder.on_table([trial]) for trial in trials]


def share_a_tensor(options: TrainingOptions, device: torch.device) -> bool:
    """Whether the models of all trials of a table train in one tensor: those of the built-in network on a GPU do."""
    return options.built_in and device.type != "cpu"


class _Trial(NamedTuple):
    """A seed, the rows of a table that it sees (None: all of them), and its score penalty."""

    seed: int
    rows: Rows | None
    score_penalty: ScorePenalty | None


class _GroupBuilder:
    """Makes trial groups; what they share is made once."""

    def __init__(
        self,
        data: TableData | FileData,
        options: TrainingOptions,
        device: torch.device,
        setup: TrainingSetup,
        make_gate: MakeGate | None,
        source: StreamSource | None,
        table: DeviceTable | None,
    ) -> None:
        self._data, self._options, self._device, self._setup = data, options, device, setup
        self._make_gate, self._source = make_gate, source
        # Members whose products are small share a tensor too: one operation for all costs hardly more than for one.
        small = largest_product(data, options, setup.batch_size) < SERIAL_WORK and not setup.working_set
        self._together = share_a_tensor(options, device) or (options.built_in and small)
        self._columns = make_feature_columns(data, options, device)
        cells = setup.batch_size * (len(data.feature_of) + len(data.coded_features))
        dropout = setup.input_dropout
        self._dropout = InputDropout(dropout, cells, device, rescale=setup.rescale) if dropout else None
        self._reducer = Reducer() if source is None else source.reducer
        self._table = table
        self._validation: DeviceTable | None = None

    def on_table(self, trials: Sequence[_Trial]) -> TrialGroup:
        """The trial group of these trials on a table. Each trial splits its rows by its own seed."""
        table, setup = self._table, self._setup
        assert table is not None
        members = self._members(trials)
        rows = self._rows_of_members(trials)

        def make_loader(models: slice) -> Loader:
            member_data = [
                MemberData(member.generator(ORDER), member.generator(NOISE), train_rows, validation_rows)
                for member, (train_rows, validation_rows) in zip(members[models], rows[models], strict=True)
            ]
            return InMemoryLoader(table, setup.batch_size, member_data, self._dropout)

        return self._make_group(trials, members, make_loader, table)

    def _rows_of_members(self, trials: Sequence[_Trial]) -> list[tuple[Tensor | None, Tensor | None]]:
        """The rows that each model trains on and those held out from it, None for all of the table.

        In one tensor all models have the same numbers of rows.
        """
        data, setup = self._data, self._setup
        assert isinstance(data, TableData)
        parts = setup.hold_outs or setup.members
        rows: list[tuple[Tensor | None, Tensor | None]] = []
        strata = data.target.strata
        for trial in trials:
            split = (
                split_rows(strata, trial.seed, parts, data.units)
                if trial.rows is None
                else split_subset(trial.rows, strata, trial.seed, parts, data.units)
            )
            rows += [split[number] for _ in range(setup.variants) for number in range(setup.members)]
        trained, held_out = zip(*rows, strict=True)
        return list(zip(_of_one_length(trained), _of_one_length(held_out), strict=True))

    def on_files(self, trial: _Trial) -> TrialGroup:
        """The trials of one seed, which read the files in the order of that seed."""
        data, setup, source = self._data, self._setup, self._source
        assert not isinstance(data, TableData) and source is not None  # noqa: PT018
        plain = not self._options.built_in and data.target_column.unweighted
        stream = FileStream(
            source.make_loader(trial.seed, setup.batch_size, setup.passes),
            setup.batch_size,
            setup.steps,
            setup.passes,
            self._device,
            source.reducer,
            multiclass=data.target.task == "multiclass",
            drop_weightless=plain,
            gather=source.gather,
            unopened=data.files.unopened,
        )
        if self._validation is None and source.validation is not None:
            transfer, multiclass = DeviceTransfer(self._device), data.target.task == "multiclass"
            self._validation = device_table(transfer, source.validation, multiclass, weighted=not plain)

        members = self._members([trial])

        def make_loader(models: slice) -> Loader:
            noise = [member.generator(NOISE) for member in members[models]]
            parts = [member.number for member in members[models]]
            return StreamLoader(stream, noise, self._dropout, self._validation, parts, setup.members)

        return self._make_group([trial], members, make_loader, self._validation, stream)

    def _members(self, trials: Sequence[_Trial]) -> list[Member]:
        variants, members = range(self._setup.variants), range(self._setup.members)
        return [Member(trial.seed, n, variant) for trial, variant, n in product(trials, variants, members)]

    def _make_group(
        self,
        trials: Sequence[_Trial],
        members: list[Member],
        make_loader: Callable[[slice], Loader],
        table_rows: DeviceTable | None,
        stream: FileStream | None = None,
    ) -> TrialGroup:
        """``table_rows`` are those of a table, or the validation rows of files; a user's own model is tried on them."""
        setup, data = self._setup, self._data
        share = balanced_share(data.target) if isinstance(data, TableData) else 1.0
        count, variants = len(trials) * setup.variants, range(setup.variants)
        constant = np.stack([self._constant(trial) for trial in trials for _ in variants])
        state = SelectionState(count, constant, self._device, setup.members, setup.kept, setup.quotas)
        trainers = []
        for models in self._per_trainer(len(members)):
            model = make_model(data, members[models], self._options, self._device, self._reducer)
            if isinstance(model, TorchModule) and table_rows is not None:
                check_own_model(model, data, table_rows, self._options)
            gate = None if self._make_gate is None else self._make_gate(model, members[models])
            trainers.append(
                Trainer(
                    model,
                    gate,
                    make_loader(models),
                    state.of_models(models),
                    self._columns,
                    setup.weight_decay,
                    setup.members,
                    self._reducer,
                    stops_converged=setup.working_set > 0,
                    balanced_share=share,
                )
            )
        working_set = None
        if setup.working_set and table_rows is not None:
            feature_of = torch.from_numpy(data.feature_of)
            working_set = WorkingSet(table_rows, feature_of, data.constant, setup.working_set)
        penalties = [trial.score_penalty for trial in trials for _ in variants]
        return TrialGroup(trainers, state, penalties, stream, working_set)

    def _constant(self, trial: _Trial) -> NDArray[np.bool_]:
        """Features (d,) that are constant in the rows that a trial sees."""
        data = self._data
        if trial.rows is None or not isinstance(data, TableData):
            return data.constant
        return constant_within(data, trial.rows)

    def _per_trainer(self, members: int) -> Iterator[slice]:
        """The members of each trainer: all of them in one tensor, or one each."""
        if self._together:
            yield slice(0, members)
        else:
            yield from (slice(number, number + 1) for number in range(members))


def _of_one_length(rows: Sequence[Tensor | None]) -> list[Tensor | None]:
    """The rows of each model, cut to the number of rows of the model that has the fewest."""
    fewest = min((len(numbers) for numbers in rows if numbers is not None), default=0)
    return [None if numbers is None else numbers[:fewest] for numbers in rows]
