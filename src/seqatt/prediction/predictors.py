"""scikit-learn estimators that select features and predict: networks retrained on the selected features alone."""

from __future__ import annotations

import os
import warnings
from typing import Any, Self

import narwhals.stable.v1 as nw
import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from seqatt.column_names import plain_name, take_columns
from seqatt.data.tables.containers import check_unique_names
from seqatt.data.tables.options import TableOptions
from seqatt.data.tables.target import is_structured
from seqatt.estimators import SequentialAttentionSelector
from seqatt.options import names_of
from seqatt.prediction.fitted_model import FittedModel, fit_model
from seqatt.prediction.train import NETWORKS
from seqatt.selection_file import why_empty

OF_NETWORKS = ("hidden", "activation", "embedding_dim")  # options of the networks that predict
OWN_CODE = ("model", "loss", "optimizer")
CLASSES = ("classification", "binary", "multiclass", "multilabel")  # tasks of a classifier
PREDICTED = "only classes and numbers are predicted; use SequentialAttentionSelector to select features"


class _Predictor(SequentialAttentionSelector):
    """A selector that also predicts, by networks that are retrained on its features; its parameters are the same."""

    def export(self, path: str | os.PathLike[str]) -> None:
        """Write the networks with their preprocessing to a file that takes the selected columns alone.

        A path that ends with ``.onnx`` gets an ONNX model (``pip install 'seqatt[onnx]'``), with one input per column:
        numbers as float64, NaN where missing; categories as text, empty where missing. One that ends with ``.pt2`` gets
        a ``torch.export`` program of numbers and codes of categories. docs/how_to/predict.md shows how to use both.
        """
        check_is_fitted(self)
        self.model_.export(path)

    def _options(self) -> dict[str, Any]:
        options = super()._options()
        for name in OWN_CODE:
            if options[name] is not None:
                raise ValueError(
                    f"{name}: the networks that predict are seqatt's own; use SequentialAttentionSelector({name}=...) "
                    "in a pipeline with your own estimator instead"
                )
        return options

    def _fit(self, table: Any, labels: NDArray[Any], sample_weight: Any, options: dict[str, Any]) -> Self:
        if is_structured(labels):
            raise ValueError(f"y: is a structured array, of events and times; {PREDICTED}")
        options["task"] = self._choose_task(options["task"], labels)
        groups = options.get("groups_of_rows")
        if groups is not None and (count := len(set(np.asarray(groups).tolist()))) < NETWORKS:
            raise ValueError(
                f"groups_of_rows: has {count} groups, and each of {NETWORKS} networks holds out groups of its own; use "
                "SequentialAttentionSelector, or leave it out"
            )
        super()._fit(table, labels, sample_weight, options)
        if not len(self.selection_.columns):
            reason = why_empty(self.selection_) or "a callback stopped before the first"
            warnings.warn(
                f"no features were selected ({reason}), so that every row gets the same prediction",
                stacklevel=3,
            )
        self.model_: FittedModel = fit_model(
            table,
            labels,
            sample_weight,
            self.selection_.columns.tolist(),
            TableOptions(**{name: options[name] for name in names_of(TableOptions) if name in options}),
            {name: options[name] for name in OF_NETWORKS},
            self.selection_.seed,
            progress=self.progress,
        )
        return self

    def _choose_task(self, task: str | None, labels: NDArray[Any]) -> str:
        """The task of ``select``, where None is what the labels are to this estimator."""
        raise NotImplementedError

    def _apply(self, X: Any, *, logits: bool = False) -> NDArray[np.float64]:
        """Probabilities or predicted values of the rows, or logits."""
        check_is_fitted(self)
        predict = self.model_.predict_logits if logits else self.model_.predict
        if self._has_selected_columns(X):
            return predict(
                take_columns(X, self.model_.inputs.columns, self.selection_.input_names), selected_only=True
            )
        return predict(self._check(X, reset=False))

    def _has_selected_columns(self, X: Any) -> bool:
        """Whether X is a data frame with other columns than those of fit; one that is selected must not be missing."""
        check_unique_names(X, "X")
        frame = nw.from_native(X, eager_only=True, pass_through=True)
        inputs = self.model_.inputs
        if not (isinstance(frame, nw.DataFrame) and inputs.schema.named and inputs.columns):
            return False
        given = {str(plain_name(name)) for name in frame.columns}
        expected = [str(name) for name in self.selection_.input_names]
        if given == set(expected):
            return False
        missing = [expected[column] for column in inputs.columns if expected[column] not in given]
        if missing:
            raise ValueError(f"X: column {missing[0]!r} is missing, which the model needs")
        return True


