"""The input of a method: the data, how many features to select, its options, and the settings of the run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray

from seqatt.checkpoints.options import CheckpointOptions
from seqatt.data.files.options import FileOptions
from seqatt.data.tables.table_data import TableData
from seqatt.distributed.process_group import SINGLE_PROCESS, ProcessGroup
from seqatt.progress import Advance
from seqatt.trace import Trace
from seqatt.training.group_factory import StreamSource
from seqatt.training.loop import TrainingHook
from seqatt.training.selection_state import Quotas

if TYPE_CHECKING:  # files need pyarrow, tables do not
    from seqatt.data.files.file_data import FileData


@dataclass(frozen=True)
class RunContext:
    """Execution settings of a run on files: file options, checkpoint options and process group."""

    file_options: FileOptions = field(default_factory=FileOptions)
    checkpoint_options: CheckpointOptions = field(default_factory=CheckpointOptions)
    ranks: ProcessGroup = SINGLE_PROCESS


@dataclass(frozen=True)
class SelectionRequest:
    """The input of a method: select ``k`` features of ``data``, once per seed.

    ``data`` is a table or, for a method with a ``select_files``, files; then ``source`` reads them. ``hook`` shows
    progress and saves checkpoints. The features ``kept`` are among the k, first and in this order, and ``quotas`` bound
    how many of some sets are. ``subsets`` are the rows of a table that the trial of each seed sees, for a method of the
    training loop; None if every trial sees all rows.
    """

    data: TableData | FileData
    k: int
    seeds: list[int]
    options: Any
    device: torch.device
    hook: TrainingHook = field(default_factory=TrainingHook)
    source: StreamSource | None = None
    context: RunContext = field(default_factory=RunContext)
    kept: tuple[int, ...] = ()
    quotas: Quotas | None = None
    subsets: tuple[NDArray[np.int64], ...] | None = None

    def as_part(self, name: str, steps: int, counts: int = 1) -> SelectionRequest:
        """The request as one part of a run of several selections; it counts as ``counts`` of them."""
        monitor, data = self.hook.part.monitor, self.data
        part = monitor.start_part(name, data.user_position, data.given_names, self.k, steps, counts=counts)
        return replace(self, hook=TrainingHook(part))

    @property
    def rows(self) -> int:
        """Number of rows that a trial sees; the smallest, where subsets of whole units differ in size."""
        return self.data.rows if self.subsets is None else min(map(len, self.subsets))

    @property
    def table(self) -> TableData:
        """The data of a method that needs a table."""
        assert isinstance(self.data, TableData)
        return self.data

    def first(self, ranking: list[int], k: int) -> list[int]:
        """The first k features of a ranking that the quotas allow together, after those that are kept."""
        if self.quotas is None:
            return [*self.kept, *(f for f in ranking if f not in self.kept)][:k]
        return replace(self.quotas, k=k).first(ranking, self.kept)

    def arrange(self, trace: Trace) -> Trace:
        """The trace with the features that are kept first, and then the best of its ranking that the quotas allow.

        The trace of a method that already selects within the quotas is returned as it is.
        """
        ranking = trace.order + trace.rest
        first = self.first(ranking, len(trace.order))
        if first == trace.order:
            return trace
        chosen, phases = set(first), trace.phases
        if len(phases) == 1:  # a ranking: all are selected at once
            phases = [replace(phases[0], taken=first[len(self.kept) :])]
        return replace(trace, order=first, rest=[f for f in ranking if f not in chosen], phases=phases)


def select_arranged(
    select_features: Callable[..., list[Trace]], request: SelectionRequest, plan: Any, advance: Advance
) -> list[Trace]:
    """The traces of a method, with the features that are kept first, and within the quotas."""
    return [request.arrange(trace) for trace in select_features(request, plan, advance)]
