"""
Scores through the phases
=========================

A feature is scored given the features already selected, so scores move: a second reading of a selected quantity falls,
and the two halves of a product rise once the simpler signals are accounted for.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import seqatt

rng = np.random.default_rng(0)
rows = 2000
a, b, c, d = rng.normal(size=(4, rows))
X = pd.DataFrame(
    {
        "reading": a,
        "second reading": a + 0.1 * rng.normal(size=rows),
        "weaker signal": b,
        "half of a pair": c,
        "other half": d,
        **{f"noise {i}": rng.normal(size=rows) for i in range(1, 6)},
    }
)
y = (1.5 * a + 0.8 * b + 1.2 * c * d + 0.4 * rng.normal(size=rows) > 0).astype(int)
selection = seqatt.select(X, y, k=4)
print(selection.features)

# %%
# Twice as many features as needed are selected (+), those that held-out rows miss least are dropped (x), and a round of
# replacement follows. The darker, the better a feature is in its phase.

selection.plot.history()
plt.show()
