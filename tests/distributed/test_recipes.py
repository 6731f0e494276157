"""The recipes of docs/how_to/clusters.md run, with two ranks of one machine in place of a cluster."""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

import seqatt
from seqatt.datasets.synthetic import click_log

PAGE = Path(__file__).parents[2] / "docs" / "how_to" / "clusters.md"
QUICK = "--hidden 8 --batch-size 64 --epochs 1 --log1p all"


def recipe(language: str) -> str:
    """The code block of the page in this language."""
    (block,) = re.findall(rf"```{language}\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    return str(block)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def on_this_machine(command: str, folder: Path, ranks_per_node: int) -> str:
    """A command for a cluster with the folder, sizes and address of this test."""
    command = command.replace("/shared", str(folder)).replace("-k 20", f"-k 2 {QUICK}")
    command = re.sub(r"--nproc-per-node 8", f"--nproc-per-node {ranks_per_node}", command)
    command = command.replace("--nnodes 4", "--nnodes 2").replace("29500", str(free_port()))
    return command.replace("host0", "127.0.0.1").replace("seqatt-0.seqatt", "127.0.0.1")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    click_log(tmp_path / "clicks", 4_000, rows_per_file=1_000)
    return tmp_path


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """With torchrun on the path, of this Python."""
    tools = tmp_path / "bin"
    tools.mkdir()
    write_tool(tools / "torchrun", f'exec "{sys.executable}" -m torch.distributed.run "$@"')
    paths = [str(Path(seqatt.__file__).parents[1]), os.environ.get("PYTHONPATH", "")]
    path = os.pathsep.join([str(tools), os.environ["PATH"]])
    return os.environ | {"PATH": path, "PYTHONPATH": os.pathsep.join(paths), "OMP_NUM_THREADS": "1"}


def write_tool(path: Path, body: str) -> None:
    path.write_text(f"#!/bin/bash\n{body}\n")
    path.chmod(0o755)


def start(command: str, environment: dict[str, str], **more: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        ["bash", "-c", command],
        env=environment | more,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )


def check_selection(folder: Path, *processes: subprocess.Popen[str]) -> None:
    outputs = [process.communicate(timeout=180)[0] for process in processes]
    assert [process.returncode for process in processes] == [0] * len(processes), "\n".join(outputs)
    assert sum(output.count("2 of 39 features for click") for output in outputs) == 1
    saved = seqatt.Selection.load(folder / "run" / "selection.json")
    assert saved.settings["shards"] == 2
    assert saved.settings["rows"] == 4_000


@pytest.mark.slow
def test_the_line_for_one_machine_runs(folder, environment):
    command = on_this_machine(recipe("bash torchrun"), folder, 2).replace(
        "torchrun ", "torchrun --standalone ", 1
    )
    check_selection(folder, start(command, environment))


@pytest.mark.slow
@pytest.mark.exhaustive
def test_the_line_for_several_machines_runs_on_each_of_them(folder, environment):
    command = on_this_machine(recipe("bash torchrun-nodes"), folder, 1)
    check_selection(folder, start(command, environment), start(command, environment))


@pytest.mark.slow
def test_the_job_script_of_slurm_runs(folder, environment):
    """Stand-ins start what ``srun`` would start on each of two nodes."""
    tools = Path(environment["PATH"].partition(os.pathsep)[0])
    write_tool(tools / "scontrol", "for _ in 1 2; do echo 127.0.0.1; done")
    write_tool(tools / "srun", '"$@" & first=$!\n"$@" && wait $first')
    script = recipe("bash slurm")
    directives = re.findall(
        r"--[a-z-]+(?:=\S+)?", next(line for line in script.splitlines() if "#SBATCH" in line)
    )
    assert "--ntasks-per-node=1" in directives  # torchrun starts the ranks of a node
    (gpus,) = re.findall(r"--gpus-per-node=(\d+)", script)
    assert f"--nproc-per-node {gpus}" in script
    slurm = {"SLURM_JOB_NODELIST": "node[0-1]", "SLURM_NNODES": "2", "SLURM_JOB_ID": "7"}
    check_selection(folder, start(on_this_machine(script, folder, 1), environment, **slurm))


def test_the_numbers_and_names_of_the_kubernetes_manifest_agree():
    yaml = pytest.importorskip("yaml", reason="needs PyYAML: pip install pyyaml")
    service, job = yaml.safe_load_all(recipe("yaml"))
    assert (service["kind"], job["kind"], job["apiVersion"]) == ("Service", "Job", "batch/v1")
    spec, pod = job["spec"], job["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    (command,) = container["args"]
    name = job["metadata"]["name"]
    assert service["spec"] == {"clusterIP": "None", "selector": {"job-name": name}}
    assert pod["subdomain"] == service["metadata"]["name"]
    assert f"--master-addr {name}-0.{pod['subdomain']}" in command
    assert spec["completions"] == spec["parallelism"]
    assert f"--nnodes {spec['completions']} " in command
    assert f"--nproc-per-node {container['resources']['limits']['nvidia.com/gpu']} " in command
    assert {mount["name"] for mount in container["volumeMounts"]} == {
        volume["name"] for volume in pod["volumes"]
    }


@pytest.mark.slow
@pytest.mark.exhaustive
def test_the_command_of_the_kubernetes_manifest_runs_as_two_pods(folder, environment):
    yaml = pytest.importorskip("yaml", reason="needs PyYAML: pip install pyyaml")
    _, job = yaml.safe_load_all(recipe("yaml"))
    (command,) = job["spec"]["template"]["spec"]["containers"][0]["args"]
    command = on_this_machine(command, folder, 1)
    pods = [start(command, environment, JOB_COMPLETION_INDEX=str(index)) for index in range(2)]
    check_selection(folder, *pods)


@pytest.mark.slow
def test_a_rank_that_never_comes_is_waited_for_no_longer_than_said(folder, environment):
    ranks = {"RANK": "0", "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port())}
    command = f'"{sys.executable}" -m seqatt select {folder}/clicks --target click -k 2 --set rank_timeout=2'
    begin = time.monotonic()
    alone = start(command, environment, **ranks)
    output = alone.communicate(timeout=120)[0]
    assert alone.returncode == 1
    assert "rank 0 of 2 waited 2 seconds for the others at 127.0.0.1" in " ".join(output.split())
    assert time.monotonic() - begin < 100  # not the half hour that torch waits


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*inplace keyword")  # Dask's own
def test_a_frame_of_dask_goes_on_from_parquet(folder, monkeypatch):
    pytest.importorskip("dask.dataframe", reason="needs Dask: pip install 'dask[dataframe]'")
    code = recipe("python dask").replace("/shared", str(folder)).replace("k=20", "k=2, hidden=(8,), epochs=1")
    names: dict[str, object] = {}
    exec(compile(code, PAGE.name, "exec"), names)
    assert len(names["selection"].features) == 2  # type: ignore[attr-defined]
    shutil.rmtree(folder / "filtered")
