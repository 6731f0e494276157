"""Selecting on a Ray cluster: Ray Train starts the workers, which are then ranks as torchrun's are."""

from __future__ import annotations

import os
import warnings
from dataclasses import dataclass
from typing import Any

from seqatt.api import select as choosing
from seqatt.data.files.errors import SkippedData
from seqatt.data.files.remote import is_url
from seqatt.distributed.process_group import RankLost
from seqatt.distributed.worker_reports import ReportCollector, WorkerReport, find_cause, picklable
from seqatt.selection import Selection, TrainingDiverged
from seqatt.streaming.select_files import read_options
from seqatt.training.options import check_flag, check_number, check_seeds, check_whole

__all__ = ["select"]

INSTEAD = {"device": "use_gpu says where to train", "progress": "workers have no terminal to show it on"}


@dataclass(frozen=True)
class WorkerResources:
    """What is asked of Ray, in its units."""

    workers: int
    cpus_per_worker: float
    use_gpu: bool
    max_failures: int

    def __post_init__(self) -> None:
        check_whole(self, "workers", least=1)
        check_number(self, "cpus_per_worker", above=0)
        check_flag(self, "use_gpu")
        check_whole(self, "max_failures", least=0)

    def each(self) -> dict[str, float]:
        return {"CPU": self.cpus_per_worker} | ({"GPU": 1} if self.use_gpu else {})


def select(
    X: Any,
    y: Any = None,
    k: int | float | None = None,
    *,
    target: str | None = None,
    method: str = "sequential_attention",
    seed: int = 0,
    workers: int = 2,
    cpus_per_worker: float = 1,
    use_gpu: bool = False,
    storage: str | os.PathLike[str] | None = None,
    max_failures: int = 0,
    **options: Any,
) -> Selection:
    """``seqatt.select`` on files, by several workers of the Ray cluster that there is, or of a new local one.

    Parameters
    ----------
    X, y, k, target, method, seed, options : as for ``seqatt.select`` on files (docs/streaming.md), also
        ``checkpoint`` and ``resume``. Every worker must reach the files under the same names.
    workers : how many processes train together; each is a rank.
    cpus_per_worker, use_gpu : what each is given. With ``use_gpu`` one GPU each, else they train on CPUs.
    storage : where Ray Train keeps what it writes about the run, a folder or a URL; by default its own,
        ``~/ray_results``.
    max_failures : how often Ray may start all workers again after one was lost. They then go on from the
        last checkpoint, which must lie where all machines see it, or from the start where none is kept.

    Returns
    -------
    Selection

    Examples
    --------
    >>> import seqatt
    >>> seqatt.ray.select("/shared/clicks", target="click", k=20, workers=8)  # doctest: +SKIP
    """
    if k is None:
        raise TypeError("k: say how many features to choose")
    if not choosing.are_files(X):
        raise TypeError("X: on Ray it must be files: a path, a pattern, a folder, a URL or a list of these")
    for name, instead in INSTEAD.items():
        if name in options:
            raise TypeError(f"{name}: on Ray {instead}; leave it out")
    resources = WorkerResources(workers, cpus_per_worker, use_gpu, max_failures)
    check_seeds([seed])
    read_options(method, options)
    if options.get("checkpoint") is not None:
        options["checkpoint"] = _absolute(options["checkpoint"])
    files = [_absolute(each) for each in (X if isinstance(X, list | tuple) else [X])]
    asked = {"X": files, "y": y, "k": k, "target": target, "method": method, "seed": seed, **options}
    notes = _run(asked, resources, None if storage is None else _absolute(storage))
    return _answer(notes)


def _run(asked: dict[str, Any], resources: WorkerResources, storage: str | None) -> list[WorkerReport]:
    """Every note that was left, whether or not the run came to its end."""
    try:
        import ray
        from ray.train import FailureConfig, RunConfig, ScalingConfig
        from ray.train.torch import TorchConfig, TorchTrainer
    except ImportError as error:
        raise ImportError(f"seqatt.ray needs Ray Train ({error}): pip install 'seqatt[ray]'") from None
    if not ray.is_initialized():
        ray.init()
    _warn_if_short(ray.cluster_resources(), resources)
    post = ray.remote(num_cpus=0)(ReportCollector).remote()
    trainer = TorchTrainer(
        _work,
        train_loop_config={"asked": asked, "use_gpu": resources.use_gpu, "post": post},
        torch_config=TorchConfig(backend="gloo"),  # ranks open a group of NCCL beside it by themselves
        scaling_config=ScalingConfig(
            num_workers=resources.workers,
            use_gpu=resources.use_gpu,
            resources_per_worker=resources.each(),
        ),
        run_config=RunConfig(
            storage_path=storage, failure_config=FailureConfig(max_failures=resources.max_failures)
        ),
    )
    try:
        trainer.fit()
    except Exception as error:
        said = " ".join(str(error).split())[:300]
        lost = RankLost(
            f"workers: the run ended before they had an answer ({said}); start again, with resume where "
            "checkpoints are kept, or allow max_failures"
        )
        return [WorkerReport(-1, error=lost), *ray.get(post.read.remote())]
    return list(ray.get(post.read.remote()))


def _warn_if_short(there: dict[str, float], resources: WorkerResources) -> None:
    """A cluster may grow, so this is no error; but whoever waits should know for what."""
    for what, number in resources.each().items():
        needed, has = number * resources.workers, there.get(what, 0)
        if needed > has:
            warnings.warn(
                f"workers: {resources.workers} of them need {needed:g} {what}s and the cluster has {has:g}; "
                "Ray waits until it has grown, so ask for less if it cannot",
                stacklevel=4,
            )


def _work(config: dict[str, Any]) -> None:
    """One rank's life, in a process that Ray started and put into a process group."""
    import ray
    from ray.train import get_context
    from ray.train.torch import get_device

    post, asked = config["post"], dict(config["asked"])
    rank = get_context().get_world_rank()
    before = ray.get(post.start.remote(rank))
    known = find_cause(ray.get(post.read.remote()))
    if isinstance(known, ValueError | TypeError | TrainingDiverged):
        raise known  # it would only go wrong again
    if before and asked.get("checkpoint") is not None:
        asked["resume"] = True
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        selection, error = None, None
        try:
            selection = choosing.select(device=str(get_device()) if config["use_gpu"] else "cpu", **asked)
        except Exception as raised:
            error = raised
    said = [w.message for w in caught if isinstance(w.message, UserWarning)]
    warned = tuple(m for m in said if rank == 0 or isinstance(m, SkippedData))
    note = WorkerReport(rank, selection if rank == 0 else None, picklable(error), warned)
    ray.get(post.leave.remote(note))
    if error is not None:
        raise error


def _answer(notes: list[WorkerReport]) -> Selection:
    for note in notes:
        for message in note.warned:
            warnings.warn(message, stacklevel=3)
    found = [note.selection for note in notes if note.selection is not None]
    if found:
        return found[-1]
    failed = find_cause(notes)
    raise failed if failed is not None else RuntimeError("workers: Ray ended them before they had an answer")


def _absolute(named: str | os.PathLike[str]) -> str:
    """Workers have folders of their own."""
    path = os.fspath(named)
    return path if is_url(path) else os.path.abspath(path)
