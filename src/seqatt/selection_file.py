"""The file of a saved selection: read, and checked before a ``Selection`` is made of it."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from typing import Any

from seqatt.json_files import read_json

NAMED = ("features", "names", "input_names")  # fields that hold names
NOTHING_FOUND = "no number of features does better than none"  # of an empty selection of k="auto"
NOTHING_DISCOVERED = "no feature stands out from its knockoffs at this rate"  # the same of fdr
CURVE_NUMBERS = ("no_features", "all_features", "random_features")  # in the curve of k="auto"
FINDINGS = ("curve", "importance", "stability", "false_discoveries", "chance")  # None where not measured
FORMAT = 2  # version of the JSON format
RENAMED_IN_FORMAT_2 = {"members": "input_columns", "inputs": "input_names"}  # format 1 is read too


def read_selection_file(path: str | os.PathLike[str], names: Sequence[str]) -> dict[str, Any]:
    """The fields ``names`` of a saved selection, of the right types, lengths and ranges, or one ``ValueError``."""
    raw = read_json(path, "a saved selection")
    try:
        version = raw.get("format")
        if version not in (1, FORMAT):
            raise ValueError(f"format {version!r}" if "format" in raw else "it has no 'format'")
        if version == 1:
            raw = {RENAMED_IN_FORMAT_2.get(name, name): value for name, value in raw.items()}
        raw = {"timings": {}} | dict.fromkeys(FINDINGS) | raw  # earlier versions did not write them
        missing = [name for name in names if name not in raw]
        if missing:
            raise ValueError(f"it has no {missing[0]!r}")
        check_selection(raw)
    except ValueError as error:
        raise ValueError(f"{path}: not a saved selection ({error})") from None
    return {name: raw[name] for name in names}


def check_selection(raw: dict[str, Any]) -> None:
    """Raise unless the fields have the types, lengths and ranges of a selection, and agree with each other."""
    _check(isinstance(raw["method"], str), "method", "must be a name")
    _check(_are_integers([raw["seed"]]), "seed", "must be an integer")
    names, inputs = _names(raw, "names"), _names(raw, "input_names")
    indices = _integers(raw, "indices", 0, len(names))
    _check(len(set(indices)) == len(indices), "indices", "must not contain duplicates")
    features = _names(raw, "features")
    _check(features == [names[i] for i in indices], "features", "must be the names at the indices")
    _check(len(_numbers(raw, "scores")) == len(indices), "scores", "must be one per selected feature")
    ranking = _integers(raw, "ranking", 1, len(names) + 1)
    _check(
        sorted(ranking) == list(range(1, len(names) + 1)), "ranking", "must have every rank once, from 1 on"
    )
    _check(
        [ranking[i] for i in indices] == list(range(1, len(indices) + 1)),
        "ranking",
        "must agree with indices",
    )
    support, chosen = raw["support"], set(indices)
    _check(support == [i in chosen for i in range(len(names))], "support", "must mark the selected features")
    _check(all(isinstance(s, bool) for s in support), "support", "must be true or false for every feature")
    grouped = raw["input_columns"]
    _check(
        isinstance(grouped, list) and len(grouped) == len(names), "input_columns", "must be one per feature"
    )
    for columns in grouped:
        _check_integers("input_columns", columns, 0, len(inputs))
    columns = [column for i in indices for column in grouped[i]]
    _check(_integers(raw, "columns", 0, len(inputs)) == columns, "columns", "must be those of the indices")
    history = raw["history"]
    _check(
        isinstance(history, list) and all(isinstance(h, dict) for h in history), "history", "must be objects"
    )
    _check(isinstance(raw["settings"], dict), "settings", "must be an object")
    environment = raw["environment"]
    texts = isinstance(environment, dict) and all(isinstance(v, str) for v in environment.values())
    _check(texts, "environment", "must be an object of texts")
    _check(_are_numbers([raw["seconds"]]), "seconds", "must be a number")
    timings = raw["timings"]
    _check(
        isinstance(timings, dict) and _are_numbers(list(timings.values())),
        "timings",
        "must be an object of numbers",
    )
    if raw["curve"] is not None:
        _check_curve(raw["curve"], len(indices), len(names), partial="partial" in raw["settings"])
    if raw["importance"] is not None:
        _check_importance(raw["importance"], indices, names)
    if raw["stability"] is not None:
        _check_stability(raw["stability"], raw, len(names))
    if raw["chance"] is not None:
        _check_chance(raw["chance"])
    if raw["false_discoveries"] is not None:
        _check_discoveries(raw["false_discoveries"], indices, len(names))


def _check_curve(curve: Any, selected: int, features: int, *, partial: bool) -> None:
    """Raise unless this is what k="auto" chose from: rising sizes, and a mean and a standard error of each."""
    _check(isinstance(curve, dict), "curve", "must be an object")
    sizes = curve.get("sizes")
    _check_integers("curve", sizes, 1, features + 1)
    _check(bool(sizes) and sizes == sorted(set(sizes)), "curve", "must have rising sizes")
    for name in ("means", "standard_errors"):
        values = curve.get(name)
        fits = isinstance(values, list) and len(values) == len(sizes) and _are_numbers(values)
        _check(fits, "curve", f"must have one number per size in {name!r}")
    _check(
        _are_numbers([curve.get(name) for name in CURVE_NUMBERS]), "curve", "must have numbers in its lines"
    )
    _check(isinstance(curve.get("metric"), str), "curve", "must have the name of a metric")
    _check(_are_integers([curve.get("random_size"), curve.get("folds")]), "curve", "must have whole numbers")
    chosen = curve.get("chosen")
    fits = chosen == selected or (partial and _are_integers([chosen]) and selected < chosen)
    _check(fits, "curve", "must have chosen as many features as are selected")


def _check_importance(importance: Any, indices: list[int], names: list[Any]) -> None:
    """Raise unless this says of every selected feature how much it adds, and which rejected ones are like it."""
    name = "importance"
    _check(isinstance(importance, dict), name, "must be an object")
    for key in ("increases", "standard_errors"):
        values = importance.get(key)
        fits = isinstance(values, list) and len(values) == len(indices) and _are_numbers(values)
        _check(fits, name, f"must have one number per selected feature in {key!r}")
    _check(_are_numbers([importance.get("loss")]), name, "must have a number as loss")
    _check(
        _are_integers([importance.get(key) for key in ("rows", "networks")]), name, "must have whole numbers"
    )
    if "stand_ins" not in importance:
        return
    lists, rejected = importance["stand_ins"], [n for i, n in enumerate(names) if i not in set(indices)]
    fits = isinstance(lists, list) and len(lists) == len(indices) and all(isinstance(x, list) for x in lists)
    _check(fits, name, "must have one list per selected feature in 'stand_ins'")
    for pair in (pair for pairs in lists for pair in pairs):
        fits = isinstance(pair, list) and len(pair) == 2 and pair[0] in rejected and _are_numbers(pair[1:])
        _check(fits, name, "must have a rejected feature and a number in every stand-in")


def _check_stability(stability: Any, raw: dict[str, Any], features: int) -> None:
    """Raise unless this is what repeats say: a share per feature, clusters that share no feature, and bounds."""
    name = "stability"
    _check(isinstance(stability, dict), name, "must be an object")
    counts = [stability.get(key) for key in ("repeats", "rows", "bounded")]
    _check(_are_integers(counts) and min(counts) >= 0, name, "must have whole numbers")
    _check(
        counts[0] >= 2 and counts[2] <= len(raw["indices"]),
        name,
        "must have repeats, and bound selected features",
    )
    frequency, clusters = stability.get("frequency"), stability.get("clusters")
    fits = isinstance(frequency, list) and len(frequency) == features
    _check(fits and _are_shares(frequency), name, "must have a share per feature in 'frequency'")
    fits = isinstance(clusters, list) and all(isinstance(each, dict) for each in clusters)
    _check(fits, name, "must have objects in 'clusters'")
    for each in clusters:
        _check_integers(name, each.get("features"), 0, features)
    members = [feature for each in clusters for feature in each["features"]]
    _check(len(set(members)) == len(members), name, "must have a feature in one cluster at most")
    _check(_are_shares([each.get("frequency") for each in clusters]), name, "must have a share per cluster")
    bound = [stability.get(key) for key in ("threshold", "false_choices", "false_choices_any")]
    _check(_are_numbers(bound), name, "must have a threshold and two bounds")


def _are_shares(values: list[Any]) -> bool:
    return _are_numbers(values) and all(0 <= value <= 1 for value in values)


def _check_chance(chance: Any) -> None:
    """Raise unless these are the scores of selected, of random and of no features."""
    _check(isinstance(chance, dict), "chance", "must be an object")
    scores = [chance.get(key) for key in ("score", "standard_error", "no_features")]
    random = chance.get("random_features")
    _check(
        _are_numbers(scores + ([] if random is None else [random])), "chance", "must have numbers as scores"
    )
    _check(isinstance(chance.get("better"), bool), "chance", "must say whether the features are better")
    _check(isinstance(chance.get("metric"), str), "chance", "must have the name of a metric")


def _check_discoveries(found: Any, indices: list[int], features: int) -> None:
    """Raise unless this is what fdr chose from: a statistic per feature, and the features from the threshold on."""
    name = "false_discoveries"
    _check(isinstance(found, dict), name, "must be an object")
    statistics, threshold = found.get("statistics"), found.get("threshold")
    fits = isinstance(statistics, list) and len(statistics) == features and _are_numbers(statistics)
    _check(fits, name, "must have one number per feature in 'statistics'")
    numbers = [found.get("rate")] + [v for v in (threshold, found.get("estimated_rate")) if v is not None]
    _check(_are_numbers(numbers), name, "must have a rate, and numbers or null in its results")
    _check(
        _are_integers([found.get(key) for key in ("raced", "knockoffs", "fewest")]),
        name,
        "must have whole numbers",
    )
    chosen = [] if threshold is None else [i for i in range(features) if statistics[i] >= threshold]
    _check(sorted(indices) == chosen, name, "must agree with indices")
    texts = found.get("warnings")
    _check(
        isinstance(texts, list) and all(isinstance(t, str) for t in texts),
        name,
        "must have texts as warnings",
    )


def _check(condition: bool, name: str, problem: str) -> None:
    if not condition:
        raise ValueError(f"{name!r} {problem}")


def _names(raw: dict[str, Any], name: str) -> list[Any]:
    """A list of names: texts, or whatever else names columns of a frame and is plain in JSON."""
    values = raw[name]
    parts = (
        [part for v in values for part in (v if isinstance(v, list) else [v])]
        if isinstance(values, list)
        else [[]]
    )
    plain = all(isinstance(part, str | int | float | bool | None) for part in parts)  # a tuple is a list
    _check(plain, name, "must be a list of names")
    return list(values)


def _integers(raw: dict[str, Any], name: str, start: int, stop: int) -> list[int]:
    _check_integers(name, raw[name], start, stop)
    return list(raw[name])


def _check_integers(name: str, values: Any, start: int, stop: int) -> None:
    _check(isinstance(values, list) and _are_integers(values), name, "must be a list of integers")
    inside = all(start <= value < stop for value in values)
    _check(inside, name, f"must be between {start} and {stop - 1}")


def _numbers(raw: dict[str, Any], name: str) -> list[float]:
    values = raw[name]
    _check(isinstance(values, list) and _are_numbers(values), name, "must be a list of numbers")
    return list(values)


def _are_integers(values: list[Any]) -> bool:
    return all(isinstance(value, int) and not isinstance(value, bool) for value in values)


def _are_numbers(values: list[Any]) -> bool:
    """Whether all are numbers that fit in a float, as 10**400 does not; NaN and infinity do."""
    for value in values:
        if isinstance(value, bool) or not isinstance(value, int | float):
            return False
        try:
            math.isnan(value)
        except OverflowError:
            return False
    return True


def plain_names(fields: dict[str, Any]) -> dict[str, Any]:
    """The fields of a selection with names as JSON can hold them; scores of the history have texts as keys."""
    names = {field: [_plain_name(name) for name in fields[field]] for field in NAMED}
    importance = _rename_stand_ins(fields["importance"], _plain_name)
    return fields | names | {"history": [_plain_phase(phase) for phase in fields["history"]]} | importance


def named_fields(raw: dict[str, Any]) -> dict[str, Any]:
    """The opposite of ``plain_names``: names as the user gave them."""
    names = {field: [_given_name(name) for name in raw[field]] for field in NAMED}
    name_of = {str(name): name for name in names["names"]}
    importance = _rename_stand_ins(raw["importance"], _given_name)
    return raw | names | {"history": [_named_phase(phase, name_of) for phase in raw["history"]]} | importance


def _rename_stand_ins(importance: dict[str, Any] | None, rename: Callable[[Any], Any]) -> dict[str, Any]:
    """The field ``importance`` with the names of its stand-ins changed."""
    if not importance or "stand_ins" not in importance:
        return {}
    renamed = [[[rename(name), value] for name, value in pairs] for pairs in importance["stand_ins"]]
    return {"importance": importance | {"stand_ins": renamed}}


def _plain_name(name: Any) -> Any:
    """A tuple as a list, and anything but text and numbers as text."""
    if isinstance(name, tuple):
        return [_plain_name(part) for part in name]
    return name if name is None or isinstance(name, str | int | float) else str(name)


def _given_name(name: Any) -> Any:
    return tuple(map(_given_name, name)) if isinstance(name, list) else name


def _plain_phase(phase: dict[str, Any]) -> dict[str, Any]:
    names = {key: [_plain_name(name) for name in phase[key]] for key in ("taken", "dropped") if key in phase}
    scores = phase.get("scores")
    return phase | names | ({"scores": {str(n): s for n, s in scores.items()}} if scores else {})


def _named_phase(phase: dict[str, Any], name_of: dict[str, Any]) -> dict[str, Any]:
    lists = {key: phase[key] for key in ("taken", "dropped") if isinstance(phase.get(key), list)}
    names = {key: [_given_name(name) for name in some] for key, some in lists.items()}
    scores = phase.get("scores")
    named = {name_of.get(n, n): s for n, s in scores.items()} if isinstance(scores, dict) else None
    return phase | names | ({} if named is None else {"scores": named})
