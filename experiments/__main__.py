"""``python -m experiments accuracy masks``: run what is not done yet, then write the page of results."""

from __future__ import annotations

import argparse
import importlib.util
import os
import sys
from pathlib import Path

from experiments.page import EXPERIMENTS, write_page
from experiments.results_file import COMMITTED, Results, results_folder
from experiments.running import Slice, run_cells


def parse(words: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m experiments", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"{', '.join(EXPERIMENTS)}; by default all")
    parser.add_argument("--data", action="append", default=[], help="only this data set (may be repeated)")
    parser.add_argument("--setting", action="append", default=[], help="only this setting (may be repeated)")
    parser.add_argument("--seeds", type=int, help="how many trials: by default 5, 10 for wide")
    parser.add_argument("--epochs", type=float, help="shorter selections, to try things; needs --results")
    parser.add_argument("--results", type=Path, help="another folder for result files (or SEQATT_RESULTS)")
    asked = parser.parse_args(words)
    asked.names = asked.names or list(EXPERIMENTS)
    asked.results = asked.results or results_folder()
    for name in asked.names:
        if name not in EXPERIMENTS:
            parser.error(f"NAME: there is no experiment {name!r}; use {', '.join(EXPERIMENTS)}")
    if asked.seeds is not None and asked.seeds < 1:
        parser.error(f"--seeds: must be at least 1, got {asked.seeds}")
    if asked.epochs is not None and asked.results.resolve() == COMMITTED.resolve():
        parser.error("--epochs: a shortened run is no result; give --results a folder of its own")
    return asked


def _slice(name: str, asked: argparse.Namespace) -> Slice:
    seeds = asked.seeds or getattr(EXPERIMENTS[name], "SEEDS", Slice.seeds)
    return Slice(tuple(asked.data), tuple(asked.setting), seeds, asked.epochs)


def main(words: list[str] | None = None) -> int:
    asked = parse(words)
    try:
        plans = {name: EXPERIMENTS[name].cells(_slice(name, asked)) for name in asked.names}
        for name, cells in plans.items():
            results = Results(name, asked.results)
            new = run_cells(results, cells, EXPERIMENTS[name].run)
            print(f"{name}: {new} cells run, {len(cells) - new} were there already", flush=True)
    except KeyboardInterrupt:
        print("Stopped. What is done is kept; the same command goes on from there.", file=sys.stderr)
        return 130
    except (ValueError, RuntimeError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    if importlib.util.find_spec("matplotlib") is None:
        print("No page: charts need matplotlib; pip install 'seqatt[bench]'")
    else:
        print(f"Wrote {os.path.relpath(write_page(asked.results))}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
