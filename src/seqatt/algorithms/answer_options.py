"""Options of every method about its answer: how many features are selected, and how sure that is."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from seqatt.algorithms.registry import DEFAULT, Method, all_methods
from seqatt.options import SELECTION, Options, option
from seqatt.validation import integer, show

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


@dataclass(frozen=True)
class AnswerOptions(Options):
    """How many features, and how sure."""

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

    def check_k(self, k: Any) -> bool:
        """Whether ``k`` is "auto"; refuses another text, and these options with a number."""
        if isinstance(k, str) and k != AUTO:
            raise TypeError(f"k: must be a whole number, a fraction or 'auto', got {show(k)}")
        if not isinstance(k, str):
            for name, default in (("max_k", None), ("k_rule", ONE_STANDARD_ERROR)):
                if getattr(self, name) != default:
                    raise ValueError(
                        f"{name}: is for k='auto', got k={show(k)}; use k='auto' or leave {name} out"
                    )
        return isinstance(k, str)


def check_method(method: Method) -> None:
    """Refuse a method whose first j features are no choice of j."""
    if not (method.nested or method.name == DEFAULT):
        able = [name for name, each in all_methods().items() if each.nested or name == DEFAULT]
        raise ValueError(
            f"k: 'auto' needs a method whose first features are a selection too, which {method.name} is not; use a "
            f"number, or one of {', '.join(able)}"
        )
