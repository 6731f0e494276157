"""``seqatt demo``: a first selection, on data that comes with scikit-learn."""

from __future__ import annotations

from typing import Annotated, Any

import typer


def split_digits(seed: int) -> tuple[Any, Any, Any, Any]:
    """Training and test images as Arrow tables, each with its digits: X_train, X_test, y_train, y_test."""
    import pyarrow as pa
    from sklearn.datasets import load_digits
    from sklearn.model_selection import train_test_split

    data = load_digits()
    table = pa.table(dict(zip(data.feature_names, data.data.T, strict=True)))
    rows = range(len(data.target))
    train, test = train_test_split(rows, test_size=0.3, random_state=seed, stratify=data.target)
    return table.take(train), table.take(test), data.target[train], data.target[test]


def demo(
    seed: Annotated[int, typer.Option(help="The same seed gives the same result.")] = 0,
    device: Annotated[str, typer.Option(help="auto, cpu or cuda.")] = "auto",
) -> None:
    """Select 12 of the 64 pixels of scikit-learn's handwritten digits and evaluate them on test images."""
    from seqatt.api.select import select as select_features
    from seqatt.cli.display import show, show_pixels, show_scores
    from seqatt.cli.holdout import evaluate_holdout

    X_train, X_test, y_train, y_test = split_digits(seed)
    print(
        f"Handwritten digits: {len(y_train):,} training images, 64 pixels, 10 classes.\n"
        "Selecting 12 pixels with Sequential Attention ...\n"
    )
    selection = select_features(X_train, y_train, k=12, seed=seed, device=device, progress=True)
    show(selection, "digit")
    show_pixels(selection.indices.tolist())
    scores = evaluate_holdout(X_train, y_train, X_test, y_test, selection, device, {})
    show_scores(scores, f"on {len(y_test)} test images")
    print("Next: seqatt select your.csv --target your_column -k 10")
