"""
A click log in Parquet files
============================

Numbers, categories with up to 100,000 values and missing values, read from files. The log is generated, so the features
that determine the clicks are known.
"""

import tempfile

import matplotlib.pyplot as plt

import seqatt
from seqatt.datasets.synthetic import click_log

with tempfile.TemporaryDirectory() as folder:
    log = click_log(folder, rows=20_000)
    selection = seqatt.select(f"{folder}/*.parquet", target="click", k=6)
print(selection.features, "of which planted:", len(set(selection.features) & set(log.planted)))

# %%
# A category is one feature, however many values it has.

selection.plot.scores()
plt.show()
