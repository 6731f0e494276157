"""Properties of the public functions for random input; ``tests/test_properties.py`` and ``tools/fuzz.py`` check them.

A property is a function with hypothesis strategies for its arguments. It fails if a call raises an error that explains
nothing: one of another library, or without the name of the argument or the file at its start.
"""

from __future__ import annotations

import copy
import gzip
import io
import json
import re
import tempfile
import traceback
import warnings
from collections.abc import Callable
from dataclasses import fields
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import sklearn.utils
from hypothesis import note
from hypothesis import strategies as st
from tests.support.random_tables import tables

import seqatt
from seqatt.algorithms.registry import all_methods
from seqatt.checkpoints.checkpoint import read_checkpoint, write_checkpoint
from seqatt.datasets.catalogue import find_entry
from seqatt.datasets.entry import DataError
from seqatt.datasets.npz import read_arrays, write_arrays
from seqatt.selection_file import check_selection

SOURCE = str(Path(seqatt.__file__).parent)
CHECKS_OF_SCIKIT_LEARN = str(
    Path(sklearn.utils.__file__).parent
)  # a selector checks arrays as scikit-learn does
QUICK = {
    "epochs": 1,
    "n_estimators": 2,
    "max_iter": 2,
    "ensemble": 1,
    "folds": 2,
}  # so that a run takes milliseconds
BEGINNING = re.compile(r"[\w.\-/]+( has |: )")  # of a message: the argument or the file


class Unexplained(AssertionError):
    """A call raised an error that names neither an argument nor a file."""


def explained(call: Callable[[], Any], about: Any, beginning: str = "", *, selector: bool = False) -> Any:
    """The result of a call, or None if it raised an error that explains itself.

    The message must begin with ``beginning``, by default with the name of an argument or file. That of a ``selector``
    may be scikit-learn's about an array.
    """
    note(f"{about}")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            warnings.simplefilter("error", RuntimeWarning)  # NumPy: overflow, invalid value, ...
            return call()
    except (ValueError, TypeError, DataError, seqatt.TrainingDiverged) as error:
        where = traceback.extract_tb(error.__traceback__)[-1].filename
        message = str(error)
        if selector and where.startswith(CHECKS_OF_SCIKIT_LEARN):
            return None
        begins = message.startswith(beginning) if beginning else BEGINNING.match(message)
        if not where.startswith(SOURCE) or not begins or "\n" in message:
            raise Unexplained(f"{type(error).__name__}: {message} (in {where}); input: {about}") from error
        return None
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # also a panic of polars
        frames = traceback.extract_tb(error.__traceback__)
        if selector and any(frame.filename.startswith(CHECKS_OF_SCIKIT_LEARN) for frame in frames):
            return None
        raise Unexplained(f"{type(error).__name__}: {error}; input: {about}") from error


def quick_options(method: str) -> dict[str, Any]:
    known = {field.name for field in fields(all_methods()[method].options)}
    return {name: value for name, value in QUICK.items() if name in known}


METHODS = st.sampled_from(sorted(seqatt.methods()))
AMOUNTS = st.one_of(
    st.integers(1, 3), st.sampled_from([0.5, 1.0, 0, -1, 99, 1.5, None, "2", True, float("nan")])
)


def check_select(table: Any, k: Any, method: str, seed: int) -> None:
    X, y, about = table
    about = about | {"k": k, "method": method, "seed": seed}
    selection = explained(
        lambda: seqatt.select(X, y, k, method=method, seed=seed, **quick_options(method)), about
    )
    if selection is None:
        return
    plain = json.loads(json.dumps(selection.to_dict()))
    check_selection(plain)
    assert 1 <= len(selection.features) <= len(selection.names)
    with tempfile.TemporaryDirectory() as folder:
        selection.save(f"{folder}/s.json")
        assert json.dumps(seqatt.Selection.load(f"{folder}/s.json").to_dict()) == json.dumps(plain)
    repr(selection)


def check_evaluate(table: Any, indices: Any, seed: int) -> None:
    X, y, about = table
    about = about | {"indices": indices}
    result = explained(lambda: seqatt.evaluate(X, y, X, y, indices, seeds=[seed], epochs=1), about)
    if result is not None:
        assert all(len(result[name]) == 1 for name in result)
        repr(result)


def check_compare(table: Any, k: Any, methods: list[str], seeds: list[int], test_size: Any) -> None:
    X, y, about = table
    about = about | {"k": k, "methods": methods, "seeds": seeds, "test_size": test_size}
    options = {method: quick_options(method) for method in methods if method in seqatt.methods()}
    call = {"k": k, "methods": methods, "seeds": seeds, "test_size": test_size, "options": options}
    comparison = explained(lambda: seqatt.compare(X, y, **call), about)
    if comparison is None:
        return
    for run in comparison.runs:
        if run.error is not None and not re.match(r"\w+: [\w.\-/]+( has |: )", run.error):
            raise Unexplained(f"{run.error}; input: {about}")
    assert comparison.missing == 0
    assert all(comparison.best(k) in (None, *methods) for k in comparison.k)
    repr(comparison), comparison.to_markdown(), comparison._repr_html_()


