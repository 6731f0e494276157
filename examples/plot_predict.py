"""
A model on a few columns
========================

Select eight of the 64 pixels of a digit, and predict from them alone, with probabilities that mean what they say.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.calibration import calibration_curve
from sklearn.datasets import load_digits
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from seqatt import SequentialAttentionClassifier

X, y = load_digits(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0, stratify=y)
classifier = SequentialAttentionClassifier(n_features_to_select=8, random_state=0).fit(X_train, y_train)
pixels = classifier.get_support()
mlp = make_pipeline(StandardScaler(), MLPClassifier(max_iter=2000, random_state=0))
mlp.fit(X_train[:, pixels], y_train)

# %%
# Both networks have the same eight pixels. Where a network says 80 %, it should be right in 80 % of the cases: on the
# diagonal. Below it, the network is too sure.
figure, (left, right) = plt.subplots(1, 2, figsize=(8, 3.4), layout="constrained")
left.imshow(X_train.mean(0).reshape(8, 8), cmap="gray_r")
rows, columns = np.divmod(np.flatnonzero(pixels), 8)
left.scatter(columns, rows, marker="s", s=120, facecolors="none", edgecolors="#D55E00", linewidths=2)
left.set(title="Selected pixels", xticks=[], yticks=[])
for name, probabilities, colour in (
    ("seqatt", classifier.predict_proba(X_test), "#0072B2"),
    ("MLPClassifier", mlp.predict_proba(X_test[:, pixels]), "#999999"),
):
    right_answers = probabilities.argmax(1) == y_test
    observed, stated = calibration_curve(right_answers, probabilities.max(1), n_bins=6, strategy="quantile")
    loss = log_loss(y_test, probabilities)
    right.plot(stated, observed, marker="o", color=colour, label=f"{name}, log loss {loss:.2f}")
right.plot([0.4, 1], [0.4, 1], color="black", linewidth=0.8, linestyle=":")
right.set(xlabel="Stated probability", ylabel="Share of right answers", title="Test rows")
right.legend()
plt.show()

# %%
# ``classifier.export("digits.onnx")`` writes a file that takes these eight pixels and needs neither seqatt nor
# scikit-learn; see the page *A model to deploy*.
