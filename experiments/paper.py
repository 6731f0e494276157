"""The paper's figures for Sequential Attention: test accuracy (mean, standard deviation) and seconds.

Yasuda, Bateni, Chen, Fahrbach, Fu, Mirrokni: Sequential Attention for Feature Selection, ICLR 2023,
arXiv:2209.14881, from the tables of its appendix. Five trials, 67 hidden units; k = 50 except for
adaptivity. Mice Protein is assumed to be split by rows; the paper does not say.
"""

from __future__ import annotations

MeanStd = tuple[float, float]

TITLES = {
    "mice_protein": "Mice Protein",
    "mnist": "MNIST",
    "fashion_mnist": "Fashion-MNIST",
    "isolet": "ISOLET",
    "coil20": "COIL-20",
    "activity": "Activity",
}

ACCURACY: dict[str, MeanStd] = {
    "mice_protein": (0.993, 0.008),
    "mnist": (0.956, 0.002),
    "fashion_mnist": (0.854, 0.003),
    "isolet": (0.920, 0.006),
    "coil20": (0.997, 0.001),
    "activity": (0.931, 0.004),
}
ALL_FEATURES = {
    "mice_protein": 0.963,
    "mnist": 0.953,
    "fashion_mnist": 0.869,
    "isolet": 0.961,
    "coil20": 0.986,
    "activity": 0.954,
}

MASK_NAMES = ("softmax", "l1", "l2", "l1_normalised", "l2_normalised")
MASKS: dict[str, tuple[MeanStd, ...]] = {  # in the order of MASK_NAMES
    "mice_protein": ((0.990, 0.006), (0.993, 0.010), (0.993, 0.010), (0.994, 0.006), (0.988, 0.008)),
    "mnist": ((0.958, 0.002), (0.957, 0.001), (0.958, 0.002), (0.958, 0.001), (0.957, 0.001)),
    "fashion_mnist": ((0.850, 0.002), (0.843, 0.004), (0.850, 0.003), (0.853, 0.001), (0.852, 0.002)),
    "isolet": ((0.920, 0.003), (0.894, 0.014), (0.908, 0.009), (0.921, 0.003), (0.921, 0.003)),
    "coil20": ((0.997, 0.004), (0.997, 0.004), (0.995, 0.006), (0.996, 0.005), (0.996, 0.004)),
    "activity": ((0.922, 0.005), (0.906, 0.015), (0.908, 0.012), (0.933, 0.010), (0.935, 0.007)),
}

# k = 64, 2^i features per phase, i = 0 to 6.
ADAPTIVITY: dict[str, tuple[MeanStd, ...]] = {
    "mice_protein": (
        (0.990, 0.006),
        (0.990, 0.008),
        (0.989, 0.006),
        (0.989, 0.006),
        (0.991, 0.005),
        (0.992, 0.006),
        (0.990, 0.007),
    ),
    "mnist": (
        (0.963, 0.001),
        (0.961, 0.001),
        (0.956, 0.001),
        (0.950, 0.003),
        (0.940, 0.007),
        (0.936, 0.001),
        (0.932, 0.004),
    ),
    "fashion_mnist": (
        (0.860, 0.002),
        (0.856, 0.002),
        (0.852, 0.003),
        (0.852, 0.004),
        (0.847, 0.002),
        (0.849, 0.002),
        (0.843, 0.003),
    ),
    "isolet": (
        (0.934, 0.005),
        (0.930, 0.003),
        (0.927, 0.005),
        (0.919, 0.004),
        (0.893, 0.022),
        (0.845, 0.021),
        (0.782, 0.022),
    ),
    "coil20": (
        (0.998, 0.002),
        (0.997, 0.005),
        (0.999, 0.001),
        (0.998, 0.003),
        (0.995, 0.005),
        (0.972, 0.012),
        (0.988, 0.009),
    ),
    "activity": (
        (0.938, 0.008),
        (0.934, 0.007),
        (0.928, 0.010),
        (0.930, 0.008),
        (0.915, 0.004),
        (0.898, 0.010),
        (0.913, 0.010),
    ),
}

# Epochs, batch size, accuracy, and seconds of one trial on a machine that the paper does not name.
EFFICIENCY: dict[str, tuple[int, int, MeanStd, MeanStd]] = {
    "mice_protein": (2000, 256, (0.984, 0.012), (57.5, 1.5)),
    "mnist": (50, 256, (0.958, 0.001), (54.5, 2.5)),
    "fashion_mnist": (250, 128, (0.852, 0.001), (279.5, 0.5)),
    "isolet": (500, 256, (0.931, 0.001), (61.0, 0.0)),
    "coil20": (1000, 256, (0.993, 0.004), (52.0, 0.0)),
    "activity": (1000, 512, (0.926, 0.002), (123.0, 1.0)),
}