def check_selector(table: Any, k: Any, method: str) -> None:
    X, y, about = table
    about = about | {"k": k, "method": method}
    selector = seqatt.FeatureSelector(k, method=method, options=quick_options(method))

    def fit_and_transform() -> Any:
        selector.fit(X, y)
        return selector.transform(X)

    chosen = explained(fit_and_transform, about, selector=True)
    if chosen is not None:
        assert chosen.shape[1] == selector.support_.sum()


def check_file(content: tuple[str, bytes], method: str, memory: Any) -> None:
    ending, data = content
    about = {"file": ending, "bytes": data[:60], "length": len(data), "method": method, "memory": memory}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"file{ending}"
        path.write_bytes(data)
        options = quick_options(method) | ({} if memory is None else {"memory": memory})
        explained(lambda: seqatt.select(path, target="y", k=1, method=method, **options), about)


def check_saved_selection(data: bytes) -> None:
    _check_reader(seqatt.Selection.load, "s.json", data)


def check_saved_comparison(data: bytes) -> None:
    _check_reader(seqatt.Comparison.load, "c.json", data)


def check_checkpoint(data: bytes) -> None:
    _check_reader(read_checkpoint, "checkpoint-00000001.npz", data, "checkpoint: {path} ")


def check_dataset(data: bytes) -> None:
    _check_reader(lambda path: read_arrays(path, find_entry("lung_discrete")), "lung_discrete.npz", data)


def _check_reader(read: Callable[[Path], Any], name: str, data: bytes, beginning: str = "{path}: ") -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        path.write_bytes(data)
        about = {"file": name, "bytes": data[:200], "length": len(data)}
        explained(lambda: read(path), about, beginning.format(path=path))


@cache
def _files() -> dict[str, bytes]:
    """A valid file of every format, by ending."""
    rng = np.random.default_rng(0)
    columns = {"a": rng.normal(size=60), "b": rng.integers(0, 4, 60), "c": rng.choice(["u", "v", "ww"], 60)}
    table = pa.table(columns | {"y": rng.integers(0, 2, 60)})
    rows = zip(*(column.to_pylist() for column in table.columns), strict=True)
    text = "\n".join([",".join(table.column_names), *(",".join(map(str, row)) for row in rows)]).encode()
    made = {".csv": text, ".tsv": text.replace(b",", b"\t"), ".csv.gz": gzip.compress(text, mtime=0)}
    for ending, write in ((".parquet", pq.write_table), (".feather", feather.write_feather)):
        stream = io.BytesIO()
        write(table, stream)
        made[ending] = stream.getvalue()
    stream = io.BytesIO()
    with pa.ipc.new_stream(stream, table.schema) as writer:
        writer.write_table(table, max_chunksize=20)
    return made | {".arrow": stream.getvalue()}


@cache
def _saved() -> dict[str, Any]:
    """A saved selection and a saved comparison, as plain values."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20, 3))
    y = (X[:, 0] > 0).astype(int)
    comparison = seqatt.compare(X, y, 1, methods=["linear_omp", "random", "all"], seeds=range(2))
    return {
        "selection": seqatt.select(X, y, 2, method="f_test").to_dict(),
        "comparison": comparison.to_dict(),
    }


@cache
def _archives() -> dict[str, bytes]:
    """A checkpoint and the file of a data set."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        saved = write_checkpoint(
            folder, {"run": {}, "finished": {}}, {"weights": np.arange(12.0).reshape(3, 4)}
        )
        entry = find_entry("lung_discrete")
        arrays = {
            "X": np.zeros((entry.rows[0], entry.features), np.int8),
            "y": np.arange(entry.rows[0]) % entry.classes,
            "feature_names": np.array([f"f{i}" for i in range(entry.features)]),
            "target_names": np.array([str(i) for i in range(entry.classes)]),
        }
        write_arrays(folder / "d.npz", arrays, "lung_discrete")
        return {"checkpoint": saved.read_bytes(), "dataset": (folder / "d.npz").read_bytes()}


@st.composite
def damaged(draw: st.DrawFn, valid: bytes) -> bytes:
    """Random bytes, or valid ones that are cut off, changed, repeated or joined with others."""
    kind = draw(st.sampled_from(["flip", "cut", "insert", "random", "repeat", "valid", "zeros"]))
    if kind == "random":
        return draw(st.binary(max_size=200))
    at = draw(st.integers(0, len(valid)))
    if kind == "flip":
        changed = bytearray(valid)
        for _ in range(draw(st.integers(1, 4))):
            changed[draw(st.integers(0, len(valid) - 1))] = draw(st.integers(0, 255))
        return bytes(changed)
    middle = {"cut": b"", "repeat": valid[at:] + valid[:at], "valid": valid[at:], "zeros": bytes(64)}
    if kind == "insert":
        return valid[:at] + draw(st.binary(min_size=1, max_size=20)) + valid[at:]
    return valid[:at] + middle[kind]


