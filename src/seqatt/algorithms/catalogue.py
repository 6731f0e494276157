"""Every selection method: its name, the module that holds it, its title, a line about it, and its options.

Nothing here imports torch or scikit-learn, so that methods and their options can be listed at once.
"""

from __future__ import annotations

from seqatt.algorithms.filters.options import (
    BoostingOptions,
    CMIMOptions,
    ForestOptions,
    LinearAttentionOptions,
    MutualInformationOptions,
)
from seqatt.algorithms.gated.options import (
    BatchAttentionOptions,
    EntryPruneOptions,
    GumbelGatesOptions,
    LassoOptions,
    PenaltyOptions,
    PermutationOptions,
    StochasticGatesOptions,
)
from seqatt.algorithms.neural.attention_options import AttentionOptions
from seqatt.algorithms.neural.options import AutoencoderOptions, LassoNetOptions
from seqatt.algorithms.registry import Method
from seqatt.training.options import CandidateOptions, LoopOptions

METHODS = (
    Method(
        "boosting",
        "filters.boosting",
        "Boosted trees",
        "total gain of the splits on a feature in gradient-boosted trees",
        BoostingOptions,
        nested=True,
    ),
    Method(
        "cmim",
        "filters.cmim",
        "CMIM",
        "information about the target beyond that of any one selected feature",
        CMIMOptions,
        nested=True,
    ),
    Method(
        "f_test",
        "filters.f_test",
        "F-test",
        "F statistic (analysis of variance or correlation), each feature alone",
        nested=True,
    ),
    Method(
        "forest",
        "filters.forest",
        "Random forest",
        "mean decrease of impurity by each feature in a random forest",
        ForestOptions,
        nested=True,
    ),
    Method(
        "mutual_information",
        "filters.mutual_information",
        "Mutual information",
        "mutual information with the target, each feature alone",
        MutualInformationOptions,
        nested=True,
    ),
    Method(
        "random",
        "filters.random",
        "Random",
        "random features, the baseline for every other method",
        nested=True,
    ),
    Method(
        "batch_attention",
        "gated.batch_attention",
        "Batch-wise attention",
        "attention weights from a second network, averaged over the batch",
        BatchAttentionOptions,
        trains=True,
    ),
    Method(
        "cancel_out",
        "gated.cancel_out",
        "CancelOut",
        "sigmoid gates with a penalty that closes them",
        PenaltyOptions,
        trains=True,
    ),
    Method(
        "deep_lasso",
        "gated.deep_lasso",
        "Deep Lasso",
        "a penalty on the gradient of the loss with respect to each feature",
        PenaltyOptions,
        trains=True,
    ),
    Method(
        "entry_prune",
        "gated.entry_prune",
        "EntryPrune",
        "features enter the network in turn and are judged by their first gradients",
        EntryPruneOptions,
        trains=True,
    ),
    Method(
        "first_layer",
        "gated.first_layer",
        "First-layer weights",
        "contribution of each feature to the first layer of a trained network",
        LoopOptions,
        trains=True,
    ),
    Method(
        "sequential_lasso",
        "gated.group_lasso",
        "Sequential LASSO",
        "a group LASSO on the first layer; one feature is selected per phase",
        LassoOptions,
        trains=True,
    ),
    Method(
        "group_lasso",
        "gated.group_lasso",
        "Group LASSO",
        "a group LASSO on the first layer; all features are selected at the end",
        LassoOptions,
        trains=True,
    ),
    Method(
        "gumbel_gates",
        "gated.gumbel_gates",
        "Gumbel-sigmoid gates",
        "sigmoid gates with Gumbel noise, with a penalty on open gates",
        GumbelGatesOptions,
        trains=True,
    ),
    Method(
        "omp",
        "gated.omp",
        "OMP",
        "one by one, the feature of largest gradient in the first layer",
        LoopOptions,
        trains=True,
    ),
    Method(
        "permutation_importance",
        "gated.permutation_importance",
        "Permutation importance",
        "how much the loss of a trained network grows when a feature is permuted",
        PermutationOptions,
        trains=True,
    ),
    Method(
        "stochastic_gates",
        "gated.stochastic_gates",
        "Stochastic gates",
        "noisy gates between 0 and 1, with a penalty on open gates",
        StochasticGatesOptions,
        trains=True,
    ),
    Method(
        "linear_omp",
        "linear",
        "Linear OMP",
        "least squares: the feature most correlated with the residual",
    ),
    Method(
        "linear_sequential_lasso",
        "linear",
        "Linear Sequential LASSO",
        "least squares: the feature that enters the LASSO first",
    ),
    Method(
        "linear_attention",
        "linear",
        "Linear attention",
        "least squares: Sequential Attention with an exact solution",
        LinearAttentionOptions,
    ),
    Method(
        "concrete_autoencoder",
        "neural.concrete_autoencoder",
        "Concrete autoencoder",
        "a network whose k inputs each learn to be a single feature",
        AutoencoderOptions,
    ),
    Method(
        "greedy",
        "neural.greedy",
        "Greedy selection",
        "one small network per candidate; the one of lowest loss is selected",
        CandidateOptions,
    ),
    Method(
        "lassonet",
        "neural.lassonet",
        "LassoNet",
        "a network with a skip connection; a growing penalty removes features",
        LassoNetOptions,
    ),
    Method(
        "sequential_attention",
        "neural.sequential_attention",
        "Sequential Attention",
        "a network whose attention weights select one feature after another",
        AttentionOptions,
        trains=True,
    ),
)
