"""``python -m experiments accuracy masks``: execute the runs that are not recorded yet, then write the page."""

from __future__ import annotations

import argparse
import importlib.util
import os
import sys
import warnings
from pathlib import Path

from experiments.page import EXPERIMENTS, write_page
from experiments.results_file import COMMITTED, Results, results_folder
from experiments.runs import RunRequest, evaluate_again, execute_runs

# Experiments that record features, and can evaluate them without selecting them again.
EVALUATED_AGAIN = [name for name, experiment in EXPERIMENTS.items() if hasattr(experiment, "evaluate_again")]


def parse_arguments(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m experiments", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"{', '.join(EXPERIMENTS)}; default: all")
    parser.add_argument("--data", action="append", default=[], help="only this data set (may be repeated)")
    parser.add_argument("--setting", action="append", default=[], help="only this setting (may be repeated)")
    parser.add_argument("--seeds", type=int, help="number of trials; default: 5, for wide 10")
    parser.add_argument(
        "--jobs", type=int, default=1, help="processes of one thread each; not where seconds are measured"
    )
    parser.add_argument("--epochs", type=float, help="shorter selections, for a trial run; needs --results")
    parser.add_argument(
        "--evaluate-again",
        action="store_true",
        help="only evaluate recorded features, with today's evaluation",
    )
    parser.add_argument("--results", type=Path, help="another folder for results files (or SEQATT_RESULTS)")
    options = parser.parse_args(arguments)
    options.names = options.names or list(EXPERIMENTS)
    options.results = options.results or results_folder()
    for name in options.names:
        if name not in EXPERIMENTS:
            parser.error(f"NAME: there is no experiment {name!r}; use {', '.join(EXPERIMENTS)}")
    if options.seeds is not None and options.seeds < 1:
        parser.error(f"--seeds: must be at least 1, got {options.seeds}")
    if options.jobs < 1:
        parser.error(f"--jobs: must be at least 1, got {options.jobs}")
    if options.evaluate_again and not set(options.names) <= set(EVALUATED_AGAIN):
        parser.error(f"--evaluate-again: is for {', '.join(EVALUATED_AGAIN)}, whose features are recorded")
    if options.epochs is not None and options.results.resolve() == COMMITTED.resolve():
        parser.error(
            "--epochs: shortened runs must not mix with full results; name another folder in --results"
        )
    return options


def make_request(name: str, options: argparse.Namespace) -> RunRequest:
    seeds = options.seeds or getattr(EXPERIMENTS[name], "SEEDS", RunRequest.seeds)
    return RunRequest(tuple(options.data), tuple(options.setting), seeds, options.epochs)


def main(arguments: list[str] | None = None) -> int:
    options = parse_arguments(arguments)
    if options.epochs is not None:  # a trial run is meant to be too short
        warnings.filterwarnings("ignore", message="epochs:")
    try:
        plans = {name: EXPERIMENTS[name].plan_runs(make_request(name, options)) for name in options.names}
        for name, runs in plans.items():
            results = Results(name, options.results)
            if options.evaluate_again:
                count = evaluate_again(results, make_request(name, options), EXPERIMENTS[name].evaluate_again)
                print(f"{name}: evaluated the features of {count} runs again", flush=True)
                continue
            executed = execute_runs(results, runs, EXPERIMENTS[name].execute, options.jobs)
            print(
                f"{name}: executed {executed} of {len(runs)} runs; the others are already recorded",
                flush=True,
            )
    except KeyboardInterrupt:
        print("Stopped. Finished runs are recorded; the same command resumes.", file=sys.stderr)
        return 130
    except (ValueError, RuntimeError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    if importlib.util.find_spec("matplotlib") is None:
        print("No page written: charts need matplotlib; pip install 'seqatt[bench]'")
    else:
        print(f"Wrote {os.path.relpath(write_page(options.results))}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
