"""
The layer in your own training loop
===================================

``SequentialAttention`` is a module in front of a model. Its weights are recorded at every step.
"""

import matplotlib.pyplot as plt
import numpy as np
import torch
from sklearn.datasets import load_breast_cancer

from seqatt import SequentialAttention

data = load_breast_cancer()
x = torch.tensor((data.data - data.data.mean(0)) / data.data.std(0), dtype=torch.float32)
y = torch.tensor(data.target, dtype=torch.float32)[:, None]

torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(30, 32), torch.nn.ReLU(), torch.nn.Linear(32, 1))
attention = SequentialAttention(num_features=30, k=4, total_steps=600)
groups = [{"params": model.parameters()}, {"params": attention.parameters(), "lr": 0.05}]
optimizer = torch.optim.Adam(groups, lr=3e-3)

weights = []
for _ in range(600):
    loss = torch.nn.functional.binary_cross_entropy_with_logits(model(attention(x)), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    attention.advance()
    weights.append(attention.weights.detach().numpy().copy())
print([str(data.feature_names[i]) for i in attention.selected])

# %%
# After a warm-up on all features at weight 1, the unselected features share an attention of 1. At the end of each phase
# the one with the largest share is selected: it has weight 1 from then on.

weights = np.array(weights)
figure, axes = plt.subplots(figsize=(8, 3.2), layout="constrained")
axes.plot(weights, color="#cccccc", linewidth=0.8)
for i in attention.selected:
    axes.plot(weights[:, i], linewidth=2, label=data.feature_names[i])
axes.set_xlabel("step")
axes.set_ylabel("weight of the feature")
axes.legend(frameon=False, loc="upper left", bbox_to_anchor=(1.0, 1.0))
plt.show()
