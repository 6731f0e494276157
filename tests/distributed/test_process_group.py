"""Several ranks select what one process selects, end together when one fails, and are resumed together."""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
import time
from pathlib import Path

import pyarrow.parquet as pq
import pytest
import torch
import torch.distributed as dist
from benchmarks.kill_and_resume import kill_and_resume, run_cases
from pyarrow import csv

import seqatt
from seqatt.algorithms.registry import all_methods
from seqatt.datasets.synthetic import click_log
from seqatt.distributed.process_group import ProcessGroup, RankLost

QUICK = {
    "k": 3,
    "hidden": [8],
    "batch_size": 32,
    "epochs": 1,
    "log1p": True,
    "memory": 0,
    "schema_rows": 500,
    "checkpoint_every": 0.03,
}
TRAINED = [name for name, method in all_methods().items() if method.trains]


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Text files, whose numbers of rows are not known: one rank runs out of rows long before the other."""
    folder = tmp_path_factory.mktemp("clicks")
    table = pq.read_table(click_log(folder, 2_701).files[0])
    paths = []
    for number, (start, rows) in enumerate([(0, 1_700), (1_700, 700), (2_400, 301)]):
        paths.append(folder / f"{number}.csv")
        csv.write_csv(table.slice(start, rows), paths[-1])
    return paths


def torchrun(*arguments: object, ranks: int = 2) -> list[str]:
    run = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", str(ranks), "--standalone"]
    return [*run, "-m", "seqatt", "select", *map(str, arguments)]


def use_collectives(rank: int, store: Path, behaviour: str) -> None:
    """One rank, in a process of its own: every collective of texts once, then again without rank 1."""
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=2)
    group = ProcessGroup(torch.device("cpu"), timeout=2)
    own = ["", "\u00e4 much longer text"][rank]
    assert group.allgather_texts(own) == ["", "\u00e4 much longer text"]
    assert group.broadcast_text(["{}", "ignored"][rank]) == "{}"
    group.barrier()
    if rank == 1:
        if behaviour == "hangs":
            time.sleep(5)
        os._exit(0)
    for collective in (
        lambda: group.broadcast_text("text") and group.barrier(),  # sending alone may succeed
        lambda: group.allgather_texts("text"),
        group.barrier,
    ):
        with pytest.raises(RankLost) as error:
            collective()
        assert str(error.value).startswith("ranks: rank 0 of 2 cannot reach another rank, which has ended or")
        assert str(error.value).endswith("start all ranks again with resume")
    os._exit(0)


@pytest.mark.slow
@pytest.mark.parametrize("behaviour", ["ends", "hangs"])
def test_texts_of_any_length_are_exchanged_and_a_lost_rank_is_reported(tmp_path, behaviour):
    context = multiprocessing.get_context("spawn")
    ranks = [
        context.Process(target=use_collectives, args=(rank, tmp_path / "store", behaviour))
        for rank in range(2)
    ]
    for process in ranks:
        process.start()
    for process in ranks:
        process.join(60)
    assert [process.exitcode for process in ranks] == [0, 0]


@pytest.mark.slow
def test_two_ranks_killed_at_any_moment_and_resumed_select_what_one_process_selects(files, tmp_path):
    report = kill_and_resume(files, tmp_path, kills=2, ranks=2, options=QUICK | {"ensemble": 1})
    whole = report["whole"][0]
    assert 1 in report["exit_codes"]  # the rank that survived a kill did not wait for ever
    assert report["whole"][1] == whole
    assert all(result == [whole, whole] for result in report["killed"])
    alone = seqatt.select(files, target="click", shards=2, ensemble=1, **QUICK)
    assert alone.features == whole["features"]
    assert alone.scores == pytest.approx(whole["scores"], rel=1e-3)
    assert alone.ranking.tolist() == whole["ranking"]
    steps = [entry["steps"] for entry in alone.history]
    assert steps == [entry["steps"] for entry in whole["history"]]
    assert alone.settings["rows"] == 2_701
    assert sum(steps) > 2_701 / 32 + 10  # steps on the rows of one rank alone are half as large


SOME = ("sequential_attention", "sequential_lasso")
REST = [method for method in TRAINED if method not in SOME]


@pytest.mark.slow
@pytest.mark.parametrize(
    "methods", [SOME, pytest.param(REST, marks=pytest.mark.exhaustive)], ids=["some", "rest"]
)
def test_with_every_method_that_trains_two_ranks_select_what_one_process_selects(methods, files, tmp_path):
    """One of them runs out of rows and continues with empty batches."""
    # The penalty of DeepLASSO is not a sum over rows, and each rank adds that of its own rows: a short training.
    options = {method: QUICK | {"method": method} for method in TRAINED}
    options["deep_lasso"] |= {"penalty": 0.01}
    cases = [{"ranks": 2, "options": options[method]} for method in methods]
    different = {}
    for method, report in zip(methods, run_cases(files, tmp_path, cases), strict=True):
        whole = report["whole"][0]
        alone = seqatt.select(files, target="click", shards=2, **options[method])
        rel = 0.1 if method == "deep_lasso" else 2e-3
        scores = pytest.approx(whole["scores"], rel=rel, abs=1e-6)
        if not (
            report["whole"][1] == whole and alone.features == whole["features"] and alone.scores == scores
        ):
            different[method] = alone.features, alone.scores, report["whole"]
    assert not different


SUMS = {"k": 3, "log1p": True, "memory": 0, "schema_rows": 500, "checkpoint_every": 0.01, "shuffle_rows": 256}


@pytest.mark.slow
def test_two_ranks_accumulate_the_sums_of_one_process_killed_or_not(files, tmp_path):
    kills = {"cmim": 1, "linear_omp": 0}
    cases = [
        {"ranks": 2, "kills": kills[method], "options": SUMS | {"method": method}, "lost": "rank-1"}
        for method in kills
    ]
    for method, report in zip(kills, run_cases(files, tmp_path, cases), strict=True):
        whole = report["whole"][0]
        for result in [report["whole"], *report["killed"], report["lost"]]:
            assert result == [whole, whole], method
        alone = seqatt.select(files, target="click", method=method, **SUMS)
        assert alone.settings["rows"] == 2_701
        assert alone.features == whole["features"], method
        assert alone.scores == pytest.approx(whole["scores"], rel=1e-6), method


@pytest.mark.slow
def test_the_command_runs_under_torchrun(tmp_path):
    log = click_log(tmp_path / "clicks", 6_000, rows_per_file=2_000)
    out = tmp_path / "run"
    arguments = ["-t", "click", "-k", 2, "--hidden", 8, "--batch-size", 64, "--log1p", "all", "--epochs", 1]
    command = torchrun(*log.files, *arguments, "--out", out)
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("2 of 39 features for click") == 1
    saved = seqatt.Selection.load(out / "selection.json")
    options = {"hidden": 8, "batch_size": 64, "log1p": True, "shards": 2, "memory": 0, "epochs": 1}
    alone = seqatt.select(log.files, target="click", k=2, **options)
    assert saved.features == alone.features
    assert saved.settings["rows"] == 6_000
    assert saved.settings["shards"] == 2
    assert len(list((out / "checkpoint").glob("*.npz"))) == 1
