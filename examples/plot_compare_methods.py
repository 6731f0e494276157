"""
Methods side by side
====================

``compare`` lets methods select on the same training rows and evaluates the same network on the same test rows.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_wine

import seqatt

X, y = load_wine(return_X_y=True, as_frame=True)
methods = ["sequential_attention", "linear_omp", "mutual_information", "random", "all"]
comparison = seqatt.compare(X, y, k=[1, 2, 4], methods=methods, seeds=range(3))
print(comparison.conclusion())

# %%
# Bands are standard deviations over the splits. With three splits of a small table they overlap.

comparison.plot()

# %%
# How alike the features of two seeds are: 1 means always the same.

comparison.plot.stability()
plt.show()
