"""On Ray: two workers select what one process selects, are restarted, and report what went wrong."""

from __future__ import annotations

import os
import pickle
import re
import signal
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet as pq

import seqatt
from seqatt.datasets.synthetic import click_log
from seqatt.distributed.process_group import RankLost
from seqatt.ray import WorkerReport, WorkerResources, _warn_if_short, find_cause, picklable

QUICK = {"k": 2, "hidden": (8,), "batch_size": 32, "epochs": 1, "schema_rows": 500, "memory": 0}

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning:ray", "ignore::FutureWarning:ray")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    """A local Ray cluster with two cores, which writes nothing into the user's home."""
    ray = pytest.importorskip("ray", reason="needs Ray: pip install 'seqatt[ray]'")
    paths = [str(Path(seqatt.__file__).parents[1]), os.environ.get("PYTHONPATH", "")]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", str(tmp_path_factory.mktemp("home")))
        patch.setenv("PYTHONPATH", os.pathsep.join(filter(None, paths)))
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        patch.setenv("RAY_TRAIN_HEALTH_CHECK_INTERVAL_S", "0.2")
        patch.setenv("RAY_TRAIN_ENABLE_PREEMPTION_WATCHER", "0")  # one process less
        ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
        yield
        ray.shutdown()


def kill_a_worker(checkpoints: Path, killed: list[int]) -> None:
    """Kill a worker that Ray started for this process, once there is a checkpoint."""
    while not list(checkpoints.glob("*.npz")):
        time.sleep(0.01)
    workers = [int(entry.name) for entry in Path("/proc").iterdir() if is_worker(entry)]
    os.kill(max(workers), signal.SIGKILL)
    killed.append(max(workers))


def is_worker(entry: Path) -> bool:
    try:
        if not entry.name.isdigit() or b"ray::RayTrainWorker" not in (entry / "cmdline").read_bytes():
            return False
        return os.getpid() in ancestors(entry)
    except OSError:  # the process has ended in the meantime
        return False


def ancestors(entry: Path) -> list[int]:
    """The process ids of the parent, its parent and so on."""
    found = []
    while entry.name != "0":
        parent = (entry / "stat").read_text().rpartition(")")[2].split()[1]
        found.append(int(parent))
        entry = Path("/proc") / parent
    return found


def test_two_workers_of_which_one_is_killed_select_what_one_process_selects(cluster, tmp_path, monkeypatch):
    log = click_log(tmp_path / "clicks", 12_000, rows_per_file=4_000)
    monkeypatch.chdir(tmp_path)
    killed: list[int] = []
    killer = threading.Thread(target=kill_a_worker, args=(tmp_path / "checkpoints", killed))
    killer.start()
    selection = seqatt.ray.select(
        "clicks/*.parquet",
        target="click",
        log1p=True,
        storage=tmp_path / "storage",
        checkpoint="checkpoints",
        checkpoint_every=0.05,
        max_failures=1,
        **QUICK,
    )
    killer.join()
    alone = seqatt.select(log.files, target="click", log1p=True, shards=2, **QUICK)
    assert len(killed) == 1
    assert selection.features == alone.features
    assert selection.scores == pytest.approx(alone.scores, rel=1e-3)
    assert selection.ranking.tolist() == alone.ranking.tolist()
    assert selection.settings["rows"] == 12_000
    assert [entry["steps"] for entry in selection.history] == [entry["steps"] for entry in alone.history]
    assert len(list((tmp_path / "checkpoints").glob("*.npz"))) == 1
    assert list((tmp_path / "storage").iterdir())


def test_workers_accumulate_the_sums_of_one_process(cluster, tmp_path):
    log = click_log(tmp_path / "clicks", 6_000, rows_per_file=2_000)
    options = {"target": "click", "k": 3, "method": "cmim", "schema_rows": 6_000, "memory": 0}
    folder = tmp_path / "checkpoints"
    selection = seqatt.ray.select(log.files, storage=tmp_path, checkpoint=folder, **options)
    alone = seqatt.select(log.files, **options)
    assert selection.features == alone.features
    assert selection.scores == pytest.approx(alone.scores, rel=1e-9)
    assert selection.settings["rows"] == 6_000
    assert {path.name for path in folder.glob("rank-*")} == {"rank-1"}


def test_the_error_of_the_worker_that_failed_first_is_raised(cluster, tmp_path):
    x = np.random.default_rng(0).normal(size=(4_000, 3))
    y = (x[:, 0] > 0).astype(int)
    x[3_990, 1] = np.inf  # beyond the schema sample, and on one of the two workers
    table = pa.table({"a": x[:, 0], "b": x[:, 1], "c": x[:, 2], "y": y})
    pq.write_table(table, tmp_path / "table.parquet", row_group_size=500)
    with pytest.raises(ValueError, match=r"table\.parquet.*'b' contains infinity"):
        seqatt.ray.select(tmp_path / "table.parquet", target="y", storage=tmp_path, **QUICK)


