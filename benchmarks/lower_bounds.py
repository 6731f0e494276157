"""Lower bounds of the cost of a training step on the paper's six data sets, printed as the table in README.md.

Products: the first layer's forward product and its weight gradient, and three small products of the second
layer. Bytes: the batch read twice, the first layer's weights read for the forward product, and these weights
and Adam's two moments read and written. Both are for one trial; T trials need T times as much in the same
number of kernels.
"""

from __future__ import annotations

from datasets import PAPER

HIDDEN, KERNELS = 67, 4
SHAPES = {  # training rows, features, classes
    "mice_protein": (864, 77, 8),
    "mnist": (60_000, 784, 10),
    "fashion_mnist": (60_000, 784, 10),
    "isolet": (6_238, 617, 26),
    "coil20": (1_152, 400, 20),
    "activity": (7_352, 561, 6),
}


def main() -> None:
    print("| data set | epochs | batch | steps | products (multiply-adds) | Mflop | MB | kernels |")
    print("|---|---|---|---|---|---|---|---|")
    for name, (rows, features, classes) in SHAPES.items():
        epochs, batch, _ = PAPER[name]
        large, small = batch * features * HIDDEN, batch * HIDDEN * classes
        flop = 2 * (2 * large + 3 * small)
        moved = 4 * (2 * batch * features + 7 * features * HIDDEN)
        steps = round(epochs * rows / batch)
        print(
            f"| {name} | {epochs} | {batch} | {steps:,} | 2 x {large / 1e6:.1f}M + 3 x {small / 1e6:.2f}M "
            f"| {flop / 1e6:.0f} | {moved / 1e6:.1f} | {KERNELS} |"
        )


if __name__ == "__main__":
    main()
