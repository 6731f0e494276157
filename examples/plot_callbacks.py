"""
Watch a selection and stop it early
===================================

A callback sees every phase of a selection. Here one records the training loss, and ``EarlyStopping`` ends the selection
when further features no longer lower it.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits

import seqatt

X, y = load_digits(return_X_y=True)

# %%
# A callback is a class with the methods that it needs. Phases that add features are those that have more of them than
# all phases before: later ones drop the features that are least useful.


class Losses(seqatt.Callback):
    def __init__(self):
        self.features, self.losses = [], []

    def on_phase_end(self, state):
        if len(state.features) > max(self.features, default=0):
            self.features.append(len(state.features))
            self.losses.append(state.loss)


# %%
# The same selection twice: to its end, and until three phases in a row have not lowered the loss by 0.05.

whole, early = Losses(), Losses()
seqatt.select(X, y, k=20, callbacks=[whole])
stopping = seqatt.callbacks.EarlyStopping(patience=3, min_delta=0.05)
selection = seqatt.select(X, y, k=20, callbacks=[early, stopping])
print(selection)

# %%
# Until it stops, the selection is the same: callbacks change nothing.

assert whole.losses[: len(early.losses)] == early.losses

fig, ax = plt.subplots(figsize=(7, 4))
ax.plot(whole.features, whole.losses, color="0.7", label="to the end")
ax.plot(early.features, early.losses, "o-", label="with EarlyStopping")
ax.axvline(early.features[-1], linestyle=":", color="C0")
ax.annotate("stopped", (early.features[-1], max(early.losses)), xytext=(6, -8), textcoords="offset points")
ax.set(xlabel="features selected at the end of the phase", ylabel="training loss of the phase")
ax.set_title("Handwritten digits: the loss while pixels are added")
ax.legend()
plt.tight_layout()
plt.show()
