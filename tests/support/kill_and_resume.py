"""Runs that are killed: a process that starts others, one for each rank, and ends them by SIGKILL.

    python kill_and_resume.py '{"files": ..., "scratch": ..., "ranks": 1, "kills": 10, "options": {...}}'

Children are forked from here, where everything is imported and nothing has run yet, so that a life costs a
fraction of a second. Prints one line of JSON: the answer of an undisturbed run, and of each that was killed
and resumed until it came to its end.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import sys
import time
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist

import seqatt
import seqatt.streaming.select_files
from seqatt.streaming.sums import accumulate as gathering

PATIENCE = 5  # seconds that a rank waits for one that was killed before they met


def answer(selection: seqatt.Selection) -> dict:
    """All but the clock and the machine."""
    plain = selection.to_dict()
    history = [entry | {"seconds": 0} for entry in plain["history"]]
    return {name: plain[name] for name in ("features", "scores", "ranking")} | {"history": history}


def live(case: dict, checkpoint: Path | None, out: Path, rank: int, store: Path) -> None:
    """One rank's life, in a child."""
    torch.set_num_threads(1)
    gathering.AT_ONCE = 32  # else all rows come at once
    if case["ranks"] > 1:
        wait = timedelta(seconds=PATIENCE)
        dist.init_process_group(
            "gloo", init_method=f"file://{store}", rank=rank, world_size=case["ranks"], timeout=wait
        )
    about = {} if checkpoint is None else {"checkpoint": checkpoint, "resume": True}
    selection = seqatt.select(
        case["files"], target="click", device="cpu", rank_timeout=PATIENCE, **case["options"], **about
    )
    (out / f"{rank}.json").write_text(json.dumps(answer(selection)))


def start(case: dict, checkpoint: Path | None, out: Path) -> list[int]:
    out.mkdir(parents=True, exist_ok=True)
    store = out / f"store-{random.random()}"
    children = []
    for rank in range(case["ranks"]):
        child = os.fork()
        if child == 0:
            code = 1
            try:
                live(case, checkpoint, out, rank, store)
                code = 0
            except BaseException as error:
                print(f"rank {rank}: {type(error).__name__}: {error}", file=sys.stderr, flush=True)
            os._exit(code)
        children.append(child)
    return children


def codes(children: list[int]) -> list[int]:
    return [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]


def answers(case: dict, out: Path) -> list[dict]:
    return [json.loads((out / f"{rank}.json").read_text()) for rank in range(case["ranks"])]


def main() -> None:
    case = json.loads(sys.argv[1])
    scratch = Path(case["scratch"])
    random.seed(case.get("seed", 0))
    started = time.monotonic()
    undisturbed = codes(start(case, None, scratch / "whole"))
    whole = time.monotonic() - started
    assert undisturbed == [0] * case["ranks"], undisturbed
    ends, found = [], []
    while ends.count(-signal.SIGKILL) < case["kills"]:
        number = len(found)
        out, checkpoint = scratch / f"out{number}", scratch / f"kept{number}"
        ended = [-1]
        while any(ended):
            children = start(case, checkpoint, out)
            time.sleep(random.uniform(0.3, 1.0) * whole)
            how = random.choice([signal.SIGKILL, signal.SIGKILL, signal.SIGTERM])
            for child in children if random.random() < 0.5 else [random.choice(children)]:
                os.kill(child, how)
            ended = codes(children)
            ends += ended
        found.append(answers(case, out))
    report = {"seconds": whole, "ends": ends, "killed": found}
    if "lost" in case:  # a finished run, of which a folder is lost, is asked again
        for out in ("first", "again"):
            ended = codes(start(case, scratch / "finished", scratch / out))
            assert not any(ended), (out, ended)
            shutil.rmtree(scratch / "finished" / case["lost"], ignore_errors=True)
        report["lost"] = answers(case, scratch / "again")
    print(json.dumps(report | {"whole": answers(case, scratch / "whole")}))


if __name__ == "__main__":
    main()
