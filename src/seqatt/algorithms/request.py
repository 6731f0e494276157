"""What a method gets: the data, how many features to select, its options, and how the run is carried out."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import torch

from seqatt.checkpoints.options import CheckpointOptions
from seqatt.data.files.options import FileOptions
from seqatt.data.tables.table_data import TableData
from seqatt.distributed.process_group import SINGLE_PROCESS, ProcessGroup
from seqatt.training.build import StreamSource
from seqatt.training.loop import TrainingHook

if TYPE_CHECKING:  # files need pyarrow, tables do not
    from seqatt.data.files.file_data import FileData


@dataclass(frozen=True)
class Running:
    """How a run on files is carried out: how they are read, by which ranks, and with which checkpoints."""

    file_options: FileOptions = field(default_factory=FileOptions)
    checkpoint_options: CheckpointOptions = field(default_factory=CheckpointOptions)
    ranks: ProcessGroup = SINGLE_PROCESS


@dataclass(frozen=True)
class SelectionRequest:
    """The input of a method: select ``k`` features of ``data``, once per seed.

    ``data`` is a table or, for a method with a ``select_files``, files; then ``source`` reads them. ``hook`` shows
    progress and saves checkpoints. The features ``kept`` are among the k, first and in this order.
    """

    data: TableData | FileData
    k: int
    seeds: list[int]
    options: Any
    device: torch.device
    hook: TrainingHook = field(default_factory=TrainingHook)
    source: StreamSource | None = None
    running: Running = field(default_factory=Running)
    kept: tuple[int, ...] = ()

    def as_part(self, name: str, steps: int) -> SelectionRequest:
        """The same request as one of several selections that the work of the run consists of."""
        monitor, data = self.hook.part.monitor, self.data
        part = monitor.start_part(name, data.user_position, data.given_names, self.k, steps, is_step=True)
        return replace(self, hook=TrainingHook(part))

    @property
    def table(self) -> TableData:
        """The data of a method that needs a table."""
        assert isinstance(self.data, TableData)
        return self.data