class SequentialAttentionClassifier(ClassifierMixin, _Predictor):  # type: ignore[misc]
    """Select features by Sequential Attention and classify by networks that are retrained on them.

    ``fit`` selects features as ``SequentialAttentionSelector`` does, then trains five networks on them by the recipe of
    ``seqatt.evaluate``, each on four fifths of the rows. Their logits are averaged, and multiplied by the factor that
    gives the rows they did not train on the smallest log loss, so that probabilities are calibrated. NaN, categories
    and sparse matrices need no preparation. Two classes, more, or several columns of 0 and 1. ``predict`` takes all
    columns of ``fit``, or a data frame that has the selected ones.

    Parameters
    ----------
    n_features_to_select : int, float, "auto" or None, default None
        Number of features, or the fraction of them; "auto" finds out how many are needed; None is half.
    **parameters
        Those of ``SequentialAttentionSelector``, except ``model``, ``loss`` and ``optimizer``. They are about the
        selection; ``hidden``, ``activation`` and ``embedding_dim`` about the networks that predict too.

    Attributes
    ----------
    classes_ : ndarray
        The labels, in the order of the columns of ``predict_proba``.
    selection_, support_, ranking_, n_features_in_, feature_names_in_ :
        As in ``SequentialAttentionSelector``.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from seqatt import SequentialAttentionClassifier
    >>> X, y = load_wine(return_X_y=True, as_frame=True)
    >>> classifier = SequentialAttentionClassifier(n_features_to_select=4).fit(X[::2], y[::2])
    >>> bool(classifier.score(X[1::2], y[1::2]) > 0.9)
    True
    """

    def _read_target(self, y: Any) -> Any:
        series = nw.from_native(y, series_only=True, pass_through=True)
        if isinstance(series, nw.Series) and series.dtype == nw.Categorical:
            y = np.asarray(series.to_native())  # labels of their own type, so that predictions have it too
        labels = super()._read_target(y)
        if not is_structured(labels):  # refused later
            check_classification_targets(labels)
        return labels

    def _choose_task(self, task: str | None, labels: NDArray[Any]) -> str:
        if task not in (None, *CLASSES):
            remedy = "use SequentialAttentionRegressor" if task == "regression" else PREDICTED
            raise ValueError(f"task: a classifier has no {task}; {remedy}")
        return task or ("classification" if labels.ndim == 1 else "multilabel")

    def _fit(self, table: Any, labels: NDArray[Any], sample_weight: Any, options: dict[str, Any]) -> Self:
        super()._fit(table, labels, sample_weight, options)
        classes = self.model_.classes
        self.classes_ = np.arange(self.model_.outputs) if classes is None else classes
        return self

    def predict(self, X: Any) -> NDArray[Any]:
        """The label of each row; with several labels, an array (rows, labels) of 0 and 1."""
        logits = self._apply(X, logits=True)
        if self.model_.task == "multilabel":
            return (logits > 0).astype(np.int64)
        best = (logits[:, 0] > 0).astype(np.int64) if logits.shape[1] == 1 else logits.argmax(1)
        return np.asarray(self.classes_[best])

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Probabilities (rows, classes), in the order of ``classes_``; of each label, with several labels."""
        return self._apply(X)

    def predict_log_proba(self, X: Any) -> NDArray[np.float64]:
        """The logarithms of ``predict_proba``."""
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(self.predict_proba(X)))

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Calibrated logits: (rows,) for two classes, above 0 for the second; else (rows, classes)."""
        logits = self._apply(X, logits=True)
        return logits[:, 0] if self.model_.task == "binary" else logits

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        return tags


class SequentialAttentionRegressor(RegressorMixin, _Predictor):  # type: ignore[misc]
    """Select features by Sequential Attention and predict numbers by networks that are retrained on them.

    As ``SequentialAttentionClassifier``, for one number per row or several. The prediction is the mean of five
    networks, each of which is trained on four fifths of the rows.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from seqatt import SequentialAttentionRegressor
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> regressor = SequentialAttentionRegressor(n_features_to_select=4).fit(X[::2], y[::2])
    >>> bool(regressor.score(X[1::2], y[1::2]) > 0.4)
    True
    """

    def _choose_task(self, task: str | None, labels: NDArray[Any]) -> str:
        if task not in (None, "regression"):
            remedy = "use SequentialAttentionClassifier" if task in CLASSES else PREDICTED
            raise ValueError(f"task: a regressor has no {task}; {remedy}")
        return "regression"

    def predict(self, X: Any) -> NDArray[np.float64]:
        """The predicted number of each row (rows,), or numbers (rows, outputs)."""
        predicted = self._apply(X)
        return predicted[:, 0] if predicted.shape[1] == 1 else predicted
