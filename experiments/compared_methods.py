"""The methods that the experiments compare: their titles, their columns in the paper, their epochs option."""

from __future__ import annotations

from dataclasses import dataclass

import seqatt


@dataclass(frozen=True)
class ComparedMethod:
    """A method of ``seqatt.select``.

    ``paper`` is the heading of its column in the paper's tables, empty if the paper does not have it;
    ``epochs`` tells whether the option ``epochs`` is its training budget.
    """

    name: str
    title: str
    paper: str = ""
    epochs: bool = True


COMPARED_METHODS = (
    ComparedMethod("sequential_attention", "Sequential Attention", "SA"),
    ComparedMethod("batch_attention", "batch-wise attention", "LLY"),
    ComparedMethod("group_lasso", "group LASSO", "GL"),
    ComparedMethod("sequential_lasso", "Sequential LASSO", "SL"),
    ComparedMethod("omp", "OMP", "OMP"),
    ComparedMethod("concrete_autoencoder", "concrete autoencoder", "CAE"),
    ComparedMethod("lassonet", "LassoNet"),
    ComparedMethod("stochastic_gates", "stochastic gates"),
    ComparedMethod("deep_lasso", "Deep Lasso"),
    ComparedMethod("cancel_out", "CancelOut"),
    ComparedMethod("entry_prune", "EntryPrune"),
    ComparedMethod("gumbel_gates", "Gumbel-sigmoid gates"),
    ComparedMethod("first_layer", "first-layer weights"),
    ComparedMethod("permutation_importance", "permutation importance"),
    ComparedMethod(
        "greedy", "greedy", epochs=False
    ),  # its epochs are those of each of its thousands of models
    ComparedMethod("linear_omp", "linear OMP", epochs=False),
    ComparedMethod("cmim", "CMIM", epochs=False),
    ComparedMethod("mutual_information", "mutual information", epochs=False),
    ComparedMethod("f_test", "F-test", epochs=False),
    ComparedMethod("forest", "random forest", epochs=False),
    ComparedMethod("boosting", "boosted trees", epochs=False),
    ComparedMethod("random", "random", epochs=False),
)

# Not compared: they select the same features as linear_omp (docs/theory.md), which would count three times.
SAME_AS_LINEAR_OMP = ("linear_sequential_lasso", "linear_attention")


def available_methods() -> list[ComparedMethod]:
    """The compared methods that the installed version of seqatt has."""
    return [method for method in COMPARED_METHODS if method.name in seqatt.methods()]


def method_title(name: str) -> str:
    return next((method.title for method in COMPARED_METHODS if method.name == name), name)


def takes_epochs(name: str) -> bool:
    return next((method.epochs for method in COMPARED_METHODS if method.name == name), False)
