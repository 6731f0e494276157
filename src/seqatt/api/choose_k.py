"""``k="auto"``: how many features to select, from the scores of networks in cross-validation.

The rows are divided into folds. For each fold, the method orders up to ``max_k`` features on the other rows, networks
train there on the first 1, 2, 3, 4, 6, ... of them, and their outputs are scored on the fold: no score uses rows on
which its features were selected or its networks trained. The number k is chosen from the mean scores, and k features
are then selected on all rows.
"""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np

from seqatt.algorithms.answer_options import BEST, ONE_STANDARD_ERROR
from seqatt.algorithms.registry import DEFAULT, Method
from seqatt.algorithms.request import SelectionRequest
from seqatt.api.confidence.folds import (
    FOLDS,
    MIN_ROWS,
    Fold,
    balance_classes,
    divide_rows,
    fold_correction,
    make_fold,
    noise_errors,
    pool_folds,
    score_nothing,
    score_sets,
    target_varies,
)
from seqatt.data.tables.table_data import TableData
from seqatt.data.tables.target import Target
from seqatt.losses.loss import Score
from seqatt.progress import Advance
from seqatt.training.screening.copies import copies_last
from seqatt.training.screening.row_sample import draw_sample

FOLD_BUDGET = 0.2  # steps of a fold's selection, as a share of the default
NETWORK_SHARE = 0.25  # steps of a network, as a share of those in ``evaluate``: sizes are only compared
TAKE_PHASES = 10  # phases, at most, in which a fold's selection takes max_k features
MAX_SIZE = 50  # default of max_k: more are no short list, and a training has about 50 phases
ROWS_PER_FEATURE = 5  # default of max_k: at most one feature per this many rows
SIZE_RATIO = 1.5  # of one size that is tried first to the next
MAX_BETWEEN = 6  # sizes tried between the chosen one and the next smaller
# Share of the gain of the best size that counts as nothing, where one standard error is even less.
MARGIN = 0.01
MIN_Z = 2.0  # corrected standard errors by which the best size must beat no features; else none is chosen
# Of the rarer of two classes: not even a perfect order of fewer rows is so much better than no features.
MIN_CLASS_ROWS = 4


