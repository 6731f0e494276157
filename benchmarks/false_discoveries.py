"""Realised false discovery rate and power of ``select(..., fdr=...)`` on generated problems, beside other methods.

    python benchmarks/false_discoveries.py --draws 100 --processes 16 --seconds 600 --out results.jsonl
    python benchmarks/false_discoveries.py --out results.jsonl --report
    pip install knockpy hidimstat packaging Boruta
    python benchmarks/false_discoveries.py --peers --draws 20 --out peers.jsonl

Every draw is a task of its own, of one thread; its result is appended to ``--out`` as a line of JSON when it is done,
and a second run of the command continues the first. Draw 0 of all cells comes first, then draw 1, and so on. One
selection gives the three nominal rates, because only the threshold differs. Methods: any of ``seqatt.methods()``,
``lasso`` (the order in which the features and the same knockoffs enter the LASSO), and, where they are installed,
``knockpy`` and ``hidimstat`` (their Gaussian knockoffs, one per feature, and the LASSO) and ``boruta``, which has no
nominal rate. ``--peers`` runs these beside the first two on four cells. A record is written of what ``--out`` has then.
They have their defaults, but for shrinkage in knockpy and Boruta's random forest, which is that of its example.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import time
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from discovery_problems import CELLS, PEER_CELLS, Cell
from numpy.typing import NDArray
from record_file import write_record

RATES = (0.05, 0.1, 0.2)
NEEDS = {"lasso": "sklearn", "knockpy": "knockpy", "hidimstat": "hidimstat", "boruta": "boruta"}
PEERS = ("knockpy", "hidimstat", "boruta")
NOTES = "Boruta has no nominal rate: its features are the same at every rate."
Chosen = list[list[int]]  # columns per rate


def by_knockoffs(statistics: NDArray[np.float64], copies: int) -> Chosen:
    """The columns that the filter chooses at each rate."""
    from seqatt.api.knockoffs.discoveries import choose_threshold

    chosen = []
    for rate in RATES:
        threshold = choose_threshold(statistics, rate, copies).threshold
        chosen.append(np.flatnonzero(statistics >= threshold).tolist())
    return chosen


def run_select(method: str, X: Any, y: Any, draw: int, task: str, device: str) -> Chosen:
    import seqatt

    selection = seqatt.select(X, y, fdr=RATES[0], method=method, seed=draw, device=device, task=task)
    found = selection.false_discoveries
    assert found is not None
    return by_knockoffs(np.array(found["statistics"]), found["knockoffs"])


def run_lasso(X: Any, y: Any, draw: int, task: str) -> Chosen:
    from sklearn.linear_model import lasso_path

    from seqatt.api.knockoffs.discoveries import COPIES, knockoff_statistics
    from seqatt.api.knockoffs.knockoff_table import make_knockoff_table
    from seqatt.data.tables.table_data import read_table_data

    data = read_table_data(X, y, task=task)
    knockoffs = make_knockoff_table(data, COPIES, draw)
    columns = np.asarray(knockoffs.table.columns, dtype=np.float64)
    _, coefficients, _ = lasso_path(columns, y - np.mean(y), eps=1e-2, n_alphas=100)
    enters = (coefficients != 0) * np.arange(100, 0, -1)
    size = np.abs(coefficients).max(1)
    at = np.zeros((knockoffs.table.features, 2))
    for feature, place, largest in zip(knockoffs.table.feature_of, enters.max(1), size, strict=True):
        at[feature] = max(tuple(at[feature]), (place, largest))
    order = np.lexsort((-at[:, 1], -at[:, 0])).tolist()
    statistics = knockoff_statistics(knockoffs, [f for f in order if at[f, 0]])
    by_user = np.empty(data.features)
    by_user[data.user_position] = statistics
    return by_knockoffs(by_user, COPIES)


def run_knockpy(X: Any, y: Any, draw: int, task: str) -> Chosen:
    from knockpy.knockoff_filter import KnockoffFilter

    np.random.seed(draw)  # noqa: NPY002 (knockpy has no other seed)
    filter = KnockoffFilter(ksampler="gaussian", fstat="lasso" if task == "regression" else "logistic")
    filter.forward(np.asarray(X), np.asarray(y, dtype=float), fdr=RATES[0], shrinkage="ledoitwolf")
    return by_knockoffs(np.asarray(filter.W, dtype=np.float64), 1)


def run_hidimstat(X: Any, y: Any, draw: int, task: str) -> Chosen:
    from hidimstat import ModelXKnockoff

    assert task == "regression"  # its statistic is that of LassoCV
    knockoffs = ModelXKnockoff(random_state=draw).fit(np.asarray(X), np.asarray(y))
    knockoffs.importance(np.asarray(X), np.asarray(y))
    return by_knockoffs(np.asarray(knockoffs.importances_, dtype=np.float64).reshape(-1), 1)


def run_boruta(X: Any, y: Any, draw: int, task: str) -> Chosen:
    from boruta import BorutaPy
    from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

    forest = (RandomForestRegressor if task == "regression" else RandomForestClassifier)(
        max_depth=5, n_jobs=1
    )
    boruta = BorutaPy(forest, n_estimators="auto", random_state=draw)
    return [np.flatnonzero(boruta.fit(np.asarray(X), np.asarray(y)).support_).tolist()] * len(RATES)


RUNNERS: dict[str, Callable[[Any, Any, int, str], Chosen]] = {
    "lasso": run_lasso,
    "knockpy": run_knockpy,
    "hidimstat": run_hidimstat,
    "boruta": run_boruta,
}


def run_task(cell: Cell, draw: int, method: str, device: str) -> dict[str, Any]:
    """One draw of one cell: false and true choices at every rate."""
    warnings.simplefilter("ignore")
    X, y, signals = cell.draw(draw)
    started = time.process_time()
    if method in RUNNERS:
        chosen = RUNNERS[method](X, y, draw, cell.task)
    else:
        chosen = run_select(method, X, y, draw, cell.task, device)
    return {
        "cell": cell.name,
        "draw": draw,
        "method": method,
        "signals": len(signals),
        "false": [len(set(some) - signals) for some in chosen],
        "true": [len(signals.intersection(some)) for some in chosen],
        "cpu_seconds": round(time.process_time() - started, 3),
    }


def _init_worker() -> None:
    import torch

    torch.set_num_threads(1)


def run_all(options: argparse.Namespace, cells: list[Cell], methods: list[str]) -> None:
    """Run what ``--out`` does not have yet, until all is done or the time is over."""
    done = {(r["cell"], r["draw"], r["method"]) for r in read_results(options.out)}
    tasks: Iterator[tuple[Cell, int, str]] = (
        (cell, draw, method)
        for draw in range(options.first, options.first + options.draws)
        for cell in cells
        for method in methods
        if (cell.name, draw, method) not in done
        and (cell.values == "normal" or method not in PEERS)
        and (cell.task == "regression" or method != "hidimstat")
    )
    os.environ |= {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    end, count = time.monotonic() + options.seconds, 0
    context = multiprocessing.get_context("spawn")
    with (
        ProcessPoolExecutor(options.processes, mp_context=context, initializer=_init_worker) as pool,
        options.out.open("a", encoding="utf-8") as file,
    ):
        running: dict[Future[dict[str, Any]], tuple[Cell, int, str]] = {}
        while True:
            while (
                len(running) < 2 * options.processes
                and time.monotonic() < end
                and (task := next(tasks, None))
            ):
                running[pool.submit(run_task, *task, options.device)] = task
            if not running or time.monotonic() > end + 30:
                break
            for future in wait(running, timeout=1, return_when=FIRST_COMPLETED).done:
                cell, draw, method = running.pop(future)
                if future.exception() is not None:
                    print(f"{cell.name}, draw {draw}, {method}: {future.exception()!r}")
                    continue
                file.write(json.dumps(future.result()) + "\n")
                file.flush()
                count += 1
        pool.shutdown(cancel_futures=True)
    print(f"{count} draws in {options.seconds - (end - time.monotonic()):.0f} s\n")


def read_results(path: Path) -> list[dict[str, Any]]:
    """The lines of the file; a last line that was not written whole is left out."""
    results = []
    for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else []:
        try:
            results.append(json.loads(line))
        except json.JSONDecodeError:
            print(f"{path}: a line that was not written whole is left out")
    return results


def report(results: list[dict[str, Any]], cells: list[Cell], methods: list[str]) -> None:
    """Print a table per method; a rate more than two standard errors above the nominal one is marked."""
    for method in methods:
        rows = []
        for cell in cells:
            own = [r for r in results if r["cell"] == cell.name and r["method"] == method]
            if own:
                rows.append(f"| {cell.name} | {len(own)} | {' | '.join(summarise(own))} |")
        if rows:
            print(f"**{method}**: realised rate ± standard error, power\n")
            print(f"| problem | draws | {' | '.join(f'at {rate}' for rate in RATES)} | CPU s |")
            print("|---|---|" + "---|" * (len(RATES) + 1), *rows, sep="\n", end="\n\n")


def record(results: list[dict[str, Any]], cells: list[Cell]) -> list[dict[str, Any]]:
    """Per cell and method: draws, means of realised rates and their standard errors, power, CPU seconds per draw."""
    rows = []
    for name in [cell.name for cell in cells]:
        for method in dict.fromkeys(r["method"] for r in results if r["cell"] == name):
            own = [r for r in results if r["cell"] == name and r["method"] == method]
            false, true = (np.array([r[side] for r in own], dtype=np.float64) for side in ("false", "true"))
            row = {"cell": name, "method": method, "draws": len(own)}
            realised = false / np.maximum(1, false + true)
            row["realised"] = realised.mean(0).round(4).tolist()
            if len(own) > 1:
                row["standard_error"] = (realised.std(0, ddof=1) / np.sqrt(len(own))).round(4).tolist()
            row["power"] = (true / max(1, own[0]["signals"])).mean(0).round(4).tolist()
            row["cpu_seconds"] = round(float(np.mean([r["cpu_seconds"] for r in own])), 2)
            rows.append(row)
    return rows


def summarise(results: list[dict[str, Any]]) -> list[str]:
    """Of the draws of one cell: rate and power at every nominal rate, and seconds per draw."""
    texts = []
    for place, rate in enumerate(RATES):
        false = np.array([r["false"][place] for r in results], dtype=np.float64)
        true = np.array([r["true"][place] for r in results], dtype=np.float64)
        realised = false / np.maximum(1, false + true)
        error = realised.std(ddof=1) / np.sqrt(len(realised)) if len(realised) > 1 else np.nan
        signals = results[0]["signals"]
        power = f", {(true / signals).mean():.2f}" if signals else ""
        mark = " (!)" if realised.mean() > rate + 2 * error else ""
        texts.append(f"{realised.mean():.3f} ± {error:.3f}{mark}{power}")
    return [*texts, f"{np.mean([r['cpu_seconds'] for r in results]):.1f}"]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--draws", type=int, default=100, help="Draws per cell.")
    parser.add_argument("--first", type=int, default=0, help="Number of the first draw.")
    parser.add_argument("--processes", type=int, default=os.cpu_count())
    parser.add_argument(
        "--seconds", type=float, default=600, help="No draw is started after so many seconds."
    )
    parser.add_argument(
        "--methods", help="With commas; by default sequential_attention, lasso and the peers if any."
    )
    parser.add_argument("--cells", default="", help="Only cells whose name has this text.")
    parser.add_argument(
        "--peers", action="store_true", help="The other libraries too, on cells for them; a record."
    )
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--out", type=Path, default=Path("false_discoveries.jsonl"))
    parser.add_argument("--report", action="store_true", help="Run nothing, print what there is.")
    options = parser.parse_args()
    default = ",".join(("sequential_attention", "lasso", *(PEERS if options.peers else ())))
    requested = (options.methods or default).split(",")
    methods = [m for m in requested if m not in NEEDS or find_spec(NEEDS[m]) is not None]
    for missing in sorted(set(requested) - set(methods)):
        print(f"{missing}: is not installed, and left out")
    cells = [cell for cell in (PEER_CELLS if options.peers else CELLS) if options.cells in cell.name]
    if not options.report:
        run_all(options, cells, methods)
    results = read_results(options.out)
    report(results, cells, methods)
    facts: dict[str, Any] = {"rates": RATES, "results": record(results, cells)}
    command = f"python benchmarks/false_discoveries.py --draws {options.draws}"
    if options.peers:
        versions = {method: version(method) for method in PEERS if find_spec(NEEDS[method]) is not None}
        facts = {"notes": NOTES, "versions": versions} | facts
        write_record("false-discoveries-peers", f"{command} --peers", facts)
    else:
        write_record("false-discoveries", f"{command} --methods {','.join(methods)}", facts)


if __name__ == "__main__":
    main()
