"""``seqatt compare``: compare selection methods on the table of one or more files."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from seqatt.cli.arguments import (
    CATEGORICAL_HELP,
    FILES_HELP,
    NUMERIC_HELP,
    TASK_HELP,
    TaskName,
    interrupts_as_exceptions,
    make_folder,
    read_amount,
    read_names,
    read_settings,
    read_types,
)
from seqatt.cli.report import REPORT_HELP, check_page, write_comparison_page
from seqatt.cli.short_help import HelpAll
from seqatt.data.files.options import FileOptions
from seqatt.options import help_of

# Parameters that --help shows; --help-all shows all.
COMMON = (
    "files",
    "target",
    "k",
    "methods",
    "seeds",
    "test",
    "metric",
    "out",
    "settings",
    "report",
    "task",
    "ignore",
)
EXAMPLES = (
    "Examples:\n\n"
    "\b\n"
    "seqatt compare data.csv --target label -k 5,10,20 --out run/\n"
    "seqatt compare houses.parquet --target price -k 0.1,0.25 --methods linear_omp,random,all\n"
    "seqatt compare visits.csv --target ill -k 10 --split-groups patient --metric auc\n"
    "seqatt compare data.csv --target label -k 10 --set sequential_attention.epochs=20\n"
    "seqatt compare data.csv --target label -k 10 --methods sequential_attention,paper \\\n"
    "    --set paper.method=sequential_attention --set paper.recipe=paper\n\n"
    "With --out, a run that was stopped continues where it was, and methods, k and seeds can be added.\n\n"
    "Exit code: 0 done, 1 failed, 2 wrong usage, 130 interrupted (the finished runs are shown), "
    "143 stopped by SIGTERM."
)


def compare(
    files: Annotated[list[str], typer.Argument(metavar="FILE", help=FILES_HELP)],
    target: Annotated[str, typer.Option("--target", "-t", help="Column to predict; several with commas.")],
    k: Annotated[str, typer.Option("-k", help="Numbers of features, or fractions of them: 5,10,20.")],
    methods: Annotated[
        str | None,
        typer.Option(help="Methods, with commas; 'all' is every feature. By default a standard set."),
    ] = None,
    seeds: Annotated[int, typer.Option(min=1, help="Number of train/test splits, one seed each.")] = 5,
    test_size: Annotated[float, typer.Option(help="Share of rows to test on.")] = 0.25,
    test: Annotated[
        str | None, typer.Option(help="File, folder or pattern of test rows, used instead of splits.")
    ] = None,
    split_groups: Annotated[
        str | None, typer.Option(help="Column of groups (a patient, a day); rows of a group stay together.")
    ] = None,
    metric: Annotated[
        str | None,
        typer.Option(help="A metric of evaluate, such as auc; by default the main one of the task."),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Folder for comparison.json, .md and .svg.")] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            help="Option of a method: METHOD.OPTION=VALUE; repeatable. NAME.method=METHOD names another setting of it.",
        ),
    ] = None,
    report: Annotated[Path | None, typer.Option(help=REPORT_HELP)] = None,
    device: Annotated[str, typer.Option(help="auto, cpu or cuda.")] = "auto",
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the comparison as JSON and nothing else.")
    ] = False,
    task: Annotated[TaskName | None, typer.Option(metavar="TASK", help=TASK_HELP)] = None,
    quantile: Annotated[float, typer.Option(help=help_of(FileOptions, "quantile"))] = 0.5,
    ignore: Annotated[str, typer.Option(help="Columns that are not features (ids), with commas.")] = "",
    categorical: Annotated[str, typer.Option(help=CATEGORICAL_HELP)] = "",
    numeric: Annotated[str, typer.Option(help=NUMERIC_HELP)] = "",
    groups_of_rows: Annotated[
        str | None, typer.Option(help="Column of groups (a patient, a day) that are never divided.")
    ] = None,
    time: Annotated[
        str | None, typer.Option(help="Column of times: rows are held out from earlier rows only.")
    ] = None,
    weight: Annotated[str | None, typer.Option(help=help_of(FileOptions, "sample_weight"))] = None,
    balanced: Annotated[
        bool, typer.Option("--balanced", help="Give every class the same total weight.")
    ] = False,
    missing_indicator: Annotated[
        bool,
        typer.Option("--missing-indicator", help=help_of(FileOptions, "missing_indicator")),
    ] = False,
    memory: Annotated[str | None, typer.Option(help=help_of(FileOptions, "memory"))] = None,
    delimiter: Annotated[str | None, typer.Option(help=help_of(FileOptions, "delimiter"))] = None,
    decimal: Annotated[str | None, typer.Option(help=help_of(FileOptions, "decimal"))] = None,
    help_all: HelpAll = False,
) -> None:
    """Compare methods by the test metric of a network that is trained on the features they select.

    Prints the metric on held-out rows, seconds and stability of every method and k, and a conclusion.
    """
    amounts = [read_amount(amount.strip()) for amount in k.split(",")]
    options = _read_method_options(settings or [])
    from seqatt.cli.display import show_comparison
    from seqatt.comparison.compare import compare as compare_methods

    if out is not None:
        make_folder(out)
    if report is not None:
        check_page(report)
    with interrupts_as_exceptions():
        try:
            comparison = compare_methods(
                files,
                target,
                amounts,
                methods=None if methods is None else [name.strip() for name in methods.split(",")],
                seeds=range(seeds),
                options=options,
                test_size=test_size,
                split_groups=split_groups,
                X_test=test,
                metric=metric,
                device=device,
                progress=not as_json,
                out=out,
                task=None if task is None else task.value,
                quantile=quantile,
                groups_of_rows=groups_of_rows,
                time=time,
                sample_weight=weight,
                class_weight="balanced" if balanced else None,
                missing_indicator=missing_indicator,
                ignore=tuple(read_names(ignore)),
                column_types=read_types(categorical, numeric),
                memory=memory,
                delimiter=delimiter,
                decimal=decimal,
            )
        except KeyboardInterrupt:
            _print_interrupted()
            raise typer.Exit(130) from None
    if as_json:
        print(json.dumps(comparison.to_dict() | {"table": comparison.table()}))
    else:
        show_comparison(comparison, target)
    if out is not None:
        _write_report(comparison, out, quiet=as_json)
    if report is not None:
        write_comparison_page(report, comparison, target, quiet=as_json)
    if comparison.missing:
        _print_interrupted()
        raise typer.Exit(130)
    if all(run.error for run in comparison.runs):
        raise RuntimeError(f"every run failed; the first error is: {comparison.runs[0].error}")


def _read_method_options(given: list[str]) -> dict[str, dict[str, Any]]:
    """The options METHOD.OPTION=VALUE of --set, by method."""
    form = "METHOD.OPTION=VALUE, such as sequential_attention.epochs=20"
    options: dict[str, dict[str, Any]] = {}
    for name, value in read_settings(given, form).items():
        method, dot, option = name.partition(".")
        if not (dot and method and option):
            raise typer.BadParameter(f"{name!r} is not of the form {form}", param_hint="--set")
        options.setdefault(method, {})[option] = value
    return options


def _write_report(comparison: Any, out: Path, *, quiet: bool) -> None:
    """Write the page and the chart; comparison.json was written while the runs were made."""
    from seqatt.json_files import write_atomically

    names = ["comparison.json", "comparison.md"]
    try:
        write_atomically(out / "comparison.svg", comparison.to_svg())
        names.append("comparison.svg")
    except ImportError as error:
        print(f"note: no chart; {error}", file=sys.stderr)
    image = "\n![the metric against k](comparison.svg)\n" if len(names) == 3 else ""
    write_atomically(out / "comparison.md", comparison.to_markdown() + image)
    if not quiet:
        print(f"Wrote {', '.join(str(out / name) for name in names)}")


def _print_interrupted() -> None:
    print("interrupted", file=sys.stderr)
