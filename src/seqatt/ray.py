"""``select`` on a Ray cluster: Ray Train starts the workers, which then act as the ranks of one run."""

from __future__ import annotations

import os
import pickle
import uuid
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyarrow import fs

from seqatt.algorithms.answer_options import needs_k
from seqatt.api import select as selecting
from seqatt.api.read_data import are_files, are_streams, choose_target
from seqatt.api.select_options import make_options
from seqatt.data.files.errors import SkippedData
from seqatt.data.files.file_columns import open_columns
from seqatt.data.files.file_set import FileSet
from seqatt.data.files.options import FileOptions
from seqatt.data.files.remote import is_url
from seqatt.distributed.process_group import RankLost
from seqatt.options import Options, option
from seqatt.selection import Selection, TrainingDiverged
from seqatt.validation import boolean, check_seeds, integer, number

__all__ = ["select"]

UNSUPPORTED = {  # options of ``seqatt.select`` that do not apply, and why
    "device": "use_gpu decides where to train",
    "progress": "workers have no terminal to show it on",
    "callbacks": "they would run in another process",
}


@dataclass(frozen=True)
class WorkerResources(Options):
    """The workers that Ray starts, in Ray's units."""

    workers: int = option(2, integer(1), "Number of workers.")
    cpus_per_worker: float = option(1, number(above=0), "Cores per worker.")
    use_gpu: bool = option(False, boolean(), "Give every worker a GPU.")
    max_failures: int = option(0, integer(0), "How often lost workers are started again.")

    def per_worker(self) -> dict[str, float]:
        """Resources per worker, by Ray's names."""
        return {"CPU": self.cpus_per_worker} | ({"GPU": 1} if self.use_gpu else {})


@dataclass(frozen=True)
class WorkerReport:
    """The outcome of one worker: the selection (rank 0 only), its error if it failed, and its warnings."""

    rank: int
    selection: Selection | None = None
    error: Exception | None = None
    warnings: tuple[Warning, ...] = ()


class ReportCollector:
    """A Ray actor that collects reports. It outlives the workers, also those that replace lost ones.

    Ray itself may report the error of a worker that only lost contact to another one, not the original cause.
    """

    def __init__(self) -> None:
        self._starts: dict[int, int] = {}
        self._reports: list[WorkerReport] = []

    def count_start(self, rank: int) -> int:
        """Count one more start of this rank; returns the number of earlier ones."""
        self._starts[rank] = self._starts.get(rank, 0) + 1
        return self._starts[rank] - 1

    def add(self, report: WorkerReport) -> None:
        self._reports.append(report)

    def reports(self) -> list[WorkerReport]:
        return self._reports


