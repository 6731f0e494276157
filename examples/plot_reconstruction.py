"""
Pixels that show the whole picture
==================================

Without a target: from which ten pixels can a network reconstruct all 64 pixels of a handwritten digit?
"""

# %%
# The digits of scikit-learn, 1,000 to select pixels and 797 to test them.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

import seqatt

X = np.random.default_rng(0).permutation(load_digits().data)
selection = seqatt.select(X[:1000], k=10, task="reconstruction")
random = seqatt.select(X[:1000], k=10, task="reconstruction", method="random")

# %%
# The share of the variance of all pixels that each number of them explains on the test rows. The selected pixels are
# in a nested order, so that the first ones are a good choice by themselves.
sizes = [1, 2, 4, 7, 10]
parts = {"X_train": X[:1000], "X_test": X[1000:], "task": "reconstruction", "seeds": [0]}


def explained(indices):
    return [seqatt.evaluate(indices=indices[:size], **parts).mean["r2"] for size in sizes]


figure, (left, right) = plt.subplots(1, 2, figsize=(8, 3.2), layout="constrained")
left.plot(sizes, explained(selection.indices), "o-", label="selected")
left.plot(sizes, explained(random.indices), "o-", color="0.6", label="random")
left.set(xlabel="pixels", ylabel="explained variance of all pixels (R²)")
left.legend(frameon=False)

# %%
# Where they are, over the mean of all digits.
right.imshow(X.mean(0).reshape(8, 8), cmap="Greys")
rows, columns = np.divmod(selection.indices, 8)
right.scatter(columns, rows, s=110, color="C0")
for rank, (row, column) in enumerate(zip(rows, columns, strict=True), 1):
    right.annotate(str(rank), (column, row), color="white", ha="center", va="center", fontsize=8)
right.set(xticks=[], yticks=[], title="the first ten pixels")
plt.show()
