"""Execution of ``seqatt select`` with its arguments read: select, print, write, and evaluate on held-out rows."""

from __future__ import annotations

import json
import os
import signal
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from seqatt.algorithms.registry import get_method
from seqatt.api.read_data import TABLE_OPTIONS
from seqatt.api.select import select
from seqatt.api.select_options import make_options
from seqatt.checkpoints.checkpoint import list_checkpoints, read_checkpoint
from seqatt.checkpoints.options import CheckpointOptions
from seqatt.cli.arguments import interrupts_as_exceptions, make_folder
from seqatt.cli.display import show, show_scores, show_timings
from seqatt.cli.report import identify, this_command, write_selection_page
from seqatt.data.files.errors import SkippedData
from seqatt.data.files.options import FileOptions
from seqatt.display_text import escape_controls
from seqatt.distributed.process_group import join_process_group
from seqatt.json_files import write_atomically
from seqatt.progress import Timings, progress_bar
from seqatt.selection import Selection, SelectionInterrupted, TrainingDiverged

if TYPE_CHECKING:  # imported where rows are held out: it needs scikit-learn
    from seqatt.cli.holdout import HeldOut

PARTIAL = "selection.partial.json"  # of a run that diverged or was interrupted
RANK_TIMEOUT = CheckpointOptions.rank_timeout  # seconds
EVALUATION, EVALUATION_FORMAT = "evaluation.json", 1


class Request(NamedTuple):
    """Files, the target and other options of ``seqatt select``, as the user gave them."""

    paths: list[str]
    target: str | None
    k: int | float | str | None
    method: str
    options: dict[str, Any]
    out: Path | None
    holdout: float
    as_json: bool
    seed: int
    device: str
    report: Path | None = None
    image_shape: str | None = None
    export: Path | None = None


def check_settings(method: str, settings: dict[str, Any]) -> None:
    """Check that the options given by --set are options of the method."""
    about_table = sorted(set(settings) & set(TABLE_OPTIONS))
    if about_table:
        raise ValueError(f"--set: {about_table[0]!r} is about the table, not an option of a method")
    make_options(method, settings, files=True)


def run_selection(request: Request, timings: Timings) -> None:
    """Select features; only rank 0 prints and writes them. ``timings`` are those of the command."""
    if request.out is not None:
        make_folder(request.out)
    with _as_rank(request.holdout, float(request.options.get("rank_timeout", RANK_TIMEOUT))) as rank:
        data, options, held_out = _prepare(request, timings)
        if held_out is not None:
            timings.end("read")
        selection = _select(request, data, options, rank)
        timings.include(selection.timings)
    if rank:
        return
    out, as_json = request.out, request.as_json
    path = None if out is None else out / "selection.json"
    written = "print" if out is None else "write"
    failure = None
    if held_out is not None:
        selection.settings.update(held_out.facts)
    selection.settings["command"] = this_command()
    # Of several columns, ``select`` gets the values of the rows that are not held out.
    if request.target is not None:
        selection.settings["target"] = request.target
    try:
        if not as_json:
            show(selection, ", ".join((request.target or "all columns").split(",")))
    finally:  # a result that cannot be printed is still written
        if path is not None:
            failure = _save(selection, path) or _remove_earlier(path.parent)
            if not (failure or as_json):
                print(f"Wrote {path}\n")
    timings.end(written)
    evaluated: dict[str, Any] = {}
    try:
        if held_out is not None and selection.features:
            from seqatt.cli.holdout import evaluate_holdout, nan_to_none

            scores = evaluate_holdout(*held_out.train, *held_out.test, selection, request.device, options)
            timings.end("evaluate")
            evaluated = {"holdout": nan_to_none(scores)}
            if out is not None and not failure:
                about = {"rows": held_out.description, "selection": identify(selection)}
                failure = _write_scores(out / EVALUATION, about | evaluated, quiet=as_json)
                path = out / EVALUATION if failure else path
            if not as_json:
                show_scores(scores, f"on {held_out.description}")
            timings.end(written)
        if request.report is not None:
            rows = {"rows": held_out.description} if held_out is not None else {}
            write_selection_page(
                request.report,
                selection,
                rows | evaluated if evaluated else None,
                request.paths,
                request.target,
                request.options,
                request.image_shape,
                quiet=as_json,
            )
            timings.end("report")
        if request.export is not None:
            from seqatt.cli.export import export_selected

            data_of = request.paths, request.target, request.options
            export_selected(request.export, selection, *data_of, quiet=as_json)
            timings.end("export")
        if not as_json:
            show_timings(timings.seconds)
    finally:  # a result that cannot be evaluated is still printed
        if as_json:
            print(json.dumps(selection.to_dict() | evaluated | {"command_timings": timings.seconds}))
    if failure:
        remedy = _remedy(options.get("checkpoint"), as_json)
        raise RuntimeError(f"--out: cannot write {path} ({failure}); {remedy}")


