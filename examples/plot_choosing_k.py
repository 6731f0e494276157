"""
How many features are needed
============================

``k="auto"`` scores growing sets of features on rows not used for the selection.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_breast_cancer

import seqatt

data = load_breast_cancer(as_frame=True)
selection = seqatt.select(data.data, data.target, k="auto", max_k=16)
print(f"{len(selection.features)} of {len(selection.names)}:", ", ".join(selection.features))

# %%
# The bars are standard errors over the held-out rows. The chosen number, with a ring, is the smallest within one
# standard error of the best.

selection.plot.curve()
plt.show()
