"""
Features of survival times
==========================

Which measurements tell who has the event first, if most patients leave the study before it? The Cox loss looks at the
order of events alone; squared error of the observed time finds what decides about leaving.
"""

# %%
# A study with 600 patients and 20 measurements. The first three decide about the event, the next two about when a
# patient leaves the study. Seven of ten events are never observed.
import matplotlib.pyplot as plt
import numpy as np

import seqatt

rng = np.random.default_rng(0)
X = rng.normal(size=(600, 20))
names = [
    *(f"event {i}" for i in range(3)),
    *(f"leaving {i}" for i in range(2)),
    *(f"other {i}" for i in range(15)),
]
until_event = 10 * rng.weibull(1.5, 600) * np.exp(-0.8 * X[:, 0] + 0.8 * X[:, 1] - 0.5 * X[:, 2])
until_leaving = rng.exponential(3.2, 600) * np.exp(-0.9 * X[:, 3] - 0.9 * X[:, 4])
time, event = np.minimum(until_event, until_leaving), until_event <= until_leaving
print(f"{event.mean():.0%} of the events were observed")

# %%
# The target has two columns: the time, and whether the event occurred. For comparison, the logarithm of the observed
# time as a number.
y = np.stack([time, event], axis=1)
cox = seqatt.select(X, y, k=3, task="survival")
squared = seqatt.select(X, np.log(time), k=3)
for title, selection in (("Cox", cox), ("squared error", squared)):
    print(title, [names[i] for i in selection.indices])

# %%
# How well does a network of these features order new patients? The concordance index is 0.5 by chance and 1 if every
# pair of patients is in the right order.
train, test = np.arange(600) < 450, np.arange(600) >= 450
sets = {"Cox": cox.indices, "squared error": squared.indices, "all": np.arange(20)}
scores = {
    title: seqatt.evaluate(X[train], y[train], X[test], y[test], indices, task="survival", seeds=range(3))
    for title, indices in sets.items()
}

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.2), layout="constrained")
left.bar(list(scores), [score.mean["concordance"] for score in scores.values()], color=["C0", "C1", "0.7"])
left.set(ylabel="concordance index on 150 patients", ylim=(0.5, 1))

# %%
# The network's features divide the patients: the share without the event over time (Kaplan and Meier), for the halves
# of patients with low and high values of the first feature that was selected.
first = X[:, cox.indices[0]]
for label, rows in (("low", first <= np.median(first)), ("high", first > np.median(first))):
    order = np.argsort(time[rows])
    at_risk = np.arange(rows.sum(), 0, -1)
    survival = np.cumprod(1 - event[rows][order] / at_risk)
    right.step(time[rows][order], survival, where="post", label=f"{label} {names[cox.indices[0]]}")
right.set(xlabel="weeks", ylabel="share without the event", ylim=(0, 1))
right.legend(frameon=False)
plt.show()
