"""
Features within a budget
========================

Some features are free, some have a price, and some share one: a blood test gives several values at once. The search
finds the best set of features that a budget pays for, and shows what more money would bring.
"""

# %%
# Measurements of 442 people predict how a disease progresses after a year. Age, sex, body mass index and blood pressure
# are there anyway. Six values come from blood: three of them from a common test, the others from tests of their own.
import matplotlib.pyplot as plt
from sklearn.datasets import load_diabetes

import seqatt

X, y = load_diabetes(return_X_y=True, as_frame=True)
costs = {
    "lipid panel": {"cost": 30, "features": ["s1", "s2", "s3", "s4"]},
    "s5": 25,
    "s6": 10,
}

# %%
# With 40 to spend, either the panel and ``s6`` can be had, or ``s5`` and ``s6``. How many features to select is found
# as well.
selection = seqatt.select(X, y, costs=costs, budget=40, seed=0)
print(selection)
print("cost:", selection.cost)

# %%
# The frontier says how good the features are that can be had for less, on rows that chose none of them.
# The dashed line is what all features reach, at the price in the legend.
fig, ax = plt.subplots(figsize=(6.4, 4), layout="constrained")
selection.plot.frontier(ax)
plt.show()

# %%
# Instead of a budget, a rate says what a unit of cost must gain: here 0.002 of R² per unit.
traded = seqatt.select(X, y, costs=costs, cost_rate=0.002, seed=0)
print(traded.features, traded.cost)
