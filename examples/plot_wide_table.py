"""
Gene expression: 200 samples, 1,000 genes
=========================================

With five times as many columns as rows, most of what looks useful is chance. Four genes matter here, and one of them is
in the table twice.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import seqatt

rng = np.random.default_rng(1)
names = [f"gene {i}" for i in range(1000)]
log = pd.DataFrame(rng.normal(size=(200, 1000)), columns=names)
log["gene 8"] = log["gene 7"] + 0.3 * rng.normal(size=200)
signal = log["gene 7"] + log["gene 20"] - log["gene 33"] + log["gene 54"]
y = np.where(signal + 0.5 * rng.normal(size=200) > 0, "ill", "well")
X = np.exp(log)  # skewed, as expression values are

selection = seqatt.select(X, y, k=8, log1p=True)
print(selection)

# %%
# What each gene adds on held-out samples, beside the others. The four that matter come first; the second copy and noise
# are there because eight genes were asked for.

selection.plot.scores()

# %%
# Of a selection of four, the other of the two copies is named as what could stand in for one of them.

four = seqatt.select(X, y, k=4, log1p=True)
for feature, stand_ins in zip(four.features, four.importance["stand_ins"], strict=True):
    print(feature, *(f"or {name} (correlation {correlation:.2f})" for name, correlation in stand_ins))
plt.show()
