"""
Groups of columns
=================

The breast cancer data measures ten things, each as a mean, an error and a worst value. As groups of three columns they
are selected, or left out, together.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_breast_cancer

import seqatt

data = load_breast_cancer(as_frame=True)
kinds = [name.removeprefix("mean ") for name in data.data.columns[:10]]
groups = {kind: [f"mean {kind}", f"{kind} error", f"worst {kind}"] for kind in kinds}
selection = seqatt.select(data.data, data.target, k=3, groups=groups)
print(selection.features, "in", len(selection.column_names), "columns")

# %%
# What each group adds, as one feature.

selection.plot.scores()
plt.show()