def _prepare(request: Request, timings: Timings) -> tuple[tuple[Any, Any], dict[str, Any], HeldOut | None]:
    """X and y for ``select``, the options with the folder of checkpoints, and the rows that are held out."""
    method, options, out = get_method(request.method), request.options, request.out
    data: tuple[Any, Any] = (request.paths, request.target)
    held_out, checkpoints = None, method.trains
    sums = method.select_files is not None and not method.trains
    timings.end("import")  # of the modules of the method
    if request.holdout or (out is not None and sums):
        file_options = make_options(request.method, options, files=True).data
        assert isinstance(file_options, FileOptions)
        from seqatt.cli.holdout import hold_out, open_for

        opened = open_for(request.method, request.paths, request.target, file_options)
        checkpoints = method.trains or (sums and not opened.fit)
        data = opened.columns.files, request.target
        if request.holdout:
            with progress_bar("Reading", None, shown=not request.as_json):
                held_out = hold_out(opened, request.holdout, request.seed)
            data = held_out.train
            if opened.fit:
                options = opened.columns.table_options(options)
    checkpoints = checkpoints and not options.get("repeats")  # halves of the rows have none
    if out is not None and (checkpoints or options.get("resume")):
        options = {"checkpoint": out / "checkpoint"} | options
    return data, options, held_out


def _select(request: Request, data: tuple[Any, Any], options: dict[str, Any], rank: int) -> Selection:
    """The selection; if training diverges or is interrupted, the features selected so far are written."""
    progress = not request.as_json
    try:
        with interrupts_as_exceptions():
            return select(
                *data,
                request.k,
                method=request.method,
                seed=request.seed,
                device=request.device,
                progress=progress,
                **options,  # type: ignore[arg-type]
            )
    except TrainingDiverged as error:
        if request.out is None or rank:
            raise
        raise RuntimeError(f"{error}; {_save_partial(error.selections[0], request.out)}") from None
    except SelectionInterrupted as error:
        if error.selections and error.selections[0].features and not rank:
            partial = error.selections[0]
            kept = (
                _save_partial(partial, request.out) if request.out else ", ".join(map(str, partial.features))
            )
            print(escape_controls(f"{error}: {kept}"), file=sys.stderr)
    except KeyboardInterrupt:
        pass
    signal.raise_signal(signal.SIGINT)  # ends the program as Ctrl-C does at any other time
    raise KeyboardInterrupt


def _save_partial(selection: Selection, out: Path) -> str:
    """Write a selection that is not complete, and say where it is."""
    path = out / PARTIAL
    failure = _save(selection, path)
    where = f"cannot be written to {path} ({failure})" if failure else f"are in {path}"
    return f"the features selected so far {where}"


def _remove_earlier(out: Path) -> str | None:
    """Remove the scores and the partial result of earlier runs; returns what went wrong, if something did."""
    for path in (out / EVALUATION, out / PARTIAL):
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            return f"{path} is of an earlier selection and cannot be removed: {error.strerror}"
    return None


def _write_scores(path: Path, evaluated: dict[str, Any], *, quiet: bool) -> str | None:
    """Write the scores on held-out rows; returns what went wrong, if something did."""
    contents = {"format": EVALUATION_FORMAT, **evaluated}
    try:
        write_atomically(path, json.dumps(contents, indent=1) + "\n")
    except OSError as error:
        return error.strerror or str(error)
    if not quiet:
        print(f"Wrote {path}\n")
    return None


def _save(selection: Selection, path: Path) -> str | None:
    """Write the selection; returns what went wrong, if something did."""
    try:
        selection.save(path)
    except OSError as error:
        return error.strerror or str(error)
    return None


def _remedy(checkpoint: Path | None, as_json: bool) -> str:
    """How to get a selection that could not be written: from the checkpoint of the finished run, or as printed."""
    if checkpoint is not None:
        try:
            if read_checkpoint(list_checkpoints(checkpoint)[-1]).metadata.get("complete"):
                return (
                    f"the same command with --resume --checkpoint {checkpoint} and --json > FILE or another --out "
                    "gives it again without training"
                )
        except (IndexError, ValueError, OSError):
            pass
    if as_json:
        return "all of it is in the JSON that was printed"
    return (
        "the features are printed above; repeat the command with --json > FILE or another --out for the rest"
    )


@contextmanager
def _as_rank(holdout: float, timeout: float) -> Iterator[int]:
    """Join the process group where torchrun started several processes; yields the rank of this one."""
    if holdout and int(os.environ.get("WORLD_SIZE", "1")) > 1:
        raise ValueError("--holdout: is for a single process; leave it out, or start without torchrun")
    with join_process_group(timeout) as rank:
        if rank:  # rank 0 gives the same warnings, except about data that only this rank skipped
            warnings.simplefilter("ignore")
            warnings.simplefilter("always", SkippedData)
        yield rank
