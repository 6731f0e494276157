"""Seconds from a command to its answer, each in a fresh process: what they are spent on, and the least they could be.

    python benchmarks/waiting.py                              # every row, and a record
    python benchmarks/waiting.py --before OTHER/src           # the same with an older source, in turns with this one
    python benchmarks/waiting.py --only wine --only wide      # some rows
    python benchmarks/waiting.py --chart                      # seconds against rows and columns, with a chart
    python benchmarks/waiting.py --only mnist-gpu             # five trials on a GPU, first and again in the process

Parts of the time are those that the program reports; an older source that reports none has its total alone. The floor
of "import" is the import of torch (of Python alone for lists), of "read" the bytes of the file at the rate of a plain
read, of "prepare" three passes over the table at the rate of a copy in memory, of "select" the two products of the
first layer in every step, with all columns, at the measured rate of such a product: a selection that leaves columns out
can be below it. Peak memory is that of the whole process. On a GPU one process comes first and is not measured: it
leaves the compiled kernels on disk, and the files in the system's cache.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

PARTS = ("import", "read", "prepare", "select", "evaluate", "write")
SOURCE = Path(__file__).parents[1] / "src"
FIVE_METHODS = "sequential_attention,linear_omp,mutual_information,forest,random"
ROW_SWEEP = [(rows, 100) for rows in (1_000, 10_000, 100_000, 1_000_000)]
COLUMN_SWEEP = [(1_000, columns) for columns in (100, 1_000, 10_000, 50_000)]

# Runs a command and writes its seconds and peak memory. In a process of its own, which is small: the peak memory that
# the system reports of a process is at least that of the one that started it.
WATCH = """
import json, os, subprocess, sys, time
started = time.perf_counter()
child = subprocess.Popen(sys.argv[2:])
_, status, usage = os.wait4(child.pid, 0)
child.returncode = os.waitstatus_to_exitcode(status)
seconds = time.perf_counter() - started
with open(sys.argv[1], "w") as file:
    json.dump({"seconds": seconds, "peak_bytes": usage.ru_maxrss * 1024}, file)
