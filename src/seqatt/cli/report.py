"""``seqatt report``: the page of a saved selection or comparison; also for --report of other commands."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from seqatt.cli.arguments import FILES_HELP
from seqatt.validation import check_page_name

if TYPE_CHECKING:
    from seqatt.selection import Selection

EXAMPLES = (
    "Examples:\n\n"
    "  seqatt report run/\n\n"
    "  seqatt report run/ --data data.csv\n\n"
    "  seqatt report selection.json --image-shape 28,28 --out digits.html\n\n"
    "  seqatt report run/ --json | jq .summary"
)
# Looked for in a folder, in this order.
NAMES = ("selection.json", "comparison.json", "selection.partial.json")
MAX_ROWS, MAX_CELLS = 50_000, 50_000_000  # of a table that is read for distributions and correlations
REPORT_HELP = "Write a report to this file: one HTML page with charts, such as report.html."
IMAGE_HELP = "Height and width of the images whose pixels are the features, such as 28,28; for the report."


def report(
    path: Annotated[
        Path, typer.Argument(metavar="RUN", help="Folder of --out, selection.json or comparison.json.")
    ],
    out: Annotated[
        Path | None, typer.Option(help="Page to write; by default report.html beside the run.")
    ] = None,
    data: Annotated[
        list[str] | None,
        typer.Option(
            help=f"The files of the selection, for distributions and correlations; repeatable. {FILES_HELP}"
        ),
    ] = None,
    target: Annotated[
        str | None,
        typer.Option(
            "--target", "-t", help="The column that was predicted; by default the one that was selected for."
        ),
    ] = None,
    image_shape: Annotated[str | None, typer.Option(help=IMAGE_HELP)] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the facts as JSON and write no page.")
    ] = False,
) -> None:
    """Write the report of a run: one HTML page, without network, with the answer, charts, settings and the command.

    Exit code: 0 done, 1 failed (one line on stderr says why), 2 wrong usage.
    """
    shape = read_shape(image_shape)
    if out is not None:
        check_page_name("--out", out)
    run_file = _find_run(path)
    facts = _read_facts(run_file, data or [], target, shape)
    if as_json:
        print(json.dumps(facts))
        return
    from seqatt.report.page.html_page import make_page

    _write(run_file.parent / "report.html" if out is None else out, make_page(facts))


def _find_run(path: Path) -> Path:
    """The file of a run: itself, or the one in a folder."""
    if not path.is_dir():
        if not path.exists():
            raise ValueError(f"RUN: {path} does not exist")
        return path
    found = [path / name for name in NAMES if (path / name).exists()]
    if not found:
        raise ValueError(f"RUN: {path} has no {', '.join(NAMES[:2])}; name the folder given as --out")
    if found[0].name == NAMES[0] and path / NAMES[1] in found:
        raise ValueError(f"RUN: {path} has a selection and a comparison; name one of the files")
    return found[0]


def _read_facts(
    run_file: Path, data: list[str], target: str | None, shape: tuple[int, int] | None
) -> dict[str, Any]:
    from seqatt.json_files import read_json
    from seqatt.selection import Selection

    if "runs" in read_json(run_file, "a saved selection or comparison"):
        from seqatt.comparison.comparison import Comparison
        from seqatt.report.facts.comparison_facts import comparison_facts

        return comparison_facts(Comparison.load(run_file), target=target)
    selection = Selection.load(run_file)
    target = target or selection.settings.get("target")
    if data and not target:
        raise typer.BadParameter(
            "needs the column that was predicted; add --target NAME", param_hint="--data"
        )
    evaluation = _read_evaluation(run_file.parent / "evaluation.json", selection)
    return make_facts(selection, evaluation, data, target, {}, shape)


def _read_evaluation(path: Path, selection: Selection) -> dict[str, Any] | None:
    """The metrics on held-out rows beside a selection; None if there are none, or those of another selection."""
    from seqatt.json_files import read_json

    if not path.exists():
        return None
    evaluation = read_json(path, "a saved evaluation")
    if wrong := _check_evaluation(evaluation):
        raise ValueError(
            f"{path}: not a saved evaluation ({wrong}); remove it, or select again with --holdout"
        )
    if evaluation.get("selection") == identify(selection):
        return evaluation
    print(f"{path}: not known to be of this selection, so the report leaves it out", file=sys.stderr)
    return None


def identify(selection: Selection) -> dict[str, Any]:
    """The entries of evaluation.json that identify a selection."""
    return {"indices": selection.indices.tolist(), "method": selection.method, "seed": selection.seed}


def _check_evaluation(evaluation: dict[str, Any]) -> str | None:
    """The error in the contents of evaluation.json; None if there is none."""
    from seqatt.report.facts.selection_facts import SETS

    sets, rows = evaluation.get("holdout"), evaluation.get("rows")
    if not isinstance(sets, dict) or "selected" not in sets or not set(sets) <= set(SETS):
        return "'holdout' must have the metrics of 'selected', and may have those of 'random' and 'all'"
    if not isinstance(rows, str | None):
        return "'rows' must be a text"
    metrics = _metric_names(sets["selected"])
    for name, scores in sets.items():
        if not metrics or _metric_names(scores) != metrics or not isinstance(scores.get("features"), int):
            return f"{name!r} must have a number of features, and the same metrics as 'selected'"
        for metric in metrics:
            values = scores[metric]
            if not (isinstance(values, list) and all(isinstance(v, int | float | None) for v in values)):
                return f"{metric!r} of {name!r} must be a list of numbers"
    return None


def _metric_names(scores: Any) -> set[str]:
    return set(scores) - {"features", "seeds"} if isinstance(scores, dict) else set()


def make_facts(
    selection: Selection,
    evaluation: dict[str, Any] | None,
    paths: list[str],
    target: str | None,
    options: dict[str, Any],
    shape: tuple[int, int] | None,
) -> dict[str, Any]:
    """The facts of a selection; with the paths of its files also those of their rows."""
    from seqatt.report.facts.selection_facts import selection_facts

    rows = None
    if paths and selection.features:
        from seqatt.report.facts.data_facts import data_facts

        rows = data_facts(selection, *_read_rows(paths, target, options), image=shape is not None)
    named = None if target is None else ", ".join(target.split(","))
    return selection_facts(selection, evaluation=evaluation, data=rows, image_shape=shape, target=named)


def _read_rows(paths: list[str], target: str | None, options: dict[str, Any]) -> tuple[Any, Any]:
    """Rows at equal distances over the files, as X and y; no y for several targets."""
    from seqatt.data.files.file_columns import open_columns
    from seqatt.data.files.options import FileOptions
    from seqatt.data.files.whole_files import count_rows, sample_rows
    from seqatt.options import names_of

    file_options = FileOptions(**{n: value for n, value in options.items() if n in names_of(FileOptions)})
    columns = open_columns(paths, target, file_options)
    count = min(MAX_ROWS, max(1000, MAX_CELLS // max(1, len(columns.types))))
    table = sample_rows(columns.files, columns.kinds, columns.types, count, 0, file_options)
    table = columns.decide(table, count_rows(columns.files, columns.types, columns.kinds))[1]
    return table, columns.targets[0] if len(columns.targets) == 1 else None


def write_selection_page(
    path: Path,
    selection: Selection,
    evaluation: dict[str, Any] | None,
    paths: list[str],
    target: str | None,
    options: dict[str, Any],
    image_shape: str | None,
    *,
    quiet: bool,
) -> None:
    """The page of --report of ``seqatt select``."""
    from seqatt.report.page.html_page import make_page

    facts = make_facts(selection, evaluation, paths, target, options, read_shape(image_shape))
    _write(path, make_page(facts), quiet=quiet, option="--report")


def write_comparison_page(path: Path, comparison: Any, target: str, *, quiet: bool) -> None:
    """The page of --report of ``seqatt compare``."""
    from seqatt.report.facts.comparison_facts import comparison_facts
    from seqatt.report.page.html_page import make_page

    facts = comparison_facts(comparison, target=", ".join(target.split(","))) | {"command": this_command()}
    _write(path, make_page(facts), quiet=quiet, option="--report")


def check_page(path: Path) -> None:
    """Make the folder of a page, and refuse a page that cannot be written, before any work."""
    if not path.is_dir():
        check_page_name("--report", path)
    check_writable(path, "--report", "report.html")


def check_writable(path: Path, option: str, example: str) -> None:
    """Make the folder of a file, and refuse a file that cannot be written."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ValueError(f"{option}: cannot write to {path.parent} ({error.strerror})") from None
    if path.is_dir():
        raise ValueError(f"{option}: {path} is a folder; name a file such as {path / example}")


def this_command() -> str:
    """The command that runs, as it can be typed again."""
    return shlex.join(["seqatt", *sys.argv[1:]])


def read_shape(text: str | None) -> tuple[int, int] | None:
    """The height and width of --image-shape."""
    if text is None:
        return None
    try:
        height, width = (int(size) for size in text.split(","))
    except ValueError:
        message = f"{text!r} is not a height and a width such as 28,28"
        raise typer.BadParameter(message, param_hint="--image-shape") from None
    return height, width


def _write(path: Path, page: str, *, quiet: bool = False, option: str = "--out") -> None:
    from seqatt.json_files import write_atomically

    try:
        write_atomically(path, page)
    except OSError as error:
        raise ValueError(f"{option}: cannot write {path} ({error.strerror})") from None
    if not quiet:
        print(f"Wrote {path}")
