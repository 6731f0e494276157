"""Sentences about a selection, from its facts, and what to try next."""

from __future__ import annotations

from typing import Any

from seqatt.display_text import chosen_in
from seqatt.report.facts.constraint_facts import frontier_sentence
from seqatt.report.values import capital, count, metric_name, number, score
from seqatt.selection_file import found_together, no_better

MAX_NAMED = 10  # features that the summary names


def summarize(facts: dict[str, Any]) -> list[str]:
    """The answer in a few sentences; each is there if its facts are."""
    sentences = []
    if facts["partial"]:
        sentences.append(
            f"This selection is not complete: the run was {facts['partial']} after "
            f"{count(facts['selected'], 'feature')}."
        )
    if facts["empty"]:
        sentences.append(f"Nothing selected: {facts['empty']}.")
    sentences += [_selected(facts)] if facts["selected"] else []
    sentences += [_curve(facts)] if facts["curve"] else []
    sentences += [frontier_sentence(facts["frontier"])] if facts["frontier"] and facts["selected"] else []
    sentences += [_evaluation(facts)] if facts["evaluation"] else []
    sentences += [_chance(facts["chance"], facts["settings"])] if facts["chance"] else []
    measured = any(facts[name] for name in ("curve", "frontier", "evaluation", "chance"))
    if facts["selected"] and not measured:
        sentences.append("What is lost against all features was not measured.")
    sentences += [_discoveries(facts)] if facts["false_discoveries"] and facts["selected"] else []
    sentences += [_stability(facts)] if facts["stability"] and facts["selected"] else []
    sentences += [facts["constraints"]] if facts["constraints"] else []
    smallest = facts["settings"].get("min_q_value")
    tested = facts["chance"] or found_together(facts["curve"], facts["settings"])
    if smallest is not None and smallest > 0.05 and not tested:
        sentences.append(
            f"No feature is related to the target by itself (smallest q-value {number(smallest, 2)}); features may "
            "still matter together."
        )
    return [*sentences, *facts["notes"]]


def _selected(facts: dict[str, Any]) -> str:
    k, names = facts["selected"], [row["feature"] for row in facts["features"][:MAX_NAMED]]
    target = "" if facts["target"] is None else f" for {facts['target']}"
    order = ", in this order" if k > 1 else ""
    more = f" and {k - len(names):,} more" if k > len(names) else ""
    return (
        f"Selected {k:,} of {count(facts['available'], 'feature')}{target}{order}: {', '.join(names)}{more}."
    )


def _curve(facts: dict[str, Any]) -> str:
    curve, k = facts["curve"], facts["selected"]
    metric = metric_name(curve["metric"])
    if not k:
        return (
            f"{metric} in cross-validation: {score(curve['all_features'])} with all {facts['available']:,} features, "
            f"{score(curve['no_features'])} with none."
        )
    mean = curve["means"][curve["sizes"].index(k)] if k in curve["sizes"] else max(curve["means"])
    reach = "reaches" if k == 1 else "reach"
    return (
        f"In cross-validation, {count(k, 'feature')}, selected again without the rows of each fold, {reach} {metric} "
        f"{score(mean)}; all {facts['available']:,} reach {score(curve['all_features'])}, and {curve['random_size']} "
        f"random ones {score(curve['random_features'])}."
    )


def _chance(chance: dict[str, Any], settings: dict[str, Any]) -> str:
    metric = metric_name(chance.get("metric", "score"))
    verdict = "They are better than chance" if chance["better"] else f"They are {no_better(settings)}"
    random = chance["random_features"]
    beside = "" if random is None else f"{score(random)} with as many random ones, "
    return (
        f"{verdict}: {metric} {score(chance['score'])} ± {score(chance['standard_error'])} on rows that were "
        f"not used to select, {beside}{score(chance['no_features'])} with no features."
    )


def _discoveries(facts: dict[str, Any]) -> str:
    found = facts["false_discoveries"]
    return f"At most {found['rate']:.0%} of them are expected to be false discoveries, by knockoffs of every feature."


def _stability(facts: dict[str, Any]) -> str:
    rows = [row for row in facts["features"] if row["score"] is not None]
    shares, own = [row["score"] for row in rows], [row["frequency"] for row in rows]
    often = chosen_in(shares, own, facts["stability"]["repeats"], "was selected")
    return f"{capital(often)} on halves of the rows."


def _evaluation(facts: dict[str, Any]) -> str:
    evaluation = facts["evaluation"]
    metric = evaluation["metrics"][0]
    by_name = {each["name"]: each["values"][metric]["mean"] for each in evaluation["sets"]}
    where = f"On {evaluation['rows']}" if evaluation["rows"] else "On test rows"
    words = {"selected": "the selected features", "all": "all features", "random": "as many at random"}
    first, *rest = [name for name in words if name in by_name]
    features = "as many random features" if first == "random" else words[first]
    text = f"{where}, a network with {features} has {metric_name(metric)} {score(by_name[first])}"
    others = [f"with {words[name]} {score(by_name[name])}" for name in rest]
    return f"{text}; {' and '.join(others)}." if others else f"{text}."


def next_steps(facts: dict[str, Any]) -> list[str]:
    """At most three things to try, those that say most about this answer first."""
    steps = []
    curve, k = facts["curve"], facts["selected"]
    if facts["partial"]:
        steps.append("Run the command again with --resume to complete the selection.")
    if curve and k and k == curve["sizes"][-1]:
        steps.append(
            f"The largest number tried ({k}) was chosen: raise max_k to see whether more features help."
        )
    if not curve and not facts["false_discoveries"] and not facts["frontier"]:
        steps.append('How many features are needed? k="auto" (-k auto) finds out by cross-validation.')
    if not curve and not facts["evaluation"]:
        steps.append(
            "What is lost against all features? --holdout 0.2, or seqatt.evaluate on test rows, shows it."
        )
    if not facts["stability"] and not facts["false_discoveries"] and not facts["frontier"]:
        steps.append(
            "How sure is each feature? repeats=20 (--repeats 20) selects on halves of the rows, many times."
        )
    if not facts["distributions"]:
        steps.append(
            "Selection.report(path, X, y), or --report with seqatt select, adds how each feature relates to the target."
        )
    return steps[:3]
