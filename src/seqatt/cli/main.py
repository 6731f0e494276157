"""The command line: ``select`` and ``compare`` for files, ``methods`` and ``data`` for lists, ``demo``."""

from __future__ import annotations

import json
import signal
import sys
import warnings
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from seqatt.cli.arguments import TaskName, amount, make_folder, settings_of, split_columns
from seqatt.cli.compare import EXAMPLES, compare
from seqatt.cli.data import data_app
from seqatt.cli.demo import demo
from seqatt.cli.file_arguments import (
    as_rank,
    keeping_options,
    named_columns,
    stream_options,
    streams,
    with_folder,
)
from seqatt.cli.methods import list_methods
from seqatt.version import __version__

app = typer.Typer(
    help="Choose the features of a table that matter to a neural network.\n\n"
    "Start with [bold]seqatt demo[/bold], then [bold]seqatt select data.csv --target label -k 20[/bold].",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
)
app.add_typer(data_app, name="data")
app.command("methods")(list_methods)
app.command()(demo)
app.command(epilog=EXAMPLES)(compare)


class MaskName(StrEnum):
    softmax = "softmax"
    l1 = "l1"
    l2 = "l2"
    l1_normalised = "l1_normalised"
    l2_normalised = "l2_normalised"


def _version(shown: bool) -> None:
    if shown:
        print(f"seqatt {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Say which version.")
    ] = False,
) -> None:
    pass


