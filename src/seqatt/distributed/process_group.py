"""The ranks of a run and their collectives, on top of torch.distributed.

Control messages use a gloo group on the CPU, so that no accelerator has to wait for them.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from datetime import timedelta
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from numpy.typing import NDArray
from torch import Tensor

from seqatt.data.files.encoding.rows import BatchAgreement


class RankLost(RuntimeError):
    """Another rank has ended, has failed or does not respond."""


def world_size() -> int:
    """Number of processes in the default process group; 1 without one."""
    return dist.get_world_size() if dist.is_available() and dist.is_initialized() else 1


class ProcessGroup:
    """The ranks of one run. With a single process, every collective is a no-op.

    Parameters
    ----------
    device : where this rank trains. On CUDA, tensors travel through NCCL; everything else uses gloo.
    timeout : seconds that a collective waits for the other ranks before it raises ``RankLost``.
    alone : ignore the default process group and run as a single process.
    """

    def __init__(self, device: torch.device, timeout: float, *, alone: bool = False) -> None:
        self.size = 1 if alone else world_size()
        self.rank = dist.get_rank() if self.size > 1 else 0
        if self.size > 1:
            wait = timedelta(seconds=timeout)
            with self._errors_as_rank_lost():
                self._cpu_group = dist.new_group(backend="gloo", timeout=wait)
                self._device_group = (
                    dist.new_group(backend="nccl", timeout=wait) if device.type == "cuda" else self._cpu_group
                )

    def synchronize(self, rows: int, expected: float, save: bool, stop: bool, failed: bool) -> BatchAgreement:
        """Agree on the next batch before any rank computes on it.

        ``rows`` and ``expected`` are summed over ranks; ``save`` and ``stop`` hold if any rank sets them. If
        a rank has ``failed``, all others raise ``RankLost``.
        """
        if self.size == 1:
            return BatchAgreement(rows, expected, save, stop)
        totals = torch.zeros(5 + self.size, dtype=torch.float64)  # the last are the rows of each rank
        totals[:5] = torch.tensor([rows, expected, save, stop, failed], dtype=torch.float64)
        totals[5 + self.rank] = rows
        # A rank that failed raises its own error, which says more than RankLost.
        with suppress(RankLost) if failed else nullcontext(), self._errors_as_rank_lost():
            dist.all_reduce(totals, group=self._cpu_group)
        if totals[4] and not failed:
            raise RankLost("ranks: another rank failed and ended the run; see the error of that rank")
        first_row = int(totals[5 : 5 + self.rank].sum())
        return BatchAgreement(int(totals[0]), float(totals[1]), bool(totals[2]), bool(totals[3]), first_row)

    def allreduce(self, tensors: Sequence[Tensor]) -> None:
        """Replace each tensor by its sum over ranks, in place, in one message."""
        if self.size == 1:
            return
        flat = torch.cat([tensor.reshape(-1) for tensor in tensors])
        with self._errors_as_rank_lost():
            dist.all_reduce(flat, group=self._device_group)
        for tensor, total in zip(tensors, torch.split(flat, [t.numel() for t in tensors]), strict=True):
            tensor.copy_(total.view_as(tensor))

    def allgather(self, flat: Tensor) -> Tensor:
        """The tensors (n,) of all ranks, as (ranks, n)."""
        gathered = flat.new_empty(self.size, len(flat))
        with self._errors_as_rank_lost():
            dist.all_gather(list(gathered.unbind()), flat, group=self._device_group)
        return gathered

    def broadcast_each(self, flat: Tensor) -> Iterator[Tensor]:
        """The CPU tensors (n,) of all ranks, one rank after another: only one more is in memory at a time."""
        for rank in range(self.size):
            received = flat if rank == self.rank else torch.empty_like(flat)
            if self.size > 1:
                with self._errors_as_rank_lost():
                    dist.broadcast(received, rank, group=self._cpu_group)
            yield received

    def broadcast_arrays(self, arrays: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
        """Rank 0's arrays; what the other ranks pass is not used."""
        if self.size == 1:
            return dict(arrays)
        layout = {name: [array.dtype.str, array.shape] for name, array in arrays.items()}
        received = {}
        for name, (dtype, shape) in json.loads(self.broadcast_text(json.dumps(layout))).items():
            array = np.array(arrays[name]) if self.rank == 0 else np.empty(shape, dtype=dtype)
            with self._errors_as_rank_lost():
                dist.broadcast(torch.from_numpy(array), 0, group=self._cpu_group)
            received[name] = array
        return received

    def broadcast_text(self, text: str) -> str:
        """Rank 0's text. It is pickled on the way, as torch does between the ranks of one trusted job."""
        if self.size == 1:
            return text
        texts = [text]
        with self._errors_as_rank_lost():
            dist.broadcast_object_list(texts, 0, group=self._cpu_group)
        return texts[0]

    def allgather_texts(self, text: str) -> list[str]:
        """The texts of all ranks, by rank, of any lengths; pickled like those of ``broadcast_text``."""
        if self.size == 1:
            return [text]
        texts = [""] * self.size
        with self._errors_as_rank_lost():
            dist.all_gather_object(texts, text, group=self._cpu_group)
        return texts

    def barrier(self) -> None:
        """Wait until all ranks are here."""
        if self.size > 1:
            with self._errors_as_rank_lost():
                dist.barrier(group=self._cpu_group)

    def close(self) -> None:
        """Destroy the groups that this object created; the default group belongs to the caller."""
        if self.size > 1:
            for group in {id(g): g for g in (self._cpu_group, self._device_group)}.values():
                with suppress(RuntimeError, ValueError):
                    dist.destroy_process_group(group)

    @contextmanager
    def _errors_as_rank_lost(self) -> Iterator[None]:
        try:
            yield
        except RuntimeError as error:
            reason = " ".join(str(error).split())[:160]
            raise RankLost(
                f"ranks: rank {self.rank} of {self.size} cannot reach another rank, which has ended or does "
                f"not respond ({reason}); start all ranks again with resume"
            ) from None


SINGLE_PROCESS = ProcessGroup(torch.device("cpu"), 0, alone=True)


def launched_by_torchrun() -> bool:
    """Whether the environment variables of torchrun name this process as one of several ranks."""
    names = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
    return all(name in os.environ for name in names) and int(os.environ["WORLD_SIZE"]) > 1


@contextmanager
def join_process_group(timeout: float) -> Iterator[int]:
    """Initialise the default process group if torchrun launched this process; yields its rank.

    If another rank does not come within ``timeout`` seconds, ``RankLost`` is raised.
    """
    if not launched_by_torchrun() or dist.is_initialized():
        yield dist.get_rank() if dist.is_available() and dist.is_initialized() else 0
        return
    try:
        dist.init_process_group("gloo", timeout=timedelta(seconds=timeout))
    except RuntimeError as error:
        rank, size, host, port = (
            os.environ[name] for name in ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
        )
        reason = " ".join(str(error).split())[:120]
        raise RankLost(
            f"ranks: rank {rank} of {size} waited {timeout:g} seconds for the others at {host}:{port} ({reason}); "
            "start all ranks, or give a larger rank_timeout"
        ) from None
    try:
        yield dist.get_rank()
    finally:
        dist.destroy_process_group()


def device_of_rank(device: torch.device) -> torch.device:
    """The device of this rank: with several ranks per machine, each uses the CUDA device of its local rank."""
    if device.type == "cuda" and device.index is None and "LOCAL_RANK" in os.environ:
        return torch.device("cuda", int(os.environ["LOCAL_RANK"]) % torch.cuda.device_count())
    return device
