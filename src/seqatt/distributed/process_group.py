"""Several processes that train as one, through torch.distributed.

Small agreements go over a group of their own on the CPU, so that no accelerator waits for them.
"""

from __future__ import annotations

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

from seqatt.data.files.loader import Vote


class RankLost(RuntimeError):
    """Another rank has ended, failed or does not answer."""


def world_size() -> int:
    """How many processes there are in the group that this one is in."""
    return dist.get_world_size() if dist.is_available() and dist.is_initialized() else 1


class ProcessGroup:
    """The ranks of a run. Alone, everything is as if nobody had been asked."""

    def __init__(self, device: torch.device, timeout: float, *, alone: bool = False) -> None:
        self.size = 1 if alone else world_size()
        self.rank = dist.get_rank() if self.size > 1 else 0
        if self.size > 1:
            wait = timedelta(seconds=timeout)
            with self._told():
                self._small = dist.new_group(backend="gloo", timeout=wait)
                self._large = (
                    dist.new_group(backend="nccl", timeout=wait) if device.type == "cuda" else self._small
                )

    def vote(self, rows: int, expected: float, save: bool, stop: bool, failed: bool) -> Vote:
        """What the ranks say together of their next batch, before anyone works on it."""
        if self.size == 1:
            return Vote(rows, expected, save, stop)
        said = torch.tensor([rows, expected, save, stop, failed], dtype=torch.float64)
        with suppress(RankLost) if failed else nullcontext(), self._told():  # who failed has more to say
            dist.all_reduce(said, group=self._small)
        if said[4] and not failed:
            raise RankLost("ranks: another rank could not go on; it says why")
        return Vote(int(said[0]), float(said[1]), bool(said[2]), bool(said[3]))

    def add_up(self, tensors: Sequence[Tensor]) -> None:
        """Sums over ranks, in place, in one go."""
        if self.size == 1:
            return
        flat = torch.cat([tensor.reshape(-1) for tensor in tensors])
        with self._told():
            dist.all_reduce(flat, group=self._large)
        for tensor, part in zip(tensors, torch.split(flat, [t.numel() for t in tensors]), strict=True):
            tensor.copy_(part.view_as(tensor))

    def gather(self, flat: Tensor) -> Tensor:
        """Everyone's (n,), as (ranks, n)."""
        all_of_them = flat.new_empty(self.size, len(flat))
        with self._told():
            dist.all_gather(list(all_of_them.unbind()), flat, group=self._large)
        return all_of_them

    def in_turn(self, flat: Tensor) -> Iterator[Tensor]:
        """Everyone's (n,) on the CPU, one rank after another."""
        for rank in range(self.size):
            said = flat if rank == self.rank else torch.empty_like(flat)
            if self.size > 1:
                with self._told():
                    dist.broadcast(said, rank, group=self._small)
            yield said

    def share(self, arrays: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
        """Rank 0's arrays; the others bring arrays of the same shapes."""
        if self.size == 1:
            return dict(arrays)
        shared = {}
        for name in sorted(arrays):
            tensor = torch.from_numpy(np.array(arrays[name]))
            with self._told():
                dist.broadcast(tensor, 0, group=self._small)
            shared[name] = tensor.numpy()
        return shared

    def tell(self, text: str) -> str:
        """What rank 0 says."""
        return self.gather_texts(text if self.rank == 0 else "")[0]

    def gather_texts(self, text: str) -> list[str]:
        """What everyone says, by rank."""
        if self.size == 1:
            return [text]
        mine = torch.from_numpy(np.frombuffer(text.encode(), dtype=np.uint8).copy())
        lengths = [torch.zeros(1, dtype=torch.int64) for _ in range(self.size)]
        with self._told():
            dist.all_gather(lengths, torch.tensor([len(mine)]), group=self._small)
            longest = max(int(length) for length in lengths)
            sent = torch.zeros(longest, dtype=torch.uint8)
            sent[: len(mine)] = mine
            all_of_them = [torch.zeros_like(sent) for _ in range(self.size)]
            if longest:
                dist.all_gather(all_of_them, sent, group=self._small)
        return [
            bytes(some[: int(length)].numpy()).decode()
            for some, length in zip(all_of_them, lengths, strict=True)
        ]

    def close(self) -> None:
        """Leave the groups; the default one is the caller's."""
        if self.size > 1:
            for group in {id(g): g for g in (self._small, self._large)}.values():
                with suppress(RuntimeError, ValueError):
                    dist.destroy_process_group(group)

    @contextmanager
    def _told(self) -> Iterator[None]:
        try:
            yield
        except RuntimeError as error:
            reason = " ".join(str(error).split())[:160]
            raise RankLost(
                f"ranks: rank {self.rank} of {self.size} cannot reach another rank, which has ended or does "
                f"not answer ({reason}); start all ranks again with resume"
            ) from None


SINGLE_PROCESS = ProcessGroup(torch.device("cpu"), 0, alone=True)


def launched_by_torchrun() -> bool:
    """Whether torchrun, or something that sets its variables, started this process as one of several."""
    names = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
    return all(name in os.environ for name in names) and int(os.environ["WORLD_SIZE"]) > 1


@contextmanager
def join_process_group() -> Iterator[int]:
    """The default process group from torchrun's variables, where they are set; gives this one's rank."""
    if not launched_by_torchrun() or dist.is_initialized():
        yield dist.get_rank() if dist.is_available() and dist.is_initialized() else 0
        return
    dist.init_process_group("gloo")
    try:
        yield dist.get_rank()
    finally:
        dist.destroy_process_group()


def device_of_rank(device: torch.device) -> torch.device:
    """With several ranks on a machine each takes the accelerator of its number."""
    if device.type == "cuda" and device.index is None and "LOCAL_RANK" in os.environ:
        return torch.device("cuda", int(os.environ["LOCAL_RANK"]) % torch.cuda.device_count())
    return device