def test_a_ray_dataset_gives_what_its_rows_as_files_give(cluster, tmp_path):
    import ray.data

    ray.data.DataContext.get_current().enable_progress_bars = False
    log = click_log(tmp_path / "clicks", 4_000, rows_per_file=2_000)
    rows = ray.data.read_parquet([str(path) for path in log.files]).map_batches(
        lambda batch: batch, batch_format="pyarrow"
    )
    storage = tmp_path / "storage"
    options = {"target": "click", "k": 3, "method": "cmim", "schema_rows": 4_000, "memory": 0}
    selection = seqatt.ray.select(rows, storage=storage, **options)
    assert selection.settings["rows"] == 4_000
    assert selection.features == seqatt.select(log.files, **options).features
    assert not list(storage.glob("seqatt-*"))
    with pytest.raises(ValueError, match="target: no column 'clicks'"):
        seqatt.ray.select(rows, target="clicks", k=2, storage=storage)
    with pytest.raises(TypeError, match="resume: a Ray dataset is written anew"):
        seqatt.ray.select(rows, target="click", k=2, checkpoint=tmp_path / "c", resume=True)
    with pytest.raises(TypeError, match=r"X: a Dataset of ray .* X.write_parquet\(folder\)"):
        seqatt.select(rows, target="click", k=2)


def test_the_recipe_for_a_ray_job_runs(cluster, tmp_path):
    click_log(tmp_path / "clicks", 2_000)
    page = Path(__file__).parents[1] / "docs" / "how_to" / "clusters.md"
    (code,) = re.findall(r"```python ray\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
    code = code.replace("/shared", str(tmp_path)).replace("k=20", "k=2, method='cmim', memory=0")
    code = code.replace("workers=8", "workers=2").replace("cpus_per_worker=4", "cpus_per_worker=1")
    exec(compile(code, page.name, "exec"), {})
    assert len(seqatt.Selection.load(tmp_path / "selection.json").features) == 2


def test_without_ray_the_error_says_how_to_get_it(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(ImportError, match=r"pip install 'seqatt\[ray\]'"):
        seqatt.ray.select(tmp_path, target="click", k=2)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"workers": 0}, "workers: must be a whole number of at least 1"),
        ({"cpus_per_worker": -1}, "cpus_per_worker: must be"),
        ({"use_gpu": "yes"}, "use_gpu: must be True or False"),
        ({"max_failures": 0.5}, "max_failures: must be a whole number"),
        ({"k": None}, "k: the number of features to select is needed"),
        ({"X": np.eye(3)}, "X: on Ray it must be files"),
        ({"method": "woods"}, "method: unknown 'woods'"),
        ({"hiden": 8}, "no option 'hiden'; did you mean 'hidden'"),
        ({"device": "cuda"}, "device: on Ray use_gpu decides where"),
        ({"resume": True}, "resume: needs the folder"),
        ({"seed": -1}, "seed: must be"),
    ],
)
def test_invalid_input_is_refused_before_ray_is_imported(monkeypatch, arguments, message):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises((TypeError, ValueError), match=message):
        seqatt.ray.select(**{"X": "clicks", "target": "click", "k": 2} | arguments)


def test_costs_with_a_budget_need_no_k(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(ImportError, match="ray"):  # all arguments are accepted before
        seqatt.ray.select("clicks", target="click", costs={"age": 1}, budget=1)


def test_a_cluster_that_is_too_small_gives_a_warning():
    with pytest.warns(UserWarning, match="8 of them need 16 CPUs and the cluster has 2"):
        _warn_if_short({"CPU": 2.0}, WorkerResources(8, 2, False, 0))
    with pytest.warns(UserWarning, match="1 of them need 1 GPUs and the cluster has 0"):
        _warn_if_short({"CPU": 2.0}, WorkerResources(1, 1, True, 0))


def test_an_error_keeps_its_type_or_at_least_its_message_between_processes():
    diverged = seqatt.TrainingDiverged("the loss is NaN", [])
    unpickled = pickle.loads(pickle.dumps(picklable(diverged)))
    assert type(unpickled) is seqatt.TrainingDiverged
    assert (str(unpickled), unpickled.selections) == ("the loss is NaN", [])

    class LocalError(Exception):
        pass

    assert str(picklable(LocalError("not picklable"))) == "LocalError: not picklable"


def test_the_cause_of_a_failure_is_an_error_other_than_a_lost_rank():
    lost, full = RankLost("another rank failed"), OSError("no space left")
    reports = [WorkerReport(0, error=lost), WorkerReport(1, error=full), WorkerReport(-1, error=lost)]
    assert find_cause(reports) is full
    assert find_cause([WorkerReport(0, error=lost), WorkerReport(1)]) is lost
    assert find_cause([WorkerReport(0)]) is None
