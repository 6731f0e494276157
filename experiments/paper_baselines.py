"""The paper's figures for its baselines, by column heading and data set.

From the same tables as ``experiments.paper``: LLY is batch-wise attention (Liao, Latty, Yang 2021), GL group
LASSO, SL Sequential LASSO, OMP orthogonal matching pursuit, CAE the concrete autoencoder. For LassoNet the
paper has figures with all features only.
"""

from __future__ import annotations

from experiments.paper import ACCURACY, EFFICIENCY, MeanStd

ACCURACY_OF: dict[str, dict[str, MeanStd]] = {
    "SA": ACCURACY,
    "LLY": {
        "mice_protein": (0.981, 0.005),
        "mnist": (0.944, 0.001),
        "fashion_mnist": (0.843, 0.005),
        "isolet": (0.866, 0.012),
        "coil20": (0.994, 0.002),
        "activity": (0.897, 0.025),
    },
    "GL": {
        "mice_protein": (0.985, 0.005),
        "mnist": (0.937, 0.003),
        "fashion_mnist": (0.834, 0.004),
        "isolet": (0.906, 0.006),
        "coil20": (0.997, 0.004),
        "activity": (0.933, 0.002),
    },
    "SL": {
        "mice_protein": (0.984, 0.008),
        "mnist": (0.959, 0.001),
        "fashion_mnist": (0.854, 0.003),
        "isolet": (0.920, 0.003),
        "coil20": (0.988, 0.005),
        "activity": (0.931, 0.003),
    },
    "OMP": {
        "mice_protein": (0.994, 0.008),
        "mnist": (0.912, 0.004),
        "fashion_mnist": (0.829, 0.008),
        "isolet": (0.727, 0.026),
        "coil20": (0.967, 0.014),
        "activity": (0.905, 0.013),
    },
    "CAE": {
        "mice_protein": (0.956, 0.012),
        "mnist": (0.909, 0.007),
        "fashion_mnist": (0.839, 0.003),
        "isolet": (0.893, 0.011),
        "coil20": (0.972, 0.007),
        "activity": (0.921, 0.001),
    },
}

# Accuracy and seconds of one trial, at the epochs and batch sizes of EFFICIENCY.
EFFICIENCY_OF: dict[str, dict[str, tuple[MeanStd, MeanStd]]] = {
    "SA": {data: (accuracy, seconds) for data, (_, _, accuracy, seconds) in EFFICIENCY.items()},
    "LLY": {
        "mice_protein": ((0.907, 0.042), (90.5, 3.5)),
        "mnist": ((0.932, 0.009), (80.0, 5.0)),
        "fashion_mnist": ((0.833, 0.004), (553.0, 2.0)),
        "isolet": ((0.853, 0.016), (76.0, 0.0)),
        "coil20": ((0.976, 0.014), (54.0, 0.0)),
        "activity": ((0.881, 0.013), (159.5, 0.5)),
    },
    "GL": {
        "mice_protein": ((0.968, 0.028), (49.0, 1.0)),
        "mnist": ((0.930, 0.001), (53.0, 1.0)),
        "fashion_mnist": ((0.834, 0.001), (265.0, 1.0)),
        "isolet": ((0.885, 0.000), (59.0, 1.0)),
        "coil20": ((0.997, 0.000), (47.0, 1.0)),
        "activity": ((0.923, 0.002), (113.5, 0.5)),
    },
    "SL": {
        "mice_protein": ((0.961, 0.025), (46.5, 1.5)),
        "mnist": ((0.957, 0.001), (51.5, 2.5)),
        "fashion_mnist": ((0.852, 0.003), (266.0, 1.0)),
        "isolet": ((0.921, 0.002), (56.5, 1.5)),
        "coil20": ((0.993, 0.004), (48.5, 0.5)),
        "activity": ((0.927, 0.006), (116.0, 0.0)),
    },
    "OMP": {
        "mice_protein": ((0.556, 0.032), (50.5, 1.5)),
        "mnist": ((0.912, 0.000), (55.5, 0.5)),
        "fashion_mnist": ((0.722, 0.029), (309.5, 3.5)),
        "isolet": ((0.580, 0.025), (62.0, 1.0)),
        "coil20": ((0.988, 0.002), (52.0, 1.0)),
        "activity": ((0.909, 0.000), (121.5, 0.5)),
    },
    "CAE": {
        "mice_protein": ((0.956, 0.012), (375.0, 16.0)),
        "mnist": ((0.909, 0.007), (119.0, 1.0)),
        "fashion_mnist": ((0.839, 0.003), (583.5, 2.5)),
        "isolet": ((0.893, 0.011), (611.5, 21.5)),
        "coil20": ((0.972, 0.007), (304.5, 7.5)),
        "activity": ((0.921, 0.001), (1260.5, 2.5)),
    },
}
