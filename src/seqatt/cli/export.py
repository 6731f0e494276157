"""``--export``: networks on the selected columns of files, written as a deployable model."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import typer

from seqatt.cli.report import check_writable
from seqatt.options import names_of

EXPORT_HELP = (
    "Train networks on the selected features, on all rows, and write them with their preprocessing: FILE.onnx (pip "
    r"install 'seqatt\[onnx]') or FILE.pt2 (torch.export)."
)
OF_NETWORKS = ("hidden", "activation", "embedding_dim")


def check_export(path: Path, task: str | None) -> None:
    """Refuse a file that cannot be written, before any work."""
    if task in ("poisson", "quantile", "ordinal", "survival", "ranking", "reconstruction"):
        raise typer.BadParameter(
            f"only classes and numbers are predicted, not --task {task}; leave one of them out",
            param_hint="--export",
        )
    if path.suffix not in (".onnx", ".pt2"):
        raise typer.BadParameter(f"must end with .onnx or .pt2, got {path}", param_hint="--export")
    if path.suffix == ".onnx" and find_spec("onnx") is None:
        raise typer.BadParameter(
            "an .onnx file needs the package onnx; pip install 'seqatt[onnx]', or write a .pt2 file",
            param_hint="--export",
        )
    check_writable(path, "--export", "model.onnx")


def export_selected(
    path: Path, selection: Any, paths: list[str], target: str | None, options: dict[str, Any], *, quiet: bool
) -> None:
    """Read the selected columns of the files, train networks on them and write these."""
    assert target is not None  # check_export refuses tasks without one
    from seqatt.algorithms.registry import DEFAULT
    from seqatt.api.evaluation.reading import ignore_unselected
    from seqatt.cli.holdout import open_for
    from seqatt.data.files.file_columns import open_columns
    from seqatt.data.files.options import FileOptions
    from seqatt.data.tables.options import TableOptions
    from seqatt.prediction.fitted_model import fit_model

    if not selection.features:
        print("No features were selected, so that there is no model to write.")
        return
    of_files = {name: value for name, value in options.items() if name in names_of(FileOptions)}
    file_options = FileOptions(**of_files | {"groups": None})
    everything = open_columns(paths, target, file_options)
    names = [selection.input_names[column] for column in selection.columns]
    restricted = ignore_unselected(everything.files, everything.targets, names, file_options)
    opened = open_for(DEFAULT, paths, target, restricted)
    if not opened.fit:
        raise ValueError(
            f"--export: the selected columns make a table of {opened.table_bytes / 1e9:.1f} GB, which does not fit "
            "in memory; raise --memory, or select fewer features"
        )
    X, y = opened.columns.read_table(restricted)
    of_table = {name: getattr(restricted, name) for name in names_of(TableOptions)} | {"ignore": ()}
    # Groups and times divide rows; they are no inputs of the model.
    groups = None if restricted.groups_of_rows is None else X.column(restricted.groups_of_rows)
    X = X.drop_columns(list({restricted.groups_of_rows, restricted.time} - {None}))
    of_table |= {"task": selection.settings["task"], "groups_of_rows": groups, "time": None}
    network = {name: options.get(name) for name in OF_NETWORKS}
    model = fit_model(
        X,
        y,
        restricted.sample_weight,
        None,
        TableOptions(**of_table),
        network,
        selection.seed,
        progress=not quiet,
    )
    model.export(path)
    if not quiet:
        print(f"Wrote {path}\n")