def resolve_max_k(data: TableData, requested: int | None, sizes: tuple[int, int], kept: int) -> int:
    """The most features that may be chosen; refuses a table that is too small to be divided into folds.

    ``sizes`` are the fewest and the most that may be selected, of which ``kept`` are selected anyway.
    """
    if data.rows < FOLDS * MIN_ROWS:
        raise ValueError(
            f"k: 'auto' needs at least {FOLDS * MIN_ROWS} rows, got {data.rows}: the scores of fewer are too uncertain "
            "to compare; use a number"
        )
    varying = int((~data.constant).sum())
    fewest, most = max(sizes[0], kept + 1), sizes[1]
    if fewest > most:
        raise ValueError(
            f"keep: has all {kept} features that may be selected; use k={kept} features as they are"
        )
    if requested is not None and requested < fewest:
        raise ValueError(
            f"max_k: {requested} is less than the {fewest} features that keep and quotas need; raise it"
        )
    default = min(varying, MAX_SIZE, max(1, data.rows // ROWS_PER_FEATURE))
    return min(requested or max(default, fewest), most)


def choose_k(
    method: Method, request: SelectionRequest, rule: str | float, advance: Advance, fewest: int = 1
) -> dict[str, Any]:
    """The curve from which the number of features up to ``request.k`` is chosen; "chosen" is that number.

    It is at least ``fewest`` and more than those that are kept, even where nothing is found.
    """
    fewest = max(fewest, len(request.kept) + 1)
    data, max_k, seed = request.table, request.k, request.seeds[0]
    if method.trains and request.options.loss is None:  # one of the user's may take no weights
        data = balance_classes(data)
    _warn_about_rare_class(data.target)
    advance(0, "Choosing k", FOLDS + 2)
    folds = [make_fold(data, rows) for rows in divide_rows(data, seed)]
    orders, random = [], []
    for number, fold in enumerate(folds, 1):
        orders.append(_order_features(method, request, fold, number))
        varying = np.flatnonzero(~data.constant)
        random.append(np.random.default_rng([seed, int(fold.rows[0])]).permutation(varying).tolist())
        advance(1)
    sizes = sorted({max(fewest, size) for size in first_sizes(max_k)})
    everything = np.flatnonzero(~data.constant).tolist()
    *means, of_all = score_sets(
        folds,
        [[request.first(order, size) for size in sizes] + [everything] for order in orders],
        seed,
        NETWORK_SHARE,
    )
    advance(1)
    curve: dict[str, Any] = {
        "metric": data.target.loss.score_name,
        "folds": FOLDS,
        "rows": data.rows,
        "no_features": score_nothing(folds),
        "all_features": of_all.mean,
    } | _points(sizes, means)
    noise_error = pool_folds([Score(0.0, error) for error in noise_errors(folds)]).standard_error
    chosen = choose_size(curve, rule, noise_error)
    between, random_size = _between(sizes, chosen), chosen or max_k
    sets = [
        [request.first(order, size) for size in between] + [shuffled[:random_size]]
        for order, shuffled in zip(orders, random, strict=True)
    ]
    *more, of_random = score_sets(folds, sets, seed, NETWORK_SHARE)
    curve |= {"random_features": of_random.mean, "random_size": min(random_size, len(everything))}
    curve |= _points(sizes + between, means + more)
    advance(1)
    constrained = bool(request.kept) or request.quotas is not None
    return curve | {"chosen": choose_size(curve, rule, noise_error) or fewest * constrained}


def _warn_about_rare_class(target: Target) -> None:
    if target.task != "binary" or target.codes is None or target.classes is None:
        return
    rows = np.bincount(target.codes, minlength=2)
    if rows.min() < MIN_CLASS_ROWS:
        warnings.warn(
            f"k: 'auto' cannot tell features from noise where a class has fewer than {MIN_CLASS_ROWS} rows, as class "
            f"{target.classes[rows.argmin()]} has here; a number as k selects as many anyway",
            stacklevel=2,
        )


def _points(sizes: list[int], scores: list[Score]) -> dict[str, list[Any]]:
    """Sizes in rising order, with their scores."""
    order = np.argsort(sizes)
    return {
        "sizes": [sizes[i] for i in order],
        "means": [scores[i].mean for i in order],
        "standard_errors": [scores[i].standard_error for i in order],
    }


def first_sizes(max_k: int) -> list[int]:
    """From 1 to ``max_k``, each about 1.5 times the one before: 1, 2, 3, 4, 6, 9, 14, 21, 32, 48."""
    sizes = [1]
    while (size := max(sizes[-1] + 1, round(SIZE_RATIO * sizes[-1]))) * SIZE_RATIO**0.5 < max_k or size < 4:
        if size >= max_k:
            break
        sizes.append(size)
    return sizes if max_k == 1 else [*sizes, max_k]


def _between(sizes: list[int], chosen: int) -> list[int]:
    """Sizes between the chosen one and the next smaller, evenly spaced; none if nothing was chosen."""
    if chosen <= sizes[0]:
        return []
    below = sizes[sizes.index(chosen) - 1]
    return sorted(
        {round(size) for size in np.linspace(below, chosen, MAX_BETWEEN + 2)[1:-1]} - {below, chosen}
    )


def choose_size(curve: dict[str, Any], rule: str | float, noise_error: float = 0.0) -> int:
    """The number of features that the rule chooses; 0 if no size is clearly better than no features.

    ``noise_error`` is the standard error of the score of noise. That of a score is an estimate, which is much too small
    for some of the sizes where a class has few rows.
    """
    sizes, means, errors = curve["sizes"], np.array(curve["means"]), np.array(curve["standard_errors"])
    best = int(means.argmax())
    error = fold_correction(curve["folds"]) * max(errors[best], noise_error)
    if means[best] - curve["no_features"] <= MIN_Z * error:
        return 0
    if rule == BEST:
        return int(sizes[best])
    if rule == ONE_STANDARD_ERROR:
        enough = means[best] - max(errors[best], MARGIN * (means[best] - curve["no_features"]))
    else:
        share = float(rule)
        enough = curve["no_features"] + share * (curve["all_features"] - curve["no_features"])
    reaches = np.flatnonzero(means >= min(enough, means[best]))
    return int(sizes[reaches[0]])


def _order_features(method: Method, request: SelectionRequest, fold: Fold, number: int) -> list[int]:
    """All features, ordered on all rows but those of the fold; copies are the last of the first max_k.

    Quotas are not used here: a prefix takes the first features of the order that they allow.
    """
    options, kept = request.options, len(request.kept)
    if not target_varies(fold.train):
        return [*request.kept, *np.setdiff1d(np.arange(fold.train.features), request.kept).tolist()]
    of_fold = replace(request, data=fold.train, quotas=None)
    epochs = method.plan(of_fold).settings.get("epochs")
    if epochs:
        of_fold = replace(of_fold, options=replace(options, epochs=FOLD_BUDGET * epochs))
    if method.name == DEFAULT and options.extended and options.one_pass:
        # Select max_k features, then drop all but one: the networks train on those that are left between two drops.
        most = request.k - kept
        down_to_one = {
            "surplus": float(most),
            "replacement": 0,
            "exchanges": 0,
            "features_per_phase": -(-most // TAKE_PHASES),
        }
        of_fold = replace(of_fold, k=kept + 1, options=replace(of_fold.options, **down_to_one))
    plan = method.plan(of_fold)
    of_fold = of_fold.as_part(f"fold {number} of {FOLDS}", plan.steps)
    trace = of_fold.arrange(method.select(of_fold, plan, of_fold.hook.advance)[0])
    ranking = trace.order + trace.rest
    return copies_last(ranking[: request.k], draw_sample(fold.train), kept) + ranking[request.k :]
