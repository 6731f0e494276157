"""Options of every method about its result: the number of features, constraints, and confidence checks."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from seqatt.algorithms.constraint_options import ConstraintOptions
from seqatt.algorithms.registry import Method, all_methods
from seqatt.options import SELECTION, option
from seqatt.validation import boolean, integer, number, show

AUTO = "auto"
ONE_STANDARD_ERROR, BEST = "one_standard_error", "best"


def _rule(name: str, value: Any) -> str | float:
    """A rule by name, or a share above 0 and at most 1, which a command line gives as text."""
    if value in (ONE_STANDARD_ERROR, BEST):
        return str(value)
    with suppress(TypeError, ValueError):
        if not isinstance(value, bool) and 0 < float(value) <= 1:
            return float(value)
    raise ValueError(
        f"{name}: must be {ONE_STANDARD_ERROR!r}, {BEST!r} or a share above 0 and at most 1, such as 0.95, got "
        f"{show(value)}"
    )


def _even(name: str, value: Any) -> int | None:
    """An even number of repeats, because halves of the rows come in pairs."""
    checked: int | None = integer(2, optional=True)(name, value)
    if checked is not None and checked % 2:
        raise ValueError(f"{name}: must be even, because halves of the rows come in pairs, got {show(value)}")
    return checked


@dataclass(frozen=True)
class AnswerOptions(ConstraintOptions):
    """Number of features, constraints, and checks of the result."""

    max_k: int | None = option(
        None,
        integer(1, optional=True),
        "With k='auto', the most features it may choose; by default 50, or fewer if there are fewer features or rows.",
        group=SELECTION,
    )
    k_rule: str | float = option(
        ONE_STANDARD_ERROR,
        _rule,
        "With k='auto', the number to choose: the smallest within one standard error of the best "
        "(one_standard_error), the best, or the fewest that reach a share, such as 0.95, of what all features gain.",
        group=SELECTION,
    )

    fdr: float | None = option(
        None,
        number(above=0, maximum=0.5, optional=True),
        "False discovery rate, such as 0.1: choose as many features as can be chosen with at most this expected share "
        "of features that do not matter; k is then the most, and may be left out.",
        group=SELECTION,
    )

    repeats: int | None = option(
        None,
        _even,
        "Select this many times, an even number such as 20, on halves of the rows, and pool what was selected: "
        "'stability' of the result says how often each feature was.",
        group=SELECTION,
    )
    importance: bool | None = option(
        None,
        boolean(optional=True),
        "Measure how much each selected feature adds on held-out rows; by default where the method has such rows.",
        group=SELECTION,
    )

    def check_together(self) -> None:
        super().check_together()
        for name in ("keep", "quotas"):
            if self.fdr is not None and getattr(self, name) not in ((), {}):
                raise ValueError(
                    f"{name}: cannot be combined with fdr, which tests every feature; leave one of them out"
                )
        if self.costs and (self.repeats or self.fdr is not None):
            other = "repeats" if self.repeats else "fdr"
            raise ValueError(f"costs: cannot be combined with {other}; leave one of them out")

    def check_k(self, k: Any) -> bool:
        """Whether ``k`` is "auto"; refuses another text, and these options with a number."""
        if isinstance(k, str) and k != AUTO:
            raise TypeError(f"k: must be a whole number, a fraction or 'auto', got {show(k)}")
        if isinstance(k, str) and self.has_budget:
            raise ValueError(
                "k: costs decide how many features are selected; leave k out, or give a number as the most"
            )
        if not isinstance(k, str):
            for name, default in (("max_k", None), ("k_rule", ONE_STANDARD_ERROR)):
                if getattr(self, name) != default:
                    raise ValueError(
                        f"{name}: is for k='auto', got k={show(k)}; use k='auto' or leave {name} out"
                    )
        return isinstance(k, str)


def needs_k(options: Mapping[str, Any]) -> bool:
    """Whether ``k`` has to be given: none of these options of ``select`` decides how many features are selected."""
    decided = any(options.get(name) is not None for name in ("fdr", "budget", "cost_rate"))
    costs: Any = options.get("costs")
    none = not len(costs) if hasattr(costs, "__len__") else costs is None  # a Series has no truth value
    return not decided and none


def check_method(method: Method, argument: str = "k: 'auto'") -> None:
    """Raise unless the first j features of the method are its selection of j features, which ``argument`` requires."""
    if not method.ranks_features:
        able = [name for name, other in all_methods().items() if other.ranks_features]
        raise ValueError(
            f"{argument} needs a method that ranks its features, so that the first j are a selection of j; "
            f"{method.name} does not; "
            f"{'use a number, or' if argument.startswith('k:') else 'leave it out, or use'} one of {', '.join(able)}"
        )
