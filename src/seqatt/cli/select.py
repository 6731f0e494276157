"""``seqatt select``: the features of a file, or of many files, that predict a column best."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from seqatt.algorithms.answer_options import AUTO, AnswerOptions, needs_k
from seqatt.algorithms.neural.attention_options import AttentionOptions
from seqatt.checkpoints.options import CheckpointOptions
from seqatt.cli.arguments import (
    CATEGORICAL_HELP,
    FILES_HELP,
    NUMERIC_HELP,
    TASK_HELP,
    TaskName,
    read_amount,
    read_costs,
    read_features,
    read_names,
    read_quotas,
    read_settings,
    read_types,
    start_log,
)
from seqatt.cli.export import EXPORT_HELP, check_export
from seqatt.cli.option_flags import add_option_flags, read_flags
from seqatt.cli.report import IMAGE_HELP, REPORT_HELP, check_page, read_shape
from seqatt.cli.short_help import HelpAll
from seqatt.data.files.options import FileOptions
from seqatt.options import RUNNING, SELECTION, help_of
from seqatt.progress import Timings, progress_bar

# Parameters that --help shows; --help-all shows all.
COMMON = (
    *("files", "target", "k", "fdr", "repeats", "method", "task", "ignore", "keep", "forbid", "categorical"),
    *("out", "holdout", "report", "export", "as_json", "seed", "device", "resume"),
)
EXAMPLES = (
    "Examples:\n\n"
    "\b\n"
    "seqatt select data.csv --target label -k 20 --out run/\n"
    "seqatt select houses.parquet --target price -k 0.25 --holdout 0.2\n"
    "seqatt select data.csv --target label -k auto --report report.html\n"
    "seqatt select data.csv --target label --fdr 0.1\n"
    "seqatt select data.csv --target label -k 20 --keep run/selection.json\n"
    "seqatt select data.csv --target label -k 5 --method forest --json\n"
    "seqatt select 'clicks/*.parquet' --target click -k 20 --out run/\n\n"
    "Exit code: 0 done, 1 failed (one line on stderr says why), 2 wrong usage, 130 interrupted, 143 terminated by "
    "SIGTERM. Both write a checkpoint first if --out is given: continue with --resume."
)


def select(
    context: typer.Context,
    files: Annotated[list[str], typer.Argument(metavar="FILE", help=FILES_HELP)],
    target: Annotated[
        str | None,
        typer.Option(
            "--target",
            "-t",
            help="Column to predict; several with commas. None with --task reconstruction.",
            show_default=False,
            rich_help_panel=SELECTION,
        ),
    ] = None,
    k: Annotated[
        str | None,
        typer.Option(
            "-k",
            help="Number of features: 20, a fraction of them: 0.25, or auto to find out how many are needed. "
            "With --fdr, --budget or --cost-rate the most that may be chosen.",
            show_default=False,
            rich_help_panel=SELECTION,
        ),
    ] = None,
    method: Annotated[
        str, typer.Option(help="Selection method: see seqatt methods.", rich_help_panel=SELECTION)
    ] = "sequential_attention",
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            help="Any option of the method: OPTION=VALUE; repeatable.",
            rich_help_panel=SELECTION,
        ),
    ] = None,
    task: Annotated[
        TaskName | None,
        typer.Option(metavar="TASK", help=TASK_HELP, rich_help_panel=SELECTION),
    ] = None,
    ignore: Annotated[
        str, typer.Option(help="Columns that are not features (ids), with commas.", rich_help_panel=SELECTION)
    ] = "",
    keep: Annotated[
        list[str] | None,
        typer.Option(
            help="Features that are selected from the start and count towards -k: names with commas (in double quotes "
            "where a name holds one), @FILE with a name per line, or the selection.json of an earlier run; repeatable.",
            rich_help_panel=SELECTION,
        ),
    ] = None,
    forbid: Annotated[
        list[str] | None,
        typer.Option(
            help="Features that may not be selected, given as for --keep; repeatable.",
            rich_help_panel=SELECTION,
        ),
    ] = None,
    candidates: Annotated[
        list[str] | None,
        typer.Option(
            help="Features that may be selected, beside those of --keep, given as for it; by default all; repeatable.",
            rich_help_panel=SELECTION,
        ),
    ] = None,
    quota: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME:LEAST:MOST=FEATURE,FEATURE",
            help="How many of some features are selected, at least and at most; or a JSON file such as "
            "{'lab': {'features': ['hdl', 'ldl'], 'least': 0, 'most': 1}}; repeatable.",
            rich_help_panel=SELECTION,
        ),
    ] = None,
    cost: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FEATURE=COST",
            help="What a feature costs, for --budget or --cost-rate; NAME=COST:FEATURE,FEATURE for what several "
            "features share, which is paid once; or a JSON file such as {'mri': 500}; repeatable. Others are free.",
            rich_help_panel=SELECTION,
        ),
    ] = None,
    groups_of_rows: Annotated[
        str | None,
        typer.Option(
            help="Column of groups (a patient, a day) that are never divided.", rich_help_panel=SELECTION
        ),
    ] = None,
    time: Annotated[
        str | None,
        typer.Option(
            help="Column of times: rows are held out from earlier rows only.", rich_help_panel=SELECTION
        ),
    ] = None,
    weight: Annotated[
        str | None, typer.Option(help=help_of(FileOptions, "sample_weight"), rich_help_panel=SELECTION)
    ] = None,
    balanced: Annotated[
        bool,
        typer.Option("--balanced", help="Give every class the same total weight.", rich_help_panel=SELECTION),
    ] = False,
    categorical: Annotated[str, typer.Option(help=CATEGORICAL_HELP, rich_help_panel=SELECTION)] = "",
    numeric: Annotated[str, typer.Option(help=NUMERIC_HELP, rich_help_panel=SELECTION)] = "",
    log1p: Annotated[str, typer.Option(help=help_of(FileOptions, "log1p"), rich_help_panel=SELECTION)] = "",
    out: Annotated[
        Path | None,
        typer.Option(
            help="Folder for selection.json and, with --holdout, evaluation.json; made if missing.",
            rich_help_panel=RUNNING,
        ),
    ] = None,
    holdout: Annotated[
        float,
        typer.Option(
            help="Share of rows held out to evaluate the selection on, such as 0.2.", rich_help_panel=RUNNING
        ),
    ] = 0.0,
    report: Annotated[Path | None, typer.Option(help=REPORT_HELP, rich_help_panel=RUNNING)] = None,
    export: Annotated[Path | None, typer.Option(help=EXPORT_HELP, rich_help_panel=RUNNING)] = None,
    image_shape: Annotated[str | None, typer.Option(help=IMAGE_HELP, rich_help_panel=RUNNING)] = None,
    log: Annotated[
        bool,
        typer.Option(
            "--log", help="Log progress on stderr, for output that goes to a file.", rich_help_panel=RUNNING
        ),
    ] = False,
    as_json: Annotated[
        bool,
        typer.Option("--json", help="Print the selection as JSON and nothing else.", rich_help_panel=RUNNING),
    ] = False,
    seed: Annotated[
        int, typer.Option(help="The same seed gives the same result.", rich_help_panel=RUNNING)
    ] = 0,
    device: Annotated[str, typer.Option(help="auto, cpu or cuda.", rich_help_panel=RUNNING)] = "auto",
    checkpoint: Annotated[
        Path | None,
        typer.Option(
            help="Folder for checkpoints; by default in the folder of --out.",
            rich_help_panel=RUNNING,
        ),
    ] = None,
    resume: Annotated[
        bool,
        typer.Option("--resume", help=help_of(CheckpointOptions, "resume"), rich_help_panel=RUNNING),
    ] = False,
    help_all: HelpAll = False,
    **flags: Any,
) -> None:
    """Select the k features of a table that predict a column best.

    Prints them, the most useful first; with --out also writes selection.json, which holds the scores of every phase
    and the settings. After Ctrl-C, what was selected so far is in selection.partial.json. Files that fit in memory are
    read into it, larger ones are read batch by batch.
    """
    if target is None and task != "reconstruction":
        raise typer.BadParameter("is missing: name the column to predict", param_hint="--target")
    columns = {
        "task": None if task is None else task.value,
        "class_weight": "balanced" if balanced else None,
        "ignore": read_names(ignore),
        "groups_of_rows": groups_of_rows,
        "time": time,
        "sample_weight": weight,
        "column_types": read_types(categorical, numeric),
        "log1p": log1p == "all" or read_names(log1p),
    }
    checkpoints = {"checkpoint": checkpoint, "resume": resume}
    given = read_flags(flags, AttentionOptions, FileOptions, CheckpointOptions, AnswerOptions)
    given |= {name: value for name, value in (columns | checkpoints).items() if value}
    method_settings = read_settings(settings or [], "OPTION=VALUE, such as n_estimators=200")
    for name in method_settings:
        if name in given:
            raise typer.BadParameter(f"{name!r} is also given by an option of its own", param_hint="--set")
    costs = read_costs(cost)
    if k is None and needs_k({"costs": costs} | method_settings | given):
        raise typer.BadParameter(
            "is missing: use a number such as 20, auto, --fdr 0.1 or --budget 100", param_hint="-k"
        )
    features = k if k in (AUTO, None) else read_amount(k, "a number such as 20 or 0.25, nor auto")
    if not 0 <= holdout < 1:
        raise typer.BadParameter("must be at least 0 and below 1", param_hint="--holdout")
    if resume and out is None and checkpoint is None:
        raise typer.BadParameter(
            "needs the folder that holds the checkpoints; add --out DIR or --checkpoint DIR",
            param_hint="--resume",
        )
    if report is not None:
        check_page(report)
    if export is not None:
        check_export(export, None if task is None else task.value)
    if read_shape(image_shape) is not None and report is None:
        raise typer.BadParameter("is for the report; add --report FILE", param_hint="--image-shape")
    if log:
        start_log()
    timings: Timings = context.obj or Timings()  # none where a test calls the command itself
    with progress_bar("Loading PyTorch", None, shown=not as_json):
        from seqatt.cli.run_selection import Request, check_settings, run_selection
    timings.end("import")
    check_settings(method, method_settings)
    constraints = {
        "keep": read_features(keep, "--keep"),
        "forbid": read_features(forbid, "--forbid"),
        "candidates": read_features(candidates, "--candidates"),
        "quotas": read_quotas(quota),
        "costs": costs,
    }
    given |= {name: value for name, value in constraints.items() if value not in ((), {})}
    request = Request(
        files,
        target,
        features,
        method,
        method_settings | given,
        out,
        holdout,
        as_json,
        seed,
        device,
        report,
        image_shape,
        export,
    )
    run_selection(request, timings)


add_option_flags(select, AnswerOptions, before="method")
add_option_flags(select, AttentionOptions, before="out")
add_option_flags(select, FileOptions, ("memory", "delimiter", "decimal", "on_bad_file"), before="out")
add_option_flags(select, FileOptions, ("quantile",), before="ignore")
add_option_flags(select, FileOptions, ("missing_indicator", "negatives_kept"), before="categorical")
add_option_flags(select, CheckpointOptions, ("checkpoint_every", "on_full_disk"))
