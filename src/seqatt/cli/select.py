"""``seqatt select``: the features of a file, or of many files, that predict a column best."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from seqatt.algorithms.neural.attention_options import AttentionOptions
from seqatt.checkpoints.options import CheckpointOptions
from seqatt.cli.arguments import TaskName, make_folder, read_amount, read_settings, split_columns
from seqatt.cli.file_arguments import (
    as_rank,
    checkpoint_arguments,
    column_arguments,
    file_arguments,
    is_streamed,
    with_checkpoint_folder,
)
from seqatt.cli.option_flags import add_option_flags, read_flags
from seqatt.data.files.options import FileOptions
from seqatt.options import FILES, RUNNING, SELECTION, help_of
from seqatt.streaming.options import StreamTrainingOptions

EXAMPLES = (
    "Examples:\n\n"
    "  seqatt select data.csv --target label -k 20 --out run/\n\n"
    "  seqatt select houses.parquet --target price -k 0.25 --holdout 0.2\n\n"
    "  seqatt select data.csv --target label -k 10 --method forest --set n_estimators=200\n\n"
    "  seqatt select data.tsv.gz --target label -k 5 --json | jq .features\n\n"
    "  seqatt select 'clicks/*.parquet' --target click -k 20 --out run/\n\n"
    "  torchrun --nproc-per-node 8 -m seqatt select clicks/ --target click -k 20 --out run/ --resume\n\n"
    "Exit code: 0 done, 1 failed (one line on stderr says why), 2 wrong usage, 130 interrupted, 143 terminated by "
    "SIGTERM after a checkpoint was written: continue with --resume."
)


def select(
    files: Annotated[
        list[str],
        typer.Argument(
            metavar="FILE",
            help="CSV, TSV, Parquet or Arrow/Feather; .gz, .bz2, .zst too. Several files, a folder or a quoted "
            "pattern are read once, a batch at a time.",
        ),
    ],
    target: Annotated[
        str,
        typer.Option(
            "--target", "-t", help="Column to predict; several with commas.", rich_help_panel=SELECTION
        ),
    ],
    k: Annotated[
        str,
        typer.Option(
            "-k", help="Number of features: 20, or a fraction of them: 0.25.", rich_help_panel=SELECTION
        ),
    ],
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
        typer.Option(help="Kind of target, where it cannot be inferred.", rich_help_panel=SELECTION),
    ] = None,
    ignore: Annotated[
        str, typer.Option(help="Columns that are not features (ids), with commas.", rich_help_panel=SELECTION)
    ] = "",
    weight: Annotated[
        str | None, typer.Option(help=help_of(FileOptions, "sample_weight"), rich_help_panel=SELECTION)
    ] = None,
    balanced: Annotated[
        bool,
        typer.Option("--balanced", help="Give every class the same total weight.", rich_help_panel=SELECTION),
    ] = False,
    missing_indicator: Annotated[
        bool,
        typer.Option(
            "--missing-indicator",
            help=help_of(FileOptions, "missing_indicator"),
            rich_help_panel=SELECTION,
        ),
    ] = False,
    stream: Annotated[
        bool,
        typer.Option("--stream", help="Read even a small file a batch at a time.", rich_help_panel=FILES),
    ] = False,
    passes: Annotated[
        int | None, typer.Option(help=help_of(StreamTrainingOptions, "passes"), rich_help_panel=FILES)
    ] = None,
    categorical: Annotated[
        str, typer.Option(help="Columns that are categories, with commas.", rich_help_panel=FILES)
    ] = "",
    log1p: Annotated[str, typer.Option(help=help_of(FileOptions, "log1p"), rich_help_panel=FILES)] = "",
    negatives_kept: Annotated[
        float | None, typer.Option(help=help_of(FileOptions, "negatives_kept"), rich_help_panel=FILES)
    ] = None,
    on_bad_file: Annotated[
        str | None, typer.Option(help=help_of(FileOptions, "on_bad_file"), rich_help_panel=FILES)
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(help="Folder for selection.json; made if missing.", rich_help_panel=RUNNING),
    ] = None,
    holdout: Annotated[
        float,
        typer.Option(
            help="Share of rows held out to evaluate the selection on, such as 0.2.", rich_help_panel=RUNNING
        ),
    ] = 0.0,
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
            help="Folder for checkpoints of a run on streamed files; by default in the folder of --out.",
            rich_help_panel=RUNNING,
        ),
    ] = None,
    resume: Annotated[
        bool,
        typer.Option("--resume", help=help_of(CheckpointOptions, "resume"), rich_help_panel=RUNNING),
    ] = False,
    checkpoint_every: Annotated[
        float | None,
        typer.Option(help=help_of(CheckpointOptions, "checkpoint_every"), rich_help_panel=RUNNING),
    ] = None,
    on_full_disk: Annotated[
        str | None, typer.Option(help=help_of(CheckpointOptions, "on_full_disk"), rich_help_panel=RUNNING)
    ] = None,
    **flags: Any,
) -> None:
    """Select the k features of a table that predict a column best.

    Prints them in the order of selection; with --out also writes selection.json, which holds the scores of every phase
    and the settings.
    """
    given = read_flags(AttentionOptions, flags)
    given |= {"task": task.value} if task is not None else {}
    given |= {"class_weight": "balanced"} if balanced else {}
    given |= {"missing_indicator": True} if missing_indicator else {}
    own = read_settings(settings or [], "OPTION=VALUE, such as n_estimators=200")
    for name in own:
        if name in given:
            raise typer.BadParameter(f"{name!r} is also given by an option of its own", param_hint="--set")
    features = read_amount(k)
    if not 0 <= holdout < 1:
        raise typer.BadParameter("must be at least 0 and below 1", param_hint="--holdout")
    about_files = file_arguments(passes, categorical, log1p, negatives_kept, on_bad_file)
    about_run = checkpoint_arguments(checkpoint, resume, checkpoint_every, on_full_disk)
    streamed = is_streamed(files, stream, about_files | about_run, holdout)

    from seqatt.api.select import TABLE_OPTIONS, TrainingDiverged, make_options
    from seqatt.api.select import select as select_features
    from seqatt.cli.display import show, show_scores
    from seqatt.cli.holdout import evaluate_holdout, nan_to_none, split_rows
    from seqatt.data.tables.whole_file import read_whole_file

    about_table = sorted(set(own) & set(TABLE_OPTIONS))
    if about_table:
        raise ValueError(f"--set: {about_table[0]!r} is about the table, not an option of a method")
    if not streamed:
        make_options(method, own)
    options: dict[str, Any] = own | given
    if out is not None:
        make_folder(out)
    if streamed:
        options |= about_files | column_arguments(ignore, weight) | with_checkpoint_folder(about_run, out)
        train: tuple[Any, Any] = (files, target)
    else:
        table = read_whole_file(files[0])
        X, y, (weights,) = split_columns(table, target, ignore, {"--weight": weight})
        rows = split_rows(y, holdout, seed)
        if weights is not None:
            options["sample_weight"] = weights.to_numpy()[rows[0]]
        train = (X.take(rows[0]), y.take(rows[0])) if holdout else (X, y)
    rank = 0
    try:
        with as_rank(streamed) as rank:
            selection = select_features(
                *train, features, method=method, seed=seed, device=device, progress=not as_json, **options
            )
    except TrainingDiverged as error:
        if out is None or rank:
            raise
        error.selections[0].save(out / "selection.partial.json")
        raise RuntimeError(
            f"{error}; the features selected so far are in {out / 'selection.partial.json'}"
        ) from None
    if rank:
        return  # only rank 0 writes and prints
    if out is not None:
        selection.save(out / "selection.json")
    if not as_json:
        show(selection, ", ".join(target.split(",")))
        if out is not None:
            print(f"Wrote {out / 'selection.json'}\n")
    scores = None
    if holdout:
        scores = evaluate_holdout(*train, X.take(rows[1]), y.take(rows[1]), selection, device, options)
        if not as_json:
            show_scores(scores, f"on {len(rows[1]):,} held-out rows")
    if as_json:
        print(json.dumps(selection.to_dict() | ({"holdout": nan_to_none(scores)} if scores else {})))


add_option_flags(select, AttentionOptions, before="stream")
