"""The file of a saved selection: read, and checked before a ``Selection`` is made of it."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from seqatt.json_files import (
    are_integers,
    are_numbers,
    check,
    check_integers,
    read_integers,
    read_json,
    read_names,
    read_numbers,
)

if TYPE_CHECKING:
    from seqatt.selection import Selection

NAMED = ("features", "names", "input_names")  # fields that hold names
NOTHING_FOUND = "no number of features does better than none"  # of an empty selection of k="auto"
NOTHING_DISCOVERED = "no feature stands out from its knockoffs at this rate"  # the same of fdr
CURVE_NUMBERS = ("no_features", "all_features", "random_features")  # in the curve of k="auto"
NOT_WORTH_IT = "no feature is worth its cost at this rate"  # the same of cost_rate
# None where they were not measured.
FINDINGS = ("curve", "importance", "stability", "false_discoveries", "chance", "frontier")
FORMAT = 2  # version of the JSON format
RENAMED_IN_FORMAT_2 = {"members": "input_columns", "inputs": "input_names"}  # format 1 is read too


def why_empty(selection: Selection) -> str | None:
    """Why nothing was selected, where that is the answer of k="auto", of fdr or of costs; else None."""
    if selection.features or selection.settings.get("partial"):
        return None
    if selection.false_discoveries is not None:
        return NOTHING_DISCOVERED
    if selection.frontier is not None:
        return NOT_WORTH_IT if "cost_rate" in selection.settings else NOTHING_FOUND
    return NOTHING_FOUND if selection.curve is not None else None


def found_together(curve: dict[str, Any] | None, settings: dict[str, Any]) -> bool:
    """Whether k="auto" found features that are better than none, which says more than tests of each alone.

    With ``keep`` and ``quotas`` it selects some even where nothing is found.
    """
    constrained = settings.get("keep") or settings.get("quotas")
    return curve is not None and bool(curve["chosen"]) and not constrained


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
    check(isinstance(raw["method"], str), "method", "must be a name")
    check(are_integers([raw["seed"]]), "seed", "must be an integer")
    names, inputs = read_names(raw, "names"), read_names(raw, "input_names")
    indices = read_integers(raw, "indices", 0, len(names))
    check(len(set(indices)) == len(indices), "indices", "must not contain duplicates")
    features = read_names(raw, "features")
    check(features == [names[i] for i in indices], "features", "must be the names at the indices")
    check(len(read_numbers(raw, "scores")) == len(indices), "scores", "must be one per selected feature")
    ranking = read_integers(raw, "ranking", 1, len(names) + 1)
    check(
        sorted(ranking) == list(range(1, len(names) + 1)), "ranking", "must have every rank once, from 1 on"
    )
    check(
        [ranking[i] for i in indices] == list(range(1, len(indices) + 1)),
        "ranking",
        "must agree with indices",
    )
    support, chosen = raw["support"], set(indices)
    check(support == [i in chosen for i in range(len(names))], "support", "must mark the selected features")
    check(all(isinstance(s, bool) for s in support), "support", "must be true or false for every feature")
    grouped = raw["input_columns"]
    check(
        isinstance(grouped, list) and len(grouped) == len(names), "input_columns", "must be one per feature"
    )
    for columns in grouped:
        check_integers("input_columns", columns, 0, len(inputs))
    columns = [column for i in indices for column in grouped[i]]
    check(read_integers(raw, "columns", 0, len(inputs)) == columns, "columns", "must be those of the indices")
    history = raw["history"]
    check(
        isinstance(history, list) and all(isinstance(h, dict) for h in history), "history", "must be objects"
    )
    check(isinstance(raw["settings"], dict), "settings", "must be an object")
    check(isinstance(raw["settings"].get("target", ""), str), "settings", "must have a text as target")
    environment = raw["environment"]
    texts = isinstance(environment, dict) and all(isinstance(v, str) for v in environment.values())
    check(texts, "environment", "must be an object of texts")
    check(are_numbers([raw["seconds"]]), "seconds", "must be a number")
    timings = raw["timings"]
    check(
        isinstance(timings, dict) and are_numbers(list(timings.values())),
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
    if raw["frontier"] is not None:
        _check_frontier(raw["frontier"])
    if raw["false_discoveries"] is not None:
        _check_discoveries(raw["false_discoveries"], indices, len(names))


def _check_curve(curve: Any, selected: int, features: int, *, partial: bool) -> None:
    """Raise unless this is what k="auto" chose from: rising sizes, and a mean and a standard error of each."""
    check(isinstance(curve, dict), "curve", "must be an object")
    sizes = curve.get("sizes")
    check_integers("curve", sizes, 1, features + 1)
    check(bool(sizes) and sizes == sorted(set(sizes)), "curve", "must have rising sizes")
    for name in ("means", "standard_errors"):
        values = curve.get(name)
        fits = isinstance(values, list) and len(values) == len(sizes) and are_numbers(values)
        check(fits, "curve", f"must have one number per size in {name!r}")
    check(are_numbers([curve.get(name) for name in CURVE_NUMBERS]), "curve", "must have numbers in its lines")
    check(isinstance(curve.get("metric"), str), "curve", "must have the name of a metric")
    check(are_integers([curve.get("random_size"), curve.get("folds")]), "curve", "must have whole numbers")
    chosen = curve.get("chosen")
    fits = chosen == selected or (partial and are_integers([chosen]) and selected < chosen)
    check(fits, "curve", "must have chosen as many features as are selected")


def _check_frontier(frontier: Any) -> None:
    """Raise unless this is what a budget chose from: rising costs, and a mean and a standard error of each."""
    check(isinstance(frontier, dict), "frontier", "must be an object")
    costs = frontier.get("costs")
    check(isinstance(costs, list) and bool(costs) and are_numbers(costs), "frontier", "must have costs")
    check(costs == sorted(set(costs)), "frontier", "must have rising costs")
    for name in ("means", "standard_errors"):
        values = frontier.get(name)
        fits = isinstance(values, list) and len(values) == len(costs) and are_numbers(values)
        check(fits, "frontier", f"must have one number per cost in {name!r}")
    numbers = [frontier.get(name) for name in ("no_features", "all_features", "all_cost", "cost")]
    check(are_numbers(numbers), "frontier", "must have numbers in its lines")
    check(isinstance(frontier.get("metric"), str), "frontier", "must have the name of a metric")


def _check_importance(importance: Any, indices: list[int], names: list[Any]) -> None:
    """Raise unless this says of every selected feature how much it adds, and which rejected ones are like it."""
    name = "importance"
    check(isinstance(importance, dict), name, "must be an object")
    for key in ("increases", "standard_errors"):
        values = importance.get(key)
        fits = isinstance(values, list) and len(values) == len(indices) and are_numbers(values)
        check(fits, name, f"must have one number per selected feature in {key!r}")
    check(are_numbers([importance.get("loss")]), name, "must have a number as loss")
    check(
        are_integers([importance.get(key) for key in ("rows", "networks")]), name, "must have whole numbers"
    )
    if "stand_ins" not in importance:
        return
    lists, rejected = importance["stand_ins"], [n for i, n in enumerate(names) if i not in set(indices)]
    fits = isinstance(lists, list) and len(lists) == len(indices) and all(isinstance(x, list) for x in lists)
    check(fits, name, "must have one list per selected feature in 'stand_ins'")
    for pair in (pair for pairs in lists for pair in pairs):
        fits = isinstance(pair, list) and len(pair) == 2 and pair[0] in rejected and are_numbers(pair[1:])
        check(fits, name, "must have a rejected feature and a number in every stand-in")


def _check_stability(stability: Any, raw: dict[str, Any], features: int) -> None:
    """Raise unless this is what repeats say: a share per feature, clusters that share no feature, and bounds."""
    name = "stability"
    check(isinstance(stability, dict), name, "must be an object")
    counts = [stability.get(key) for key in ("repeats", "rows", "bounded")]
    check(are_integers(counts) and min(counts) >= 0, name, "must have whole numbers")
    check(
        counts[0] >= 2 and counts[2] <= len(raw["indices"]),
        name,
        "must have repeats, and bound selected features",
    )
    frequency, clusters = stability.get("frequency"), stability.get("clusters")
    fits = isinstance(frequency, list) and len(frequency) == features
    check(fits and _are_shares(frequency), name, "must have a share per feature in 'frequency'")
    fits = isinstance(clusters, list) and all(isinstance(each, dict) for each in clusters)
    check(fits, name, "must have objects in 'clusters'")
    for each in clusters:
        check_integers(name, each.get("features"), 0, features)
    members = [feature for each in clusters for feature in each["features"]]
    check(len(set(members)) == len(members), name, "must have a feature in one cluster at most")
    check(_are_shares([each.get("frequency") for each in clusters]), name, "must have a share per cluster")
    bound = [stability.get(key) for key in ("threshold", "false_choices", "false_choices_any")]
    check(are_numbers(bound), name, "must have a threshold and two bounds")


def _are_shares(values: list[Any]) -> bool:
    return are_numbers(values) and all(0 <= value <= 1 for value in values)


def _check_chance(chance: Any) -> None:
    """Raise unless these are the scores of selected, of random and of no features."""
    check(isinstance(chance, dict), "chance", "must be an object")
    scores = [chance.get(key) for key in ("score", "standard_error", "no_features")]
    random = chance.get("random_features")
    check(are_numbers(scores + ([] if random is None else [random])), "chance", "must have numbers as scores")
    check(isinstance(chance.get("better"), bool), "chance", "must say whether the features are better")
    check(isinstance(chance.get("metric"), str), "chance", "must have the name of a metric")


def _check_discoveries(found: Any, indices: list[int], features: int) -> None:
    """Raise unless this is what fdr chose from: a statistic per feature, and the features from the threshold on."""
    name = "false_discoveries"
    check(isinstance(found, dict), name, "must be an object")
    statistics, threshold = found.get("statistics"), found.get("threshold")
    fits = isinstance(statistics, list) and len(statistics) == features and are_numbers(statistics)
    check(fits, name, "must have one number per feature in 'statistics'")
    numbers = [found.get("rate")] + [v for v in (threshold, found.get("estimated_rate")) if v is not None]
    check(are_numbers(numbers), name, "must have a rate, and numbers or null in its results")
    check(
        are_integers([found.get(key) for key in ("raced", "knockoffs", "fewest")]),
        name,
        "must have whole numbers",
    )
    chosen = [] if threshold is None else [i for i in range(features) if statistics[i] >= threshold]
    check(sorted(indices) == chosen, name, "must agree with indices")
    texts = found.get("warnings")
    check(
        isinstance(texts, list) and all(isinstance(t, str) for t in texts),
        name,
        "must have texts as warnings",
    )


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
