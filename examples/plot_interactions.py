"""
Features that matter only together
==================================

The target is the sign of a product of two features, plus a little of a third. Tests of single features cannot see the
pair; a network can.
"""

import matplotlib.pyplot as plt
import numpy as np

import seqatt

rng = np.random.default_rng(0)
X = rng.normal(size=(3000, 20))
y = (X[:, 4] * X[:, 11] + 0.5 * X[:, 16] > 0).astype(int)
planted = {4, 11, 16}

found = {}
for method in ("sequential_attention", "f_test", "mutual_information", "linear_omp"):
    found[method] = seqatt.select(X, y, k=3, method=method).indices.tolist()
    print(f"{method}: {sorted(found[method])}")

# %%
# Which features each method selects. The three that matter are marked.

figure, axes = plt.subplots(figsize=(7, 2.2), layout="constrained")
for place, indices in enumerate(found.values()):
    colours = ["#0072B2" if i in planted else "#999999" for i in indices]
    axes.scatter(indices, [place] * len(indices), c=colours, s=90, marker="s")
for i in planted:
    axes.axvline(i, color="#E69F00", linewidth=6, alpha=0.25, zorder=0)
axes.set_yticks(range(len(found)), found)
axes.set_xticks(range(20))
axes.invert_yaxis()
axes.set_xlabel("feature (orange: matters)")
plt.show()
