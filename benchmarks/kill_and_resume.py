"""Kills runs at random moments and resumes them: every selection must be that of an undisturbed run.

    python -m benchmarks.kill_and_resume                # 100 SIGKILLs, some minutes
    python -m benchmarks.kill_and_resume --kills 8      # fewer, for a quick look

One and two ranks (processes of one gloo group), on files that are read into memory as a table and on files that are
read batch by batch. A run is killed and resumed until it finishes, then the next one starts, until there were enough
kills. Prints the number of kills and of runs; the exit code is 1 if any selection differs in features, scores, ranking
or history.

The ranks are forked from a process in which everything is imported and nothing has run yet, so that starting one takes
a fraction of a second. Tests call ``kill_and_resume`` and ``run_cases``.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from datetime import timedelta
from itertools import product
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist

import seqatt
from seqatt.algorithms.registry import all_methods
from seqatt.algorithms.sums import accumulate
from seqatt.datasets.synthetic import click_log

ROWS = 6_000
TIMEOUT = 5  # seconds that a rank waits for one that was killed before they connected
QUICK = {
    "k": 3,
    "hidden": [16],
    "batch_size": 64,
    "log1p": True,
    "schema_rows": 500,
    "checkpoint_every": 0.03,
}
READINGS = {"in memory": {"memory": "1GB", "epochs": 4}, "batch by batch": {"memory": 0, "epochs": 4}}


def kill_and_resume(files: Sequence[Path], scratch: Path, **case: Any) -> dict[str, Any]:
    """Runs that are killed, in a new process.

    ``case`` has ``options`` of ``seqatt.select`` and may have ``kills`` (0), ``ranks`` (1), ``seed`` (0) and ``lost``,
    a folder that is deleted from the checkpoints of a finished run before that run is repeated.

    Returns the ``whole`` result, one per rank; the results ``killed`` of runs that were; the number of ``kills``, the
    ``exit_codes`` of all processes, and the result ``lost`` of the repeated run.
    """
    return run_cases(files, scratch, [case])[0]


def run_cases(files: Sequence[Path], scratch: Path, cases: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """``kill_and_resume`` of several cases, one after the other in one process, which imports everything once."""
    paths = [str(path) for path in files]
    arguments = [
        {"ranks": 1, "kills": 0, "seed": 0} | case | {"files": paths, "scratch": str(scratch / str(number))}
        for number, case in enumerate(cases)
    ]
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.kill_and_resume", "--cases", json.dumps(arguments)],
        capture_output=True,
        text=True,
        check=False,
        cwd=Path(__file__).parents[1],
    )
    if done.returncode:
        raise RuntimeError(f"one of the cases {arguments} failed:\n{done.stderr}")
    return list(json.loads(done.stdout))


def comparable(selection: seqatt.Selection) -> dict[str, Any]:
    """What must be equal between two runs: all but times and the machine."""
    plain = selection.to_dict()
    history = [entry | {"seconds": 0} for entry in plain["history"]]
    return {name: plain[name] for name in ("features", "scores", "ranking")} | {"history": history}


def run_rank(case: dict[str, Any], checkpoint: Path | None, out: Path, rank: int, store: Path) -> None:
    """One rank of a run, in a child."""
    torch.set_num_threads(1)
    accumulate.SHARD_BATCH_ROWS = 32  # otherwise one batch would hold all rows
    if case["ranks"] > 1:
        wait = timedelta(seconds=TIMEOUT)
        dist.init_process_group(
            "gloo", init_method=f"file://{store}", rank=rank, world_size=case["ranks"], timeout=wait
        )
    resume = {} if checkpoint is None else {"checkpoint": checkpoint, "resume": True}
    selection = seqatt.select(
        case["files"], target="click", device="cpu", rank_timeout=TIMEOUT, **case["options"], **resume
    )
    (out / f"{rank}.json").write_text(json.dumps(comparable(selection)))


def start(case: dict[str, Any], checkpoint: Path | None, out: Path) -> list[int]:
    """Start all ranks; returns their process ids."""
    out.mkdir(parents=True, exist_ok=True)
    store = out / f"store-{random.random()}"
    children = []
    for rank in range(case["ranks"]):
        child = os.fork()
        if child == 0:
            code = 1
            try:
                run_rank(case, checkpoint, out, rank, store)
                code = 0
            except BaseException as error:
                print(f"rank {rank}: {type(error).__name__}: {error}", file=sys.stderr, flush=True)
            os._exit(code)
        children.append(child)
    return children


def exit_codes(children: list[int]) -> list[int]:
    return [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]


def results(case: dict[str, Any], out: Path) -> list[dict[str, Any]]:
    return [json.loads((out / f"{rank}.json").read_text()) for rank in range(case["ranks"])]


def run_case(case: dict[str, Any]) -> dict[str, Any]:
    """An undisturbed run, then runs that are killed by SIGKILL or, a third of the time, stopped by SIGTERM."""
    scratch = Path(case["scratch"])
    random.seed(case["seed"])
    all_methods()  # import every method before the first fork
    started = time.monotonic()
    undisturbed = exit_codes(start(case, None, scratch / "whole"))
    seconds = time.monotonic() - started
    assert undisturbed == [0] * case["ranks"], undisturbed
    kills, all_codes, killed = 0, [], []
    while kills < case["kills"]:
        out, checkpoint = scratch / f"out{len(killed)}", scratch / f"checkpoint{len(killed)}"
        codes = [-1]
        while any(codes):
            children = start(case, checkpoint, out)
            if kills < case["kills"]:
                time.sleep(random.uniform(0.1, 0.9) * seconds)
                how = random.choice([signal.SIGKILL, signal.SIGKILL, signal.SIGTERM])
                for child in children if random.random() < 0.5 else [random.choice(children)]:
                    os.kill(child, how)
            codes = exit_codes(children)
            kills += -signal.SIGKILL in codes
            all_codes += codes
        killed.append(results(case, out))
    report = {"seconds": seconds, "kills": kills, "exit_codes": all_codes, "killed": killed}
    if "lost" in case:
        for out in (scratch / "first", scratch / "again"):
            codes = exit_codes(start(case, scratch / "finished", out))
            assert not any(codes), (out, codes)
            shutil.rmtree(scratch / "finished" / case["lost"], ignore_errors=True)
        report["lost"] = results(case, scratch / "again")
    return report | {"whole": results(case, scratch / "whole")}


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--kills", type=int, default=100, help="SIGKILLs in all")
    parser.add_argument("--seed", type=int, default=0, help="of the moments of the kills")
    parser.add_argument("--cases", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.cases:
        print(json.dumps([run_case(case) for case in json.loads(options.cases)]))
        return 0
    cases = list(product((1, 2), READINGS))
    total = runs = different = 0
    with tempfile.TemporaryDirectory() as temporary:
        log = click_log(Path(temporary) / "clicks", ROWS, rows_per_file=ROWS // 3)
        for number, (ranks, reading) in enumerate(cases):
            report = kill_and_resume(
                log.files,
                Path(temporary) / str(number),
                ranks=ranks,
                kills=(options.kills - total) // (len(cases) - number),
                seed=options.seed + number,
                options=QUICK | READINGS[reading],
            )
            whole = report["whole"][0]
            other = sum(any(result != whole for result in results) for results in report["killed"])
            total, runs, different = total + report["kills"], runs + len(report["killed"]), different + other
            print(
                f"{ranks} rank{'s' * (ranks > 1)}, {reading}: {report['kills']} SIGKILLs in "
                f"{len(report['killed'])} runs of {report['seconds']:.1f} s, {other} selections differ",
                flush=True,
            )
    print(f"{total} SIGKILLs, {runs} runs resumed until they finished, {different} selections differ")
    return int(different > 0 or total < options.kills)


if __name__ == "__main__":
    sys.exit(main())
