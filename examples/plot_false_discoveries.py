"""
A bound on false discoveries
============================

``fdr=0.1`` lets every feature compete with knockoffs, copies that know nothing of the target, and chooses those that
win clearly.
"""

import matplotlib.pyplot as plt
import numpy as np

import seqatt

rng = np.random.default_rng(0)
X = rng.normal(size=(500, 40))
y = X[:, 0] + X[:, 1] * X[:, 2] + X[:, 1] - 0.8 * X[:, 3] + 0.5 * rng.normal(size=500)
selection = seqatt.select(X, y, fdr=0.1)
print(selection.features, selection.false_discoveries["estimated_rate"])

# %%
# The statistic is large for features that come early and negative where a knockoff came first. Of those to the right of
# the threshold, a tenth at most are false on average. Features 0 to 3 matter.

statistics = np.array(selection.false_discoveries["statistics"])
order = np.argsort(-statistics)[:15]
figure, axes = plt.subplots(figsize=(6, 3.6), layout="constrained")
axes.barh(
    [f"feature {i}" for i in order],
    statistics[order],
    color=["#0072B2" if i < 4 else "#999999" for i in order],
)
axes.axvline(selection.false_discoveries["threshold"], color="black", linestyle="--", label="threshold")
axes.invert_yaxis()
axes.set_xlabel("statistic (blue: matters)")
axes.legend(frameon=False)
plt.show()
