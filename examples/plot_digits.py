"""
Pixels of handwritten digits
============================

Which 12 of 64 pixels tell ten digits apart, and what is lost against all of them?
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

import seqatt

X, y = load_digits(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.3, random_state=0, stratify=y)
selection = seqatt.select(X_train, y_train, k=12)

# %%
# The selected pixels, the darker, the earlier: they are spread, because a neighbour of a selected pixel adds little.

axes = selection.plot.image((8, 8))
axes.set_title("12 of 64 pixels")

# %%
# A network trained on them, beside one on 12 random pixels and one on all, on images that none of them has seen.

random = seqatt.select(X_train, y_train, k=12, method="random")
rows = X_train, y_train, X_test, y_test
scores = {
    "12 selected": seqatt.evaluate(*rows, selection, seeds=range(3)),
    "12 random": seqatt.evaluate(*rows, random, seeds=range(3)),
    "all 64": seqatt.evaluate(*rows, seeds=range(3)),
}
figure, axes = plt.subplots(figsize=(6, 2.2), layout="constrained")
for name, evaluation in scores.items():
    axes.barh(name, evaluation.mean["accuracy"], color="#0072B2" if "selected" in name else "#999999")
    axes.text(0.02, name, f"{evaluation.mean['accuracy']:.3f}", color="white", va="center")
axes.invert_yaxis()
axes.set_xlabel(f"accuracy on {len(y_test)} test images")
plt.show()
