"""
Linear models, without training
===============================

For least squares, Orthogonal Matching Pursuit, Sequential LASSO and linear Sequential Attention select the same
features in the same order, and nothing is trained.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_diabetes

from seqatt.linear import linear_attention, omp, sequential_lasso

data = load_diabetes()
y = data.target - data.target.mean()  # the columns have mean 0 as well, so no intercept is needed
paths = {
    function.__name__: function(data.data, y, k=8) for function in (omp, sequential_lasso, linear_attention)
}
for name, path in paths.items():
    print(f"{name}: {path.order}")

# %%
# The share of the variance explained as features are added: four of ten hold nearly all that a linear model can use.

path = paths["omp"]
explained = [1 - loss / (y @ y) for loss in path.losses]
names = [f"+ {data.feature_names[feature]}" for feature in path.order]
figure, axes = plt.subplots(figsize=(6.5, 3.2), layout="constrained")
axes.bar(names, explained, color="#0072B2")
axes.set_ylabel("R² on the same rows")
plt.show()
