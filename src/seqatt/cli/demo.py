"""``seqatt demo``: a first selection, on data that comes with scikit-learn."""

from __future__ import annotations

from typing import Annotated

import typer


def demo(
    seed: Annotated[int, typer.Option(help="One seed gives one answer.")] = 0,
    device: Annotated[str, typer.Option(help="auto, cpu or cuda.")] = "auto",
) -> None:
    """Choose 12 of the 64 pixels of scikit-learn's handwritten digits, and see how far they go."""
    from sklearn.datasets import load_digits
    from sklearn.model_selection import train_test_split

    from seqatt.api.select import select as choose
    from seqatt.cli.display import show, show_pixels, show_scores
    from seqatt.cli.holdout import score_beside

    data = load_digits(as_frame=True)
    X_train, X_test, y_train, y_test = train_test_split(
        data.data, data.target, test_size=0.3, random_state=seed, stratify=data.target
    )
    print(
        f"Handwritten digits: {len(X_train):,} images to learn from, 64 pixels, 10 classes.\n"
        "Choosing 12 pixels with Sequential Attention ...\n"
    )
    selection = choose(X_train, y_train, k=12, seed=seed, device=device, progress=True)
    show(selection, "digit")
    show_pixels(selection.indices.tolist())
    scores = score_beside(X_train, y_train, X_test, y_test, selection, device, {})
    show_scores(scores, f"on {len(X_test)} images never seen")
    print("Next: seqatt select your.csv --target your_column -k 10")
