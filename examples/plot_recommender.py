"""
Features of a recommender
=========================

A model of ratings with an embedding per field; the layer behind the embeddings selects the fields that matter.
"""

# %%
# Ratings are generated: they depend on the user, the item, the hour of the day and the price, in that order of
# strength. Eight more fields, such as the browser, are noise.

import matplotlib.pyplot as plt
import torch
from torch import nn

from seqatt import SequentialAttention

torch.manual_seed(0)
ROWS, WIDTH = 20_000, 8
SIZES = {
    "user": 200,
    "item": 100,
    "hour": 24,
    "browser": 12,
    "region": 50,
    "campaign": 30,
    "device": 6,
    "day": 7,
}
NUMBERS = ["price", "age", "past clicks", "seconds"]
FIELDS = [*SIZES, *NUMBERS]

codes = torch.stack([torch.randint(0, size, (ROWS,)) for size in SIZES.values()], dim=1)
numbers = torch.randn(ROWS, len(NUMBERS))
taste, quality, mood = torch.randn(200), torch.randn(100), torch.randn(24)
score = 1.2 * taste[codes[:, 0]] + quality[codes[:, 1]] + 0.8 * mood[codes[:, 2]] - 0.6 * numbers[:, 0]
liked = (score + 0.5 * torch.randn(ROWS) > 0).float()

# %%
# Every category has an embedding, every number a direction; the layer gates fields of shape
# ``(batch, fields, width)``, so ``dim=1``.


class Recommender(nn.Module):
    def __init__(self, attention):
        super().__init__()
        self.embeddings = nn.ModuleList(nn.Embedding(size, WIDTH) for size in SIZES.values())
        self.directions = nn.Parameter(torch.randn(len(NUMBERS), WIDTH) / WIDTH**0.5)
        self.attention = attention
        self.head = nn.Sequential(
            nn.Flatten(), nn.Linear(len(FIELDS) * WIDTH, 64), nn.ReLU(), nn.Linear(64, 1)
        )

    def forward(self, codes, numbers):
        categories = torch.stack([embed(codes[:, j]) for j, embed in enumerate(self.embeddings)], dim=1)
        fields = torch.cat([categories, numbers[:, :, None] * self.directions], dim=1)
        return self.head(self.attention(fields))[:, 0]


# %%
# An ordinary training loop: the logits have a learning rate of their own, and ``advance`` follows each step. All four
# fields are selected after 1,200 steps; the other 800 train on these alone.

STEPS = 2_000
attention = SequentialAttention(num_features=len(FIELDS), k=4, total_steps=1_200, dim=1)
model = Recommender(attention)
rest = [parameter for parameter in model.parameters() if parameter is not attention.logits]
optimizer = torch.optim.Adam([{"params": rest}, {"params": attention.parameters(), "lr": 0.05}], lr=3e-3)
train, test = torch.arange(16_000), torch.arange(16_000, ROWS)
weights = []
for _ in range(STEPS):
    rows = train[torch.randint(0, len(train), (256,))]
    loss = nn.functional.binary_cross_entropy_with_logits(model(codes[rows], numbers[rows]), liked[rows])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    attention.advance()
    weights.append(attention.weights.detach().clone())

print([FIELDS[i] for i in attention.selected])

# %%
# In ``eval`` mode only the selected fields enter the model.

with torch.no_grad():
    right = ((model.eval()(codes[test], numbers[test]) > 0) == (liked[test] > 0)).float().mean()
print(f"accuracy with 4 of {len(FIELDS)} fields: {right:.3f}")

# %%
# How the weights moved: a field that is selected stays at 1, and the others compete for the next phase.

fig, axis = plt.subplots(figsize=(8, 4))
for i, name in enumerate(FIELDS):
    chosen = i in attention.selected
    axis.plot(
        torch.stack(weights)[:, i], label=name if chosen else None, color=None if chosen else "lightgrey"
    )
axis.set(xlabel="optimizer step", ylabel="attention weight", title="Fields of a recommender")
axis.legend(loc="center right")
plt.show()
