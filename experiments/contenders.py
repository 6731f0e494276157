"""The methods that are compared: in words, with the paper's columns, and which of them take epochs."""

from __future__ import annotations

from dataclasses import dataclass

import seqatt


@dataclass(frozen=True)
class Contender:
    """A method of ``seqatt.select``, its column in the paper, and whether it trains for so many epochs."""

    name: str
    title: str
    paper: str = ""
    epochs: bool = True


CONTENDERS = (
    Contender("sequential_attention", "Sequential Attention", "SA"),
    Contender("batch_attention", "batch-wise attention", "LLY"),
    Contender("group_lasso", "group LASSO", "GL"),
    Contender("sequential_lasso", "Sequential LASSO", "SL"),
    Contender("omp", "OMP", "OMP"),
    Contender("concrete_autoencoder", "concrete autoencoder", "CAE"),
    Contender("lassonet", "LassoNet"),
    Contender("stochastic_gates", "stochastic gates"),
    Contender("deep_lasso", "Deep Lasso"),
    Contender("cancel_out", "CancelOut"),
    Contender("first_layer", "first-layer weights"),
    Contender("greedy", "greedy", epochs=False),  # it has epochs for each of its thousands of models
    Contender("linear_omp", "linear OMP", epochs=False),
    Contender("cmim", "CMIM", epochs=False),
    Contender("mutual_information", "mutual information", epochs=False),
    Contender("f_test", "F-test", epochs=False),
    Contender("forest", "random forest", epochs=False),
    Contender("boosting", "boosted trees", epochs=False),
    Contender("random", "random", epochs=False),
)

# They choose what linear_omp chooses (docs/theory.md), so in a ranking they would count thrice.
SAME_AS_LINEAR_OMP = ("linear_sequential_lasso", "linear_attention")


def contenders() -> list[Contender]:
    """Those that this version of seqatt has."""
    return [contender for contender in CONTENDERS if contender.name in seqatt.methods()]


def title_of(method: str) -> str:
    return next((c.title for c in CONTENDERS if c.name == method), method)


def takes_epochs(method: str) -> bool:
    return next((c.epochs for c in CONTENDERS if c.name == method), False)
