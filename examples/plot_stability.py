"""
How often a feature is chosen
=============================

``repeats=20`` selects on twenty halves of the rows. Features that hold the same information are chosen now one, now
another, and are shown together.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_breast_cancer

import seqatt

data = load_breast_cancer(as_frame=True)
selection = seqatt.select(data.data, data.target, k=4, repeats=20)
for cluster in selection.stability["clusters"]:
    members = " or ".join(selection.names[i] for i in cluster["features"])
    print(f"{members}: {cluster['frequency']:.0%} together")

# %%
# Blue: the answer. Grey: the others that some half of the rows chose.

selection.plot.stability()
plt.show()
