"""Options of Sequential Attention. Importing them does not import torch: the command line reads them for its help."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from seqatt.options import RARE, option
from seqatt.training.options import LoopOptions
from seqatt.validation import boolean, choice, integer, number

MASK_NAMES = ("softmax", "l1", "l2", "l1_normalised", "l2_normalised")

# The paper's one-pass form (appendix B.2.4): one model trains once, each phase selects one feature, none is dropped.
# The warm-up is part of it: a small fraction of the training, here and in the published code a tenth.
_PAPER: dict[str, Any] = {
    "one_pass": True,
    "features_per_phase": 1,
    "ensemble": 1,
    "surplus": 1.0,
    "replacement": 0,
    "exchanges": 0,
    "input_dropout": 0.0,
    "weight_decay": 0.0,
    "univariate_test": 0.0,
    "asinh_inputs": False,
}

# Values by name for options that the user leaves out; options that no recipe mentions have the same default in all.
RECIPES: dict[str, dict[str, Any]] = {
    "default": {"one_pass": True},
    "paper": _PAPER,
    # As printed: for each of the k selections a new model is trained, and there is no warm-up.
    "algorithm_1": {**_PAPER, "one_pass": False},
}


@dataclass(frozen=True)
class AttentionOptions(LoopOptions):
    """Sequential Attention: the mask, the pace of selection, and what is reset when."""

    recipe: str = option(
        "default",
        choice(RECIPES),
        "Values of the options that are left out. paper is the published one-pass algorithm and algorithm_1 the "
        "paper's Algorithm 1; both also omit seqatt's closing phase and working sets, and train logits at "
        "learning_rate.",
    )
    mask: str = option("softmax", choice(MASK_NAMES), "How attention logits become weights.")
    temperature: float = option(1.0, number(above=0), "Temperature of the softmax mask.", group=RARE)
    logit_learning_rate: float | None = option(
        None,
        number(above=0, optional=True),
        "Adam's step size of the attention logits; by default 0.03 for the softmax mask, so that features compete "
        "within a phase, and learning_rate for the others. The paper's is learning_rate.",
        group=RARE,
    )
    features_per_phase: int | None = option(
        None,
        integer(1, optional=True),
        "Features selected at the end of a phase; by default 1, or as many as select all features and the surplus in "
        "50 phases (2 for surplus=2 and k=50). More is faster and less precise: copies may be selected together.",
    )
    warmup: float = option(
        0.1,
        number(minimum=0, below=1),
        "Share of training before the first phase, with all features at full weight.",
    )
    ensemble: int | None = option(
        None,
        integer(1, optional=True),
        "Models whose scores are pooled before each selection. They share the training budget, and each holds out "
        "rows of its own. By default 4; 1 for your own model and for one_pass=False. "
        "1 is the paper's.",
    )
    surplus: float | None = option(
        None,
        number(minimum=1, optional=True),
        "Select surplus * k features, then remove those whose removal increases the held-out loss least; by default 2, "
        "and 1 where files are read in a single pass. 1 is the paper's.",
    )
    replacement: int | None = option(
        None,
        integer(0, optional=True),
        "Rounds that drop the least useful tenth of the selected features and select again, within the same budget; "
        "by default one per three features, at most 5. 0 is the paper's.",
    )
    exchanges: int | None = option(
        None,
        integer(0, optional=True),
        "Rounds in which a selected feature is exchanged for another if networks trained on the new set alone have a "
        "clearly lower held-out loss. By default up to 4 where at most three features are selected, beside those that "
        "are kept, from a table of 200 rows or more by an ensemble; none for your own model, loss or optimizer. 0 is "
        "the paper's.",
    )
    weight_decay: float | None = option(
        None,
        number(minimum=0, below=1, optional=True),
        "Decay per step of the first-layer weights of unselected features (Definition 3.1's penalty), in the built-in "
        "network and in modules that start with a Linear layer; by default 3 / rows, at most 0.1.",
        group=RARE,
    )
    univariate_test: float | None = option(
        None,
        number(minimum=0, optional=True),
        "Threshold of a univariate significance test. Before training, each feature is tested alone; features whose "
        "-log10(FDR q-value) is below this value are penalised by the shortfall, up to three times if they are "
        "unrelated to every selected feature. 0 disables the test and is the paper's. By default "
        "10 sqrt(2 log(columns) / rows), from 2 to 4, and 0 for one_pass=False.",
        group=RARE,
    )
    asinh_inputs: bool | None = option(
        None,
        boolean(optional=True),
        "Train on asinh of the standardised numbers, so that outliers cannot be used to fit single rows; by default "
        "where there are more columns than rows, but not for your own model, a linear one (hidden=()) or "
        "one_pass=False. False is the paper's.",
        group=RARE,
    )
    one_pass: bool | None = option(
        None,
        boolean(optional=True),
        "Train one model for all phases; by default True. False is Algorithm 1 as printed: a new model, trained in "
        "full, per phase.",
        group=RARE,
    )
    reset_logits: bool = option(
        True,
        boolean(),
        "Start each phase from new attention logits, as the paper recommends. False keeps those of the phase before.",
        group=RARE,
    )
    reset_model: bool = option(
        False, boolean(), "In one pass, start each phase from new model weights too.", group=RARE
    )

    @property
    def extended(self) -> bool:
        """Whether seqatt's additions to the paper are on: closing phase, logit learning rate, working sets."""
        return self.recipe == "default"

    def fill_in(self) -> None:
        choice(RECIPES)("recipe", self.recipe)
        for name, value in RECIPES[self.recipe].items():
            if getattr(self, name) is None:
                object.__setattr__(self, name, value)

    def check_together(self) -> None:
        super().check_together()
        if not self.reset_logits and not self.one_pass:
            raise ValueError("reset_logits: one_pass=False trains new logits in every phase; leave it out")
        if self.temperature != 1 and self.mask != "softmax":
            raise ValueError(f"temperature: only the softmax mask has one, not {self.mask!r}")