def select(
    X: Any,
    y: Any = None,
    k: int | float | str | None = None,
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
    """``seqatt.select`` on files, with several workers on the connected Ray cluster, or on a new local one.

    Parameters
    ----------
    X, y, k, target, method, seed, options : as for ``seqatt.select`` on files (docs/streaming.md), including
        ``checkpoint`` and ``resume``. Every worker must be able to read the files under the same names. X may also be
        a ``ray.data.Dataset``, which is written to Parquet files in ``storage`` for the time of the call.
    workers : int, default 2. Number of processes that train together; each is a rank.
    cpus_per_worker : float, default 1. CPUs per worker.
    use_gpu : bool, default False. Train on one GPU per worker instead of on CPUs.
    storage : folder or URL where Ray Train stores its logs and results; by default ``~/ray_results``.
    max_failures : int, default 0. How often Ray may restart all workers after one was lost. They continue from
        the last checkpoint, whose folder all machines must share, or start again if there is none.

    Returns
    -------
    Selection

    Examples
    --------
    >>> import seqatt
    >>> seqatt.ray.select("/shared/clicks", target="click", k=20, workers=8)  # doctest: +SKIP
    """
    if k is None and needs_k(options):
        raise TypeError("k: the number of features to select is needed, such as k=10")
    dataset = is_ray_dataset(X)
    if not dataset and (are_streams(X) or not are_files(X)):
        raise TypeError(
            "X: on Ray it must be files (a path, a pattern, a folder, a URL or a list of these) or a ray.data.Dataset"
        )
    for name, reason in UNSUPPORTED.items():
        if name in options:
            raise TypeError(f"{name}: on Ray {reason}; leave it out")
    resources = WorkerResources(workers, cpus_per_worker, use_gpu, max_failures)
    check_seeds([seed])
    checked = make_options(method, options, files=True)
    if options.get("checkpoint") is not None:
        options["checkpoint"] = _absolute(options["checkpoint"])
    folder = None if storage is None else _absolute(storage)
    arguments = {"y": y, "k": k, "target": target, "method": method, "seed": seed, **options}
    if dataset:
        if options.get("resume"):
            raise TypeError(
                "resume: a Ray dataset is written anew for every call, perhaps in another order; write it once with "
                "X.write_parquet(folder) and pass the folder"
            )
        assert isinstance(checked.data, FileOptions)
        names, column = X.columns(), choose_target(y, target, files=True)
        columns = open_columns(FileSet(dict.fromkeys(names, pa.float64()), ()), column, checked.data)
        with _written(X, columns.types, folder) as written:
            return _result(_run({"X": written, **arguments}, resources, folder))
    files = [_absolute(path) for path in (X if isinstance(X, list | tuple) else [X])]
    return _result(_run({"X": files, **arguments}, resources, folder))


def is_ray_dataset(X: Any) -> bool:
    """Whether ``X`` is a ``ray.data.Dataset``, without importing Ray."""
    return any(
        each.__module__.startswith("ray.data") and each.__name__ == "Dataset" for each in type(X).__mro__
    )


@contextmanager
def _written(dataset: Any, names: Iterable[str], storage: str | None) -> Iterator[str]:
    """The columns of a dataset as Parquet files in the storage, which all workers can read; removed at the end."""
    folder = f"{storage or os.path.expanduser('~/ray_results')}/seqatt-{uuid.uuid4().hex}"
    try:
        dataset.select_columns(list(names)).write_parquet(folder)
        yield folder
    finally:
        filesystem, path = fs.FileSystem.from_uri(folder)
        if filesystem.get_file_info(path).type == fs.FileType.Directory:
            filesystem.delete_dir(path)


def _run(arguments: dict[str, Any], resources: WorkerResources, storage: str | None) -> list[WorkerReport]:
    """Run ``select`` on all workers and return all reports, also if the run failed."""
    try:
        import ray
        from ray.train import FailureConfig, RunConfig, ScalingConfig
        from ray.train.torch import TorchConfig, TorchTrainer
    except ImportError as error:
        raise ImportError(f"seqatt.ray needs Ray Train ({error}): pip install 'seqatt[ray]'") from None
    if not ray.is_initialized():
        ray.init()
    _warn_if_short(ray.cluster_resources(), resources)
    collector = ray.remote(num_cpus=0)(ReportCollector).remote()
    trainer = TorchTrainer(
        _run_worker,
        train_loop_config={"arguments": arguments, "use_gpu": resources.use_gpu, "collector": collector},
        torch_config=TorchConfig(backend="gloo"),  # with GPUs, ProcessGroup adds an NCCL group
        scaling_config=ScalingConfig(
            num_workers=resources.workers,
            use_gpu=resources.use_gpu,
            resources_per_worker=resources.per_worker(),
        ),
        run_config=RunConfig(
            storage_path=storage, failure_config=FailureConfig(max_failures=resources.max_failures)
        ),
    )
    try:
        trainer.fit()
    except Exception as error:
        reason = " ".join(str(error).split())[:300]
        lost = RankLost(
            f"workers: the run ended without a result ({reason}); start again, with resume if it writes "
            "checkpoints, or allow max_failures"
        )
        return [WorkerReport(-1, error=lost), *ray.get(collector.reports.remote())]
    return list(ray.get(collector.reports.remote()))


def _warn_if_short(available: dict[str, float], resources: WorkerResources) -> None:
    """Warn if the cluster is too small: a cluster may grow, so this is no error, but Ray waits silently."""
    for name, amount in resources.per_worker().items():
        needed, total = amount * resources.workers, available.get(name, 0)
        if needed > total:
            warnings.warn(
                f"workers: {resources.workers} of them need {needed:g} {name}s and the cluster has {total:g}; "
                "Ray waits until the cluster has grown; if it cannot grow, request less",
                stacklevel=4,
            )


def _run_worker(config: dict[str, Any]) -> None:
    """Run ``select`` as one rank, in a process that Ray started with a default process group."""
    import ray
    from ray.train import get_context
    from ray.train.torch import get_device

    collector, arguments = config["collector"], dict(config["arguments"])
    rank = get_context().get_world_rank()
    earlier_starts = ray.get(collector.count_start.remote(rank))
    cause = find_cause(ray.get(collector.reports.remote()))
    if isinstance(cause, ValueError | TypeError | TrainingDiverged):
        raise cause  # another attempt would fail in the same way
    if earlier_starts and arguments.get("checkpoint") is not None:
        arguments["resume"] = True
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        selection, error = None, None
        try:
            selection = selecting.select(
                device=str(get_device()) if config["use_gpu"] else "cpu", **arguments
            )
        except Exception as raised:
            error = raised
    messages = [w.message for w in caught if isinstance(w.message, UserWarning)]
    own = tuple(message for message in messages if rank == 0 or isinstance(message, SkippedData))
    report = WorkerReport(rank, selection if rank == 0 else None, picklable(error), own)
    ray.get(collector.add.remote(report))
    if error is not None:
        raise error


def picklable(error: Exception | None) -> Exception | None:
    """The error itself, or a RuntimeError with its message if it cannot be pickled."""
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return RuntimeError(f"{type(error).__name__}: {error}")
    return error


def find_cause(reports: Sequence[WorkerReport]) -> Exception | None:
    """The latest error that is not a ``RankLost``, else the latest; earlier failures were recovered from."""
    errors = [report.error for report in reversed(reports) if report.error is not None]
    causes = [error for error in errors if not isinstance(error, RankLost)]
    return next(iter(causes + errors), None)


def _result(reports: list[WorkerReport]) -> Selection:
    """Repeat the workers' warnings and return rank 0's selection, or raise the cause of the failure."""
    for report in reports:
        for message in report.warnings:
            warnings.warn(message, stacklevel=3)
    selections = [report.selection for report in reports if report.selection is not None]
    if selections:
        return selections[-1]
    cause = find_cause(reports)
    raise cause if cause is not None else RuntimeError("workers: Ray ended them before they had a result")


def _absolute(path: str | os.PathLike[str]) -> str:
    """An absolute path or URL: workers have another working directory."""
    path = os.fspath(path)
    return path if is_url(path) else os.path.abspath(path)