@app.command(
    epilog="Examples:\n\n"
    "  seqatt select data.csv --target label -k 20 --out run/\n\n"
    "  seqatt select houses.parquet --target price -k 0.25 --holdout 0.2\n\n"
    "  seqatt select data.csv --target label -k 10 --method forest --set trees=200\n\n"
    "  seqatt select data.tsv.gz --target label -k 5 --json | jq .features\n\n"
    "  seqatt select 'clicks/*.parquet' --target click -k 20 --out run/\n\n"
    "  torchrun --nproc-per-node 8 -m seqatt select clicks/ --target click -k 20 --out run/ --resume\n\n"
    "Exit code: 0 done, 1 failed (one line on stderr says why), 2 wrong usage, 130 interrupted, 143 told to "
    "end (SIGTERM) and kept: go on with --resume."
)
def select(
    files: Annotated[
        list[str],
        typer.Argument(
            metavar="FILE",
            help="CSV, TSV, Parquet or Arrow/Feather; .gz, .bz2, .zst too. Several, a folder or a quoted "
            "pattern are read once, a batch at a time.",
        ),
    ],
    target: Annotated[str, typer.Option("--target", "-t", help="Column to predict; several with commas.")],
    k: Annotated[str, typer.Option("-k", help="How many features: 20, or a fraction of them: 0.25.")],
    out: Annotated[Path | None, typer.Option(help="Folder for selection.json; made if missing.")] = None,
    holdout: Annotated[
        float, typer.Option(help="Share of rows kept aside to test the selection on, such as 0.2.")
    ] = 0.0,
    method: Annotated[str, typer.Option(help="How to choose: seqatt methods.")] = "sequential_attention",
    seed: Annotated[int, typer.Option(help="One seed gives one answer.")] = 0,
    device: Annotated[str, typer.Option(help="auto, cpu or cuda.")] = "auto",
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the selection as JSON and nothing else.")
    ] = False,
    task: Annotated[TaskName | None, typer.Option(help="What the target is, where it does not tell.")] = None,
    ignore: Annotated[str, typer.Option(help="Columns that are not features (ids), with commas.")] = "",
    weight: Annotated[str | None, typer.Option(help="Column that holds a weight for each row.")] = None,
    balanced: Annotated[
        bool, typer.Option("--balanced", help="Give every class the same total weight.")
    ] = False,
    epochs: Annotated[
        float | None,
        typer.Option(help="Passes over the rows; by default it follows the table's size."),
    ] = None,
    batch_size: Annotated[int | None, typer.Option(help="Rows in a step.")] = None,
    learning_rate: Annotated[float | None, typer.Option(help="Adam's step size.")] = None,
    hidden: Annotated[str | None, typer.Option(help="Widths of the hidden layers, such as 128,64.")] = None,
    mask: Annotated[MaskName | None, typer.Option(help="How logits become weights.")] = None,
    temperature: Annotated[float | None, typer.Option(help="Of the softmax mask.")] = None,
    features_per_phase: Annotated[
        int | None, typer.Option(help="Features chosen at a time; more is quicker and coarser.")
    ] = None,
    warmup: Annotated[float | None, typer.Option(help="Share of training before the first choice.")] = None,
    replacement: Annotated[
        int | None, typer.Option(help="Rounds that drop weak features and choose again.")
    ] = None,
    ensemble: Annotated[int | None, typer.Option(help="Models whose evidence is pooled.")] = None,
    surplus: Annotated[float | None, typer.Option(help="Times k chosen before the rest is dropped.")] = None,
    input_dropout: Annotated[float | None, typer.Option(help="Share of inputs left out at random.")] = None,
    univariate_test: Annotated[
        float | None, typer.Option(help="How far a feature's own evidence counts.")
    ] = None,
    label_smoothing: Annotated[
        float | None, typer.Option(help="Share of a label given to all classes.")
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", help="Any option of the method: OPTION=VALUE; repeatable."),
    ] = None,
    missing_indicator: Annotated[
        bool,
        typer.Option("--missing-indicator", help="Let the model see where values are missing."),
    ] = False,
    stream: Annotated[
        bool, typer.Option("--stream", help="Read even a small file a batch at a time.")
    ] = False,
    passes: Annotated[int | None, typer.Option(help="Passes over streamed files; by default 1.")] = None,
    categorical: Annotated[str, typer.Option(help="Streamed columns that are categories.")] = "",
    log1p: Annotated[str, typer.Option(help="Streamed counts to take logarithms of, or 'all'.")] = "",
    negatives_kept: Annotated[
        float | None, typer.Option(help="Share of negatives that a down-sampled log kept.")
    ] = None,
    checkpoint: Annotated[
        Path | None,
        typer.Option(help="Folder for checkpoints of a streamed run; by default in the folder of --out."),
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on from the last checkpoint.")] = False,
    checkpoint_every: Annotated[float | None, typer.Option(help="Seconds between them; 60.")] = None,
    on_full_disk: Annotated[
        str | None, typer.Option(help="When one cannot be written: warn (and train on) or stop.")
    ] = None,
    on_bad_file: Annotated[
        str | None, typer.Option(help="When streamed data cannot be read: stop, or skip and report.")
    ] = None,
) -> None:
    """Choose the k features of a table that predict a column best.

    Prints them in the order chosen; with --out also writes selection.json, which holds the scores of
    every phase and the settings.
    """
    given = {
        "epochs": epochs,
        "batch_size": batch_size,
        "learning_rate": learning_rate,
        "hidden": None if hidden is None else _widths(hidden),
        "mask": None if mask is None else mask.value,
        "temperature": temperature,
        "features_per_phase": features_per_phase,
        "warmup": warmup,
        "replacement": replacement,
        "ensemble": ensemble,
        "surplus": surplus,
        "input_dropout": input_dropout,
        "univariate_test": univariate_test,
        "label_smoothing": label_smoothing,
        "task": None if task is None else task.value,
        "class_weight": "balanced" if balanced else None,
        "missing_indicator": missing_indicator or None,
    }
    own = settings_of(settings or [], "OPTION=VALUE, such as trees=200")
    for name in own:
        if given.get(name) is not None:
            raise typer.BadParameter(f"{name!r} has an option of its own, given too", param_hint="--set")
    features = amount(k)
    if not 0 <= holdout < 1:
        raise typer.BadParameter("must be at least 0 and below 1", param_hint="--holdout")
    from seqatt.api.select import TABLE_OPTIONS, TrainingDiverged, make_options
    from seqatt.api.select import select as choose
    from seqatt.cli.display import show, show_scores
    from seqatt.cli.holdout import score_beside, split_rows, without_nan
    from seqatt.data.tables.whole_file import read_whole_file

    about_stream = stream_options(passes, categorical, log1p, negatives_kept, on_bad_file)
    about_run = keeping_options(checkpoint, resume, checkpoint_every, on_full_disk)
    streamed = streams(files, stream, about_stream | about_run, holdout)
    about_table = sorted(set(own) & set(TABLE_OPTIONS))
    if about_table:
        raise ValueError(f"--set: {about_table[0]!r} is about the table, not an option of a method")
    if not streamed:
        make_options(method, own)
    options: dict[str, Any] = own | {name: value for name, value in given.items() if value is not None}
    if out is not None:
        make_folder(out)
    if streamed:
        options |= about_stream | named_columns(ignore, weight) | with_folder(about_run, out)
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
            selection = choose(
                *train, features, method=method, seed=seed, device=device, progress=not as_json, **options
            )
    except TrainingDiverged as error:
        if out is None or rank:
            raise
        error.selections[0].save(out / "selection.partial.json")
        raise RuntimeError(f"{error}; what was found is in {out / 'selection.partial.json'}") from None
    if rank:
        return  # rank 0 speaks for all
    if out is not None:
        selection.save(out / "selection.json")
    if not as_json:
        show(selection, ", ".join(target.split(",")))
        if out is not None:
            print(f"Wrote {out / 'selection.json'}\n")
    scores = None
    if holdout:
        scores = score_beside(*train, X.take(rows[1]), y.take(rows[1]), selection, device, options)
        if not as_json:
            show_scores(scores, f"on {len(rows[1]):,} rows kept aside")
    if as_json:
        print(json.dumps(selection.to_dict() | ({"holdout": without_nan(scores)} if scores else {})))


def _widths(hidden: str) -> tuple[int, ...]:
    try:
        return tuple(int(width) for width in hidden.split(","))
    except ValueError:
        message = f"{hidden!r} is not a list of widths such as 128,64"
        raise typer.BadParameter(message, param_hint="--hidden") from None


class _Interrupted(BaseException):
    """Ctrl-C, told apart from what libraries make of it."""


def _interrupt(*_: object) -> None:
    raise _Interrupted


def main() -> None:
    """Run, and end as the help says: one clear line instead of a traceback."""
    signal.signal(signal.SIGINT, _interrupt)
    warnings.showwarning = lambda message, *_: print(f"note: {message}", file=sys.stderr)
    try:
        app(standalone_mode=True)
    except _Interrupted:
        print("interrupted", file=sys.stderr)
        sys.exit(130)
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(1)
    except (ValueError, TypeError, OSError, RuntimeError, MemoryError) as error:
        message = " ".join(str(error).split()) or type(error).__name__
        print(f"error: {message}", file=sys.stderr)
        sys.exit(1)


if __name__ == "__main__":
    main()
