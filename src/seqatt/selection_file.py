"""The file of a saved selection: read, and checked before a ``Selection`` is made of it."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from seqatt.display_text import LEAVES_RANGE
from seqatt.json_files import (
    Fields,
    check,
    check_fields,
    check_integers,
    is_a,
    is_integer,
    is_number,
    is_share,
    list_of,
    object_of,
    or_null,
    read_integers,
    read_json,
    read_names,
)

if TYPE_CHECKING:
    from seqatt.selection import Selection

NAMED = ("features", "names", "input_names")  # fields that hold names
NOTHING_FOUND = "no number of features does better than none"  # of an empty selection of k="auto"
NOTHING_DISCOVERED = "no feature stands out from its knockoffs at this rate"  # the same of fdr
OUT_OF_RANGE = "on later rows, which leave the range of earlier ones"  # what such a verdict is about
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
        reason = NOT_WORTH_IT if "cost_rate" in selection.settings else NOTHING_FOUND
        return _about_rows(reason, selection.settings)
    return _about_rows(NOTHING_FOUND, selection.settings) if selection.curve is not None else None


def no_better(settings: dict[str, Any]) -> str:
    """The verdict of ``Selection.chance`` where features are not better than random ones."""
    return _about_rows("no better than chance", settings)


def _about_rows(verdict: str, settings: dict[str, Any]) -> str:
    """The verdict, and that it is about later rows, where these leave the range of the earlier ones."""
    return f"{verdict} {OUT_OF_RANGE}" if settings.get(LEAVES_RANGE) else verdict


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


ONE_PER = "must have one number per {per} in {!r}"
METRIC = Fields("metric", is_a(str), "must have the name of a metric")
SCORES = "must have numbers as scores"
RATES = "must have a rate, and numbers or null in its results"
FIELDS = {
    "selection": (
        Fields("method", is_a(str), "must be a name"),
        Fields("seed", is_integer, "must be an integer"),
        Fields("scores", list_of(is_number), "must be a list of numbers"),
        Fields("history", list_of(is_a(dict)), "must be objects"),
        Fields("settings", is_a(dict), "must be an object"),
        Fields("environment", object_of(is_a(str)), "must be an object of texts"),
        Fields("seconds", is_number, "must be a number"),
        Fields("timings", object_of(is_number), "must be an object of numbers"),
        Fields(" ".join(FINDINGS), or_null(is_a(dict)), "must be an object"),
    ),
    "curve": (
        Fields("sizes", list_of(is_integer), "must be a list of integers"),
        Fields("means standard_errors", is_number, ONE_PER, "size"),
        Fields("no_features all_features random_features", is_number, "must have numbers in its lines"),
        Fields("random_size folds", is_integer, "must have whole numbers"),
        METRIC,
    ),
    "importance": (
        Fields("increases standard_errors", is_number, ONE_PER, "selected feature"),
        Fields("loss", is_number, "must have a number as loss"),
        Fields("rows networks", is_integer, "must have whole numbers"),
    ),
    "stability": (
        Fields("repeats rows bounded", is_integer, "must have whole numbers"),
        Fields("frequency", is_share, "must have a share per feature in {!r}", "feature"),
        Fields("clusters", list_of(is_a(dict)), "must have objects in {!r}"),
        Fields(
            "threshold false_choices false_choices_any", is_number, "must have a threshold and two bounds"
        ),
    ),
    "false_discoveries": (
        Fields("statistics", is_number, ONE_PER, "feature"),
        Fields("rate", is_number, RATES),
        Fields("threshold estimated_rate", or_null(is_number), RATES),
        Fields("raced knockoffs fewest", is_integer, "must have whole numbers"),
        Fields("warnings", list_of(is_a(str)), "must have texts as warnings"),
    ),
    "chance": (
        Fields("score standard_error no_features", is_number, SCORES),
        Fields("random_features", or_null(is_number), SCORES),
        Fields("better", is_a(bool), "must say whether the features are better"),
        METRIC,
    ),
    "frontier": (
        Fields("costs", list_of(is_number), "must have costs"),
        Fields("means standard_errors", is_number, ONE_PER, "cost"),
        Fields("no_features all_features all_cost cost", is_number, "must have numbers in its lines"),
        METRIC,
    ),
}


def check_selection(raw: dict[str, Any]) -> None:
    """Raise unless the fields have the types, lengths and ranges of a selection, and agree with each other."""
    check_fields(FIELDS["selection"], raw)
    names, inputs = read_names(raw, "names"), read_names(raw, "input_names")
    indices = read_integers(raw, "indices", 0, len(names))
    check(len(set(indices)) == len(indices), "indices", "must not contain duplicates")
    features = read_names(raw, "features")
    check(features == [names[i] for i in indices], "features", "must be the names at the indices")
    check(len(raw["scores"]) == len(indices), "scores", "must be one per selected feature")
    ranking, ranks = read_integers(raw, "ranking", 1, len(names) + 1), range(1, len(names) + 1)
    check(sorted(ranking) == list(ranks), "ranking", "must have every rank once, from 1 on")
    agrees = [ranking[i] for i in indices] == list(ranks[: len(indices)])
    check(agrees, "ranking", "must agree with indices")
    support, selected = raw["support"], set(indices)
    check(support == [i in selected for i in range(len(names))], "support", "must mark the selected features")
    check(list_of(is_a(bool))(support), "support", "must be true or false for every feature")
    grouped = raw["input_columns"]
    fits = isinstance(grouped, list) and len(grouped) == len(names)
    check(fits, "input_columns", "must be one per feature")
    for columns in grouped:
        check_integers("input_columns", columns, 0, len(inputs))
    columns = [column for i in indices for column in grouped[i]]
    check(read_integers(raw, "columns", 0, len(inputs)) == columns, "columns", "must be those of the indices")
    check(isinstance(raw["settings"].get("target", ""), str), "settings", "must have a text as target")
    findings = {name: raw[name] for name in FINDINGS if raw[name] is not None}
    for name, finding in findings.items():
        check_fields(FIELDS[name], finding, name, {"feature": len(names), "selected feature": len(indices)})
    if "curve" in findings:
        _check_curve(findings["curve"], len(indices), len(names), partial="partial" in raw["settings"])
    if "importance" in findings:
        _check_stand_ins(findings["importance"], indices, names)
    if "stability" in findings:
        _check_stability(findings["stability"], len(indices), len(names))
    if "false_discoveries" in findings:
        _check_discoveries(findings["false_discoveries"], indices, len(names))
    if "frontier" in findings:
        costs = findings["frontier"]["costs"]
        check(bool(costs) and costs == sorted(set(costs)), "frontier", "must have rising costs")


def _check_curve(curve: dict[str, Any], selected: int, features: int, *, partial: bool) -> None:
    """Raise unless k="auto" chose as many features as are selected, from rising sizes."""
    sizes: list[int] = curve["sizes"]
    chosen: Any = curve.get("chosen")
    check_integers("curve", sizes, 1, features + 1)
    check(bool(sizes) and sizes == sorted(set(sizes)), "curve", "must have rising sizes")
    fits = chosen == selected or (partial and is_integer(chosen) and chosen > selected)
    check(fits, "curve", "must have chosen as many features as are selected")


def _check_stand_ins(importance: dict[str, Any], indices: list[int], names: list[Any]) -> None:
    """Raise unless every selected feature has a list of pairs: a rejected feature and a number."""
    if "stand_ins" not in importance:
        return
    lists, rejected = importance["stand_ins"], [n for i, n in enumerate(names) if i not in set(indices)]
    fits = list_of(is_a(list))(lists) and len(lists) == len(indices)
    check(fits, "importance", "must have one list per selected feature in 'stand_ins'")
    for pair in (pair for pairs in lists for pair in pairs):
        fits = isinstance(pair, list) and len(pair) == 2 and pair[0] in rejected and is_number(pair[1])
        check(fits, "importance", "must have a rejected feature and a number in every stand-in")


def _check_stability(stability: dict[str, Any], selected: int, features: int) -> None:
    """Raise unless there are several repeats, bounds on selected features, and clusters that share no feature."""
    name, clusters = "stability", stability["clusters"]
    fits = stability["repeats"] >= 2 and stability["rows"] >= 0 and 0 <= stability["bounded"] <= selected
    check(fits, name, "must have repeats, and bound selected features")
    for cluster in clusters:
        check_integers(name, cluster.get("features"), 0, features)
        check(is_share(cluster.get("frequency")), name, "must have a share per cluster")
    members = [feature for cluster in clusters for feature in cluster["features"]]
    check(len(set(members)) == len(members), name, "must have a feature in one cluster at most")


def _check_discoveries(found: dict[str, Any], indices: list[int], features: int) -> None:
    """Raise unless the selected features are those whose statistic reaches the threshold."""
    statistics, threshold = found["statistics"], found.get("threshold")
    reached = [] if threshold is None else [i for i in range(features) if statistics[i] >= threshold]
    check(sorted(indices) == reached, "false_discoveries", "must agree with indices")


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
    names = {key: [_given_name(name) for name in listed] for key, listed in lists.items()}
    scores = phase.get("scores")
    named = {name_of.get(n, n): s for n, s in scores.items()} if isinstance(scores, dict) else None
    return phase | names | ({} if named is None else {"scores": named})