sys.exit(child.returncode)
"""


class Row(NamedTuple):
    """One thing that a person does: a command, or ``select`` with this k on the file that ``make`` wrote."""

    make: Callable[[Path], Path | None]
    arguments: tuple[str, ...] = ()
    k: int = 0
    reach: float | None = None  # seconds on two idle cores


def make_wine(folder: Path) -> Path:
    return _write_bundled("load_wine", folder / "wine.csv")


def make_breast_cancer(folder: Path) -> Path:
    return _write_bundled("load_breast_cancer", folder / "breast_cancer.csv")


def _write_bundled(loader: str, path: Path) -> Path:
    from sklearn import datasets

    getattr(datasets, loader)(as_frame=True).frame.to_csv(path, index=False)
    return path


def make_adult(folder: Path) -> Path:
    """The Adult data set from the folder of data sets; else one of its shape and kinds, made up."""
    known = Path(os.environ.get("SEQATT_DATA_DIR", "")) / "extra" / "adult.parquet"
    if known.exists():
        return known
    import numpy as np
    import pyarrow as pa
    from pyarrow import parquet

    rng, rows = np.random.default_rng(0), 48_842
    numbers = {f"number{i}": rng.gamma(2.0, 10.0, rows) for i in range(6)}
    sizes = (9, 16, 7, 15, 6, 5, 2, 42)
    codes = {f"category{i}": rng.integers(size, size=rows) for i, size in enumerate(sizes)}
    score = numbers["number0"] / 15 + (codes["category1"] % 5) - (codes["category2"] % 3)
    texts = {name: pa.array([f"v{v}" for v in values]) for name, values in codes.items()}
    income = np.where(score + rng.normal(size=rows) > np.quantile(score, 0.76), ">50K", "<=50K")
    path = folder / "adult.parquet"
    parquet.write_table(pa.table({**numbers, **texts, "income": income}), path)
    return path


def make_numbers(rows: int, columns: int) -> Callable[[Path], Path]:
    """A float32 table with the target as its last column; ten columns matter."""

    def make(folder: Path) -> Path:
        import numpy as np

        rng = np.random.default_rng(0)
        table = rng.standard_normal((rows, columns + 1), dtype=np.float32)
        table[:, -1] = table[:, : min(10, columns)].sum(1) + rng.normal(size=rows) > 0
        path = folder / f"{rows}x{columns}.npy"
        np.save(path, table)
        return path

    return make


def make_frame(folder: Path) -> Path:
    import numpy as np
    import pandas as pd

    rng, rows = np.random.default_rng(0), 200_000
    numbers = {f"number{i}": rng.normal(size=rows) for i in range(20)}
    texts = {f"text{i}": rng.choice([f"value{j}" for j in range(3 * (i + 1))], rows) for i in range(20)}
    frame = pd.DataFrame({**numbers, **texts})
    frame["target"] = (frame.number0 + (frame.text3 == "value1") > 0.5).astype(int)
    path = folder / "frame.pickle"
    frame.to_pickle(path)
    return path


def make_nothing(folder: Path) -> None:
    return None


ROWS = {
    "methods": Row(make_nothing, ("methods",), reach=0.6),
    "demo": Row(make_nothing, ("demo",), reach=6.0),
    "wine": Row(make_wine, ("select", "{}", "--target", "target", "-k", "4"), reach=3.5),
    "wine-holdout": Row(
        make_wine, ("select", "{}", "--target", "target", "-k", "4", "--holdout", "0.3"), reach=6.0
    ),
    "adult": Row(make_adult, ("select", "{}", "--target", "income", "-k", "5"), reach=5.0),
    "adult-holdout": Row(
        make_adult, ("select", "{}", "--target", "income", "-k", "5", "--holdout", "0.2"), reach=12.0
    ),
    "compare": Row(
        make_breast_cancer,
        ("compare", "{}", "--target", "target", "-k", "5,10,20", "--methods", FIVE_METHODS),
    ),
    "wide": Row(make_numbers(500, 20_000), k=20, reach=8.0),
    "few-rows": Row(make_numbers(150, 8_000), k=4, reach=3.0),
    "frame": Row(make_frame, k=5, reach=7.0),
    "mnist-gpu": Row(make_nothing, k=50, reach=2.0),
}


def run_api(path: str, k: int) -> dict[str, Any]:
    """In a fresh process: import, read the file, select; the parts that ``select`` reports, if it does."""
    parts, last = {}, time.perf_counter()

    def end(part: str) -> None:
        nonlocal last
        parts[part], last = time.perf_counter() - last, time.perf_counter()

    import torch  # noqa: F401 (select would import it, in its own time)

    import seqatt

    select = seqatt.select
    end("import")
    if path.endswith(".npy"):
        import numpy as np

        table = np.load(path)
        X, y = table[:, :-1], table[:, -1].astype(int)
    elif path.endswith(".pickle"):
        import pandas as pd

        frame = pd.read_pickle(path)
        X, y = frame.drop(columns="target"), frame["target"]
    else:
        X, y = seqatt.datasets.load("mnist").split()[:2]
    end("read")
    if path == "mnist":
        seqatt.select_trials(X, y, k, seeds=range(5))
        end("first five trials")
        seqatt.select_trials(X, y, k, seeds=range(5))
        end("next five trials")
        return {"parts": parts}
    selection = select(X, y, k)
    end("select")
    parts |= getattr(selection, "timings", {})
    return {
        "parts": parts,
        "seconds": selection.seconds,
        "data_bytes": _bytes_of(X),
        "settings": selection.settings | {"columns": X.shape[1]},
    }


def _bytes_of(X: Any) -> int:
    return int(X.nbytes if hasattr(X, "nbytes") else X.memory_usage(deep=True).sum())


def measure(name: str, row: Row, path: Path | None, source: Path, out: Path) -> dict[str, Any]:
    """Wall-clock seconds, parts and peak memory of one fresh process that runs the code of ``source``."""
    selects = row.arguments[:1] == ("select",)
    if row.arguments:
        arguments = [str(path) if argument == "{}" else argument for argument in row.arguments]
        command = [sys.executable, "-m", "seqatt", *arguments, *(["--out", str(out)] if selects else [])]
    else:
        command = [sys.executable, __file__, "--child", str(path or "mnist"), "--k", str(row.k)]
    usage = out.with_suffix(".usage")
    done = subprocess.run(
        [sys.executable, "-S", "-c", WATCH, str(usage), *command],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        env=os.environ | {"PYTHONPATH": str(source)},
    )
    text = done.stdout
    if done.returncode:
        raise SystemExit(f"{name}: {' '.join(command)} failed\n{text}")
    result: dict[str, Any] = json.loads(usage.read_text()) | {"parts": {}}
    if not row.arguments:
        return json.loads(text.splitlines()[-1]) | {name: result[name] for name in ("seconds", "peak_bytes")}
    if reported := re.search(r"s in all: (.*)", text):
        result["parts"] = {part: float(s) for part, s in re.findall(r"(\w+) ([\d.]+)", reported.group(1))}
    if selects:
        selection = json.loads((out / "selection.json").read_text())
        settings = {
            name: value for name, value in selection["settings"].items() if name != "command"
        }  # has paths
        result["settings"] = settings | {"columns": len(selection["names"])}
    if path is not None:
        result["data_bytes"] = path.stat().st_size
    return result


def process_seconds(code: str) -> float:
    started = time.perf_counter()
    subprocess.run([sys.executable, "-c", code], check=True)
    return time.perf_counter() - started


def floors(name: str, path: Path | None, result: dict[str, Any], import_torch: float) -> dict[str, float]:
    """The least seconds of each part on this machine; parts whose floor is not known are left out."""
    import numpy as np
    import torch

    if name == "methods":
        return {"import": process_seconds("pass")}
    least = {"import": import_torch}
    if path is not None:
        started = time.perf_counter()
        path.read_bytes()
        least["read"] = time.perf_counter() - started
    settings = result.get("settings")
    if not settings or "steps" not in settings:
        return least
    cells, columns, batch = (
        settings["rows"] * settings["columns"],
        settings["columns"],
        settings["batch_size"],
    )
    sample = np.ones(min(cells, 1 << 26), dtype=np.float32)
    started = time.perf_counter()
    sample.copy()
    least["prepare"] = 3 * (time.perf_counter() - started) * cells / len(sample)
    x, w = torch.ones(batch, columns), torch.ones(columns, 67)
    product = float("inf")
    torch.set_num_threads(1)  # threads that wait for each other would make it slower, not faster
    for _ in range(30):  # the fastest: other processes make some of them slow
        started = time.perf_counter()
        x @ w
        product = min(product, time.perf_counter() - started)
    least["select"] = 2 * product * settings["steps"] * settings.get("ensemble", 1) / (os.cpu_count() or 1)
    return least


def measure_row(name: str, row: Row, sources: dict[str, Path], rounds: int, folder: Path) -> dict[str, Any]:
    """Both sources in turns; per source the round of median seconds."""
    path = row.make(folder)
    if name == "mnist-gpu":
        for version, source in sources.items():
            measure(name, row, path, source, folder / f"{name}-{version}-unmeasured")
    runs: dict[str, list[dict[str, Any]]] = {version: [] for version in sources}
    for round_ in range(rounds):
        for version, source in sources.items():
            out = folder / f"{name}-{version}-{round_}"
            runs[version].append(measure(name, row, path, source, out))
    middle = {
        version: sorted(done, key=lambda run: run["seconds"])[(len(done) - 1) // 2]
        for version, done in runs.items()
    }
    import_torch = statistics.median(process_seconds("import torch") for _ in range(rounds))
    every = {version: [run["seconds"] for run in done] for version, done in runs.items()}
    parts = {version: [run["parts"] for run in done] for version, done in runs.items()}
    least = floors(name, path, middle["after"], import_torch)
    return {"reach": row.reach, "floors": least, "all_seconds": every, "all_parts": parts, **middle}


def print_row(name: str, measured: dict[str, Any]) -> list[object]:
    after, before, least = measured["after"], measured.get("before"), measured["floors"]
    parts = [
        f"{after['parts'][part]:.1f}" + (f" ({least[part]:.2f})" if part in least else "")
        if part in after["parts"]
        else "-"
        for part in PARTS
    ]
    memory = f"{after['peak_bytes'] / 2**20:.0f}"
    data = f"{after['data_bytes'] / 2**20:.0f}" if "data_bytes" in after else "-"
    seconds = [None if before is None else before["seconds"], after["seconds"], measured["reach"]]
    return [name, *(None if s is None else f"{s:.1f}" for s in seconds), *parts, memory, data]


def draw_chart(points: dict[str, list[dict[str, Any]]]) -> None:
    import matplotlib
    from record_file import machine

    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "seqatt"
    from matplotlib import pyplot as plt

    figure, panels = plt.subplots(1, 2, figsize=(8, 3.2), sharey=True, layout="constrained")
    for axes, (title, sweep) in zip(panels, points.items(), strict=True):
        position = "rows" if "rows" in title.split(" ")[0] else "columns"
        axes.plot([p[position] for p in sweep], [p["seconds"] for p in sweep], "o-", label="in all")
        for part in ("import", "prepare", "select"):
            axes.plot([p[position] for p in sweep], [p["parts"].get(part) for p in sweep], ".:", label=part)
        axes.set(xscale="log", yscale="log", xlabel=title)
        axes.grid(alpha=0.3)
    panels[0].set_ylabel("seconds")
    panels[0].legend(fontsize=8)
    figure.suptitle(f"Selecting 10 features in a fresh process, {machine()}", fontsize=9)
    figure.savefig(Path(__file__).parent / "charts" / "waiting.svg", metadata={"Date": None})


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--before", type=Path, help="source folder of an older version")
    parser.add_argument("--only", action="append", choices=list(ROWS), help="a row; repeatable")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--chart", action="store_true")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    parser.add_argument("--k", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        print(json.dumps(run_api(options.child, options.k)))
        return
    import torch
    from record_file import print_table, write_record

    sources = ({"before": options.before.resolve()} if options.before else {}) | {"after": SOURCE}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if options.chart:
            points: dict[str, list[dict[str, Any]]] = {}
            for title, sweep in (
                ("rows (of 100 columns)", ROW_SWEEP),
                ("columns (of 1,000 rows)", COLUMN_SWEEP),
            ):
                for rows, columns in sweep:
                    row = Row(make_numbers(rows, columns), k=10)
                    measured = measure_row("chart", row, {"after": SOURCE}, 1, folder)["after"]
                    points.setdefault(title, []).append({"rows": rows, "columns": columns, **measured})
                    print(
                        f"{rows:,} x {columns:,}: {measured['seconds']:.1f} s, {measured['parts']}",
                        flush=True,
                    )
            draw_chart(points)
            write_record("waiting-chart", "python benchmarks/waiting.py --chart", points)
            return
        results = {}
        names = options.only or [n for n in ROWS if n != "mnist-gpu" or torch.cuda.is_available()]
        for each in names:
            results[each] = measure_row(each, ROWS[each], sources, options.rounds, folder)
            print(f"{each}: {results[each]['after']['seconds']:.1f} s", flush=True)
    headings = ["row", "before", "after", "reach", *PARTS, "peak MiB", "data MiB"]
    print("\nseconds, those of each part with its floor in brackets")
    print_table(headings, [print_row(each, measured) for each, measured in results.items()])
    arguments = "".join(f" --only {each}" for each in options.only or ())
    arguments += " --before OLDER/src" if options.before else ""
    name = "waiting-gpu" if options.only == ["mnist-gpu"] else "waiting"
    write_record(name, f"python benchmarks/waiting.py{arguments}", {"rows": results})


if __name__ == "__main__":
    main()
