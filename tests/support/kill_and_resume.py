"""Runs that are killed: a process that starts one child per rank and ends them by SIGKILL or SIGTERM.

    python kill_and_resume.py '{"files": ..., "scratch": ..., "ranks": 1, "kills": 10, "options": {...}}'

Children are forked from this process, where everything is imported and nothing has run yet, so that starting one
takes a fraction of a second. Prints one line of JSON: the result of an undisturbed run, and of each run that was
killed and resumed until it finished. Tests call it through ``kill_and_resume``.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist

import seqatt
import seqatt.streaming.select_files
from seqatt.streaming.sums import accumulate

TIMEOUT = 5  # seconds that a rank waits for one that was killed before they connected


def kill_and_resume(files: list[Path], scratch: Path, **case: Any) -> dict[str, Any]:
    """Run this module as a script and return what it prints."""
    arguments = {"files": [str(path) for path in files], "scratch": str(scratch), "ranks": 1} | case
    done = subprocess.run(
        [sys.executable, __file__, json.dumps(arguments)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout))


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


def main() -> None:
    case = json.loads(sys.argv[1])
    scratch = Path(case["scratch"])
    random.seed(case.get("seed", 0))
    started = time.monotonic()
    undisturbed = exit_codes(start(case, None, scratch / "whole"))
    seconds = time.monotonic() - started
    assert undisturbed == [0] * case["ranks"], undisturbed
    all_codes, killed = [], []
    while all_codes.count(-signal.SIGKILL) < case["kills"]:
        number = len(killed)
        out, checkpoint = scratch / f"out{number}", scratch / f"checkpoint{number}"
        codes = [-1]
        while any(codes):
            children = start(case, checkpoint, out)
            time.sleep(random.uniform(0.3, 1.0) * seconds)
            how = random.choice([signal.SIGKILL, signal.SIGKILL, signal.SIGTERM])
            for child in children if random.random() < 0.5 else [random.choice(children)]:
                os.kill(child, how)
            codes = exit_codes(children)
            all_codes += codes
        killed.append(results(case, out))
    report = {"seconds": seconds, "exit_codes": all_codes, "killed": killed}
    if "lost" in case:  # repeat a finished run of which one folder was deleted
        for out in ("first", "again"):
            codes = exit_codes(start(case, scratch / "finished", scratch / out))
            assert not any(codes), (out, codes)
            shutil.rmtree(scratch / "finished" / case["lost"], ignore_errors=True)
        report["lost"] = results(case, scratch / "again")
    print(json.dumps(report | {"whole": results(case, scratch / "whole")}))


if __name__ == "__main__":
    main()
