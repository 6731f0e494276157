"""docs/results.md and its charts, from the results files; nothing is run.

python -m experiments.page
"""

from __future__ import annotations

from pathlib import Path

from experiments import (
    accuracy,
    adaptivity,
    budget,
    criteo,
    efficiency,
    marginal,
    masks,
    methods,
    nested,
    pixels,
    remarks,
    size_peers,
    sizes,
    speed,
    spurious,
    stability,
    suite,
    wide,
)
from experiments.results_file import COMMITTED, Results, results_folder
from experiments.runs import ROOT

IN_ORDER = (
    *(accuracy, methods, masks, adaptivity, remarks, efficiency, speed),
    *(suite, budget, pixels, marginal, wide, spurious, criteo),
    *(sizes, size_peers, nested),
)
EXPERIMENTS = {e.NAME: e for e in IN_ORDER}

OPENING = """# Results

The tables of [Sequential Attention for Feature Selection](https://arxiv.org/abs/2209.14881) (ICLR 2023),
repeated with seqatt, beside the paper's figures; and experiments that the paper does not have: more methods,
planted problems, small budgets, stability, wide and noisy tables, spurious columns.

- Figures are mean ± standard deviation over five trials (seeds 0 to 4), unless another number is given. A
  trial is one selection and one network, trained on the selected features alone with the default settings of
  `seqatt.evaluate`, the same for every method and data set.
- MNIST, Fashion-MNIST, ISOLET and Activity have official test rows. Mice Protein, COIL-20 and the wide
  tables have none: every trial splits them anew, with a random fifth for testing. Mice Protein has fifteen
  rows per mouse. Split by row, the same mouse is in training and test rows, which flatters every method;
  split by mouse, it is not. The paper does not say how it split; its figures are beside the split by row.
- **What was tuned on which rows.** seqatt's defaults were chosen with the help of data sets of this page: on
  validation rows cut from the training rows of MNIST, Fashion-MNIST, ISOLET and Activity, on other splits of
  the wide tables, and on other draws of the spurious columns. On Mice Protein, COIL-20 and the wide tables,
  which every trial splits anew, a row that is tested here may have trained a network there; and the figures
  on this page were seen in between (decisions [6](decisions/0006-ensemble.md),
  [10](decisions/0010-univariate-test.md), [11](decisions/0011-asinh-inputs.md) and
  [12](decisions/0012-unrelated-features-penalised-more.md)). So expect the default's figures to be somewhat
  optimistic. The baselines have the defaults of [methods](methods.md) in the same budget, and the
  strength of a penalty is chosen per table, on rows held out of the training rows. The settings of the network that
  evaluates selections were chosen on rows held out of the training rows too
  ([decision 7](decisions/0007-fixed-evaluation.md)). Since [decision 17](decisions/0017-evaluation-together.md) it
  trains for a third of the steps, with the same accuracy on validation rows; with all features it gains 0.004 on MNIST
  and Fashion-MNIST. The tables of every method, of wide tables and of click logs have today's evaluation throughout;
  others of commits before 2026-11-17 have the longer training.
- **The paper's figures have another evaluation.** With all features the paper's network has an accuracy of
  0.953 on MNIST and the one here 0.974, so figures of the paper and of seqatt are not comparable as equals:
  part of every difference between them is the network that evaluates, not the selection. Figures of seqatt
  are comparable with each other.
- **Some tables were measured before [decision 16](decisions/0016-features-compete-within-a-phase.md)** changed the
  default, and before the penalties of the LASSO methods joined the loss; the line under each table names its commits.
  Runs since 2026-11-16 are of the present default. In the table of spurious columns only Sequential Attention has run
  since; the selections of the other methods, and their evaluation, are older.
- A dash is a figure that was not measured. `python -m experiments.page` makes this page from
  `experiments/results`, which `make paper` fills; do not edit either by hand."""


def page(folder: Path) -> str:
    """The page, as Markdown."""
    results = {name: Results(name, folder) for name in EXPERIMENTS}
    parts = [OPENING]
    for name, experiment in EXPERIMENTS.items():
        parts.append(experiment.render(results[name]))
        if name == "accuracy":
            parts.append(stability.render(results[name]))
    return "\n\n".join(parts) + "\n"


def page_path(folder: Path) -> Path:
    """docs/results.md for the repository's own results; results.md in the same folder for any others."""
    return (ROOT / "docs" if folder.resolve() == COMMITTED.resolve() else folder) / "results.md"


def write_page(folder: Path) -> Path:
    path = page_path(folder)
    for name, experiment in EXPERIMENTS.items():
        results = Results(name, folder)
        if results.runs:
            experiment.draw(results, path.parent / "results")
    path.write_text(page(folder), encoding="utf-8")
    return path


if __name__ == "__main__":
    print(f"Wrote {write_page(results_folder())}")