ODD_VALUES = st.one_of(
    st.none(), st.booleans(), st.integers(-3, 9), st.floats(), st.text(max_size=3),
    st.sampled_from([10**400, -(10**30), 2**63, [], {}, [[]], "x" * 400, [10**400], {"a": 10**400}]),
    st.integers(1, 3).map(lambda n: [None] * n),
)  # fmt: skip


@st.composite
def damaged_json(draw: st.DrawFn, valid: dict[str, Any]) -> bytes:
    """A saved file with some values replaced, removed or nested deeply, or with damaged bytes."""
    raw = copy.deepcopy(valid)
    kind = draw(st.sampled_from(["value", "value", "value", "bytes", "deep"]))
    if kind == "bytes":
        return draw(damaged(json.dumps(raw).encode()))
    for _ in range(draw(st.integers(1, 2))):
        place: Any = raw
        while True:
            keys = sorted(place) if isinstance(place, dict) else range(len(place))
            key = draw(st.sampled_from(list(keys)))
            if not (isinstance(place[key], dict | list) and place[key] and draw(st.booleans())):
                break
            place = place[key]
        if isinstance(place, dict) and draw(st.integers(0, 4)) == 0:
            del place[key]
        else:
            place[key] = copy.deepcopy(draw(ODD_VALUES))
        if not raw:
            break
    text = json.dumps(raw)
    if kind == "deep":
        depth = draw(st.sampled_from([70, 900, 100_000]))
        text = text.replace("{}", "[]").replace(": 1,", ": " + "[" * depth + "]" * depth + ",", 1)
    return text.encode()


def file_contents() -> st.SearchStrategy[tuple[str, bytes]]:
    return st.sampled_from(sorted(_files())).flatmap(
        lambda ending: st.tuples(st.just(ending), damaged(_files()[ending]))
    )


class Property(NamedTuple):
    """A property with the strategies of its arguments, and the number of examples in the tests."""

    check: Callable[..., None]
    strategies: Callable[[], dict[str, st.SearchStrategy[Any]]]
    examples: int


SEEDS = st.integers(0, 3)
INDICES = st.one_of(
    st.none(),
    st.lists(st.integers(-1, 5), max_size=3),
    st.lists(st.sampled_from(["c0", "x0", "no"]), max_size=2),
)
COMPARED = st.one_of(
    st.lists(st.sampled_from(["linear_omp", "random", "f_test", "all"]), min_size=1, max_size=2, unique=True),
    st.lists(st.sampled_from(["random", "all", "no"]), max_size=2),
)
FILE_METHODS = st.sampled_from(["random", "f_test", "linear_omp", "cmim", "sequential_attention"])

PROPERTIES = {
    "select": Property(
        check_select, lambda: {"table": tables(), "k": AMOUNTS, "method": METHODS, "seed": SEEDS}, 60
    ),
    "select, usual tables": Property(
        check_select,
        lambda: {"table": tables(usual=True), "k": st.just(1), "method": METHODS, "seed": SEEDS},
        25,
    ),
    "evaluate": Property(check_evaluate, lambda: {"table": tables(), "indices": INDICES, "seed": SEEDS}, 30),
    "compare": Property(
        check_compare,
        lambda: {
            "table": tables(),
            "k": st.one_of(st.integers(1, 2), AMOUNTS, st.lists(st.integers(1, 3), max_size=2)),
            "methods": COMPARED,
            "seeds": st.one_of(st.just([0]), st.just([1, 2]), st.lists(SEEDS, max_size=2)),
            "test_size": st.sampled_from([0.25, 0.5, 3, 5, 0.4, 0, 1.5, "no"]),
        },
        15,
    ),
    "selector": Property(check_selector, lambda: {"table": tables(), "k": AMOUNTS, "method": METHODS}, 30),
    "data files": Property(
        check_file,
        lambda: {
            "content": file_contents(),
            "method": FILE_METHODS,
            "memory": st.sampled_from([None, None, 1000]),
        },
        60,
    ),
    "saved selections": Property(
        check_saved_selection, lambda: {"data": damaged_json(_saved()["selection"])}, 80
    ),
    "saved comparisons": Property(
        check_saved_comparison, lambda: {"data": damaged_json(_saved()["comparison"])}, 80
    ),
    "checkpoints": Property(check_checkpoint, lambda: {"data": damaged(_archives()["checkpoint"])}, 60),
    "data sets": Property(check_dataset, lambda: {"data": damaged(_archives()["dataset"])}, 60),
}
