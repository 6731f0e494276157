"""scikit-learn fronts: check, call a method, store."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Self

import narwhals.stable.v1 as nw
import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.feature_selection import SelectorMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from seqatt.api.select import select
from seqatt.data.tables.table_data import Groups
from seqatt.data.tables.target import target_array
from seqatt.selection import Selection


class BaseSelector(SelectorMixin, BaseEstimator):  # type: ignore[misc]
    """What every selector does: parameters are the options of its ``method``."""

    method: str
    n_features_to_select: int | float | None

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Choose features; ``sample_weight`` weighs rows."""
        table = self._check(X, reset=True)
        labels = target_array(y, "y")
        options = self._options()
        seed = getattr(self, "random_state", None)
        k = self.n_features_to_select
        self.selection_: Selection = select(
            table,
            labels,
            0.5 if k is None else k,
            method=self.method,
            seed=0 if seed is None else seed,
            sample_weight=sample_weight,
            **options,
        )
        self.support_ = np.zeros(self.n_features_in_, dtype=bool)
        self.support_[self.selection_.columns] = True
        self.ranking_ = _rank_columns(self.selection_, self.n_features_in_)
        return self

    def _options(self) -> dict[str, Any]:
        """What ``select`` is told beside the table, the method, k and the seed."""
        given = self.get_params(deep=False).items()
        return {name: value for name, value in given if name not in ("n_features_to_select", "random_state")}

    def transform(self, X: Any) -> Any:
        """Keep the chosen columns; a DataFrame stays one."""
        check_is_fitted(self)
        frame = nw.from_native(X, eager_only=True, pass_through=True)
        if not isinstance(frame, nw.DataFrame):
            return super().transform(X)
        self._check(X, reset=False)
        return frame[:, self.get_support(indices=True).tolist()].to_native()

    def _get_support_mask(self) -> NDArray[np.bool_]:
        check_is_fitted(self)
        return self.support_

    def _check(self, X: Any, *, reset: bool) -> Any:
        """Frames keep their types and are read by seqatt; anything else goes through scikit-learn."""
        if isinstance(nw.from_native(X, eager_only=True, pass_through=True), nw.DataFrame):
            validate_data(self, X=X, reset=reset, skip_check_array=True)
            return X
        return validate_data(
            self,
            X=X,
            reset=reset,
            accept_sparse="csr",
            dtype="numeric",
            ensure_all_finite="allow-nan",
            ensure_min_samples=2 if reset else 1,
        )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.sparse = True
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        tags.target_tags.required = True
        tags.target_tags.multi_output = True
        return tags


class SequentialAttentionSelector(BaseSelector):
    """Choose features by Sequential Attention, as a scikit-learn selector.

    Works in pipelines, searches, ``clone``, pickles and ``set_output``; NaN, categories and sparse
    input are welcome. A DataFrame comes back as a DataFrame, with its names and types.

    Parameters
    ----------
    n_features_to_select : int, float or None
        How many features, or which fraction of them; None is half.
    random_state : int or None
        The seed; None is 0, so that a fit can be repeated.
    device, epochs, batch_size, ... :
        As in ``seqatt.select``.

    Attributes
    ----------
    selection_ : Selection, with the order, the scores and the history.
    support_ : (n_features_in_,) bool. ranking_ : (n_features_in_,) int, 1 is the first chosen.
    n_features_in_, feature_names_in_ : as everywhere in scikit-learn.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from seqatt import SequentialAttentionSelector
    >>> X, y = load_wine(return_X_y=True, as_frame=True)
    >>> SequentialAttentionSelector(n_features_to_select=4).fit_transform(X, y).shape
    (178, 4)
    """

    method = "sequential_attention"

    def __init__(
        self,
        n_features_to_select: int | float | None = None,
        *,
        epochs: float | None = None,
        batch_size: int | None = None,
        learning_rate: float = 3e-3,
        hidden: Sequence[int] = (67,),
        activation: str = "relu",
        dropout: float = 0.0,
        input_dropout: float | None = None,
        label_smoothing: float = 0.0,
        batch_norm: bool = False,
        mask: str = "softmax",
        temperature: float = 1.0,
        features_per_phase: int | None = None,
        warmup: float = 0.1,
        ensemble: int | None = None,
        surplus: float = 2.0,
        replacement: int | None = None,
        weight_decay: float | None = None,
        univariate_test: float | None = None,
        asinh_inputs: bool | None = None,
        one_pass: bool = True,
        reset_model: bool = False,
        model: Any = None,
        loss: Callable[..., Any] | None = None,
        optimizer: Callable[..., Any] | None = None,
        class_weight: Mapping[Any, float] | str | None = None,
        groups: Groups | None = None,
        task: str | None = None,
        missing_indicator: bool = False,
        max_categories: int = 64,
        device: str = "auto",
        progress: bool = False,
        random_state: int | None = None,
    ) -> None:
        self.n_features_to_select = n_features_to_select
        self.epochs = epochs
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.hidden = hidden
        self.activation = activation
        self.dropout = dropout
        self.input_dropout = input_dropout
        self.label_smoothing = label_smoothing
        self.batch_norm = batch_norm
        self.mask = mask
        self.temperature = temperature
        self.features_per_phase = features_per_phase
        self.warmup = warmup
        self.ensemble = ensemble
        self.surplus = surplus
        self.replacement = replacement
        self.weight_decay = weight_decay
        self.univariate_test = univariate_test
        self.asinh_inputs = asinh_inputs
        self.one_pass = one_pass
        self.reset_model = reset_model
        self.model = model
        self.loss = loss
        self.optimizer = optimizer
        self.class_weight = class_weight
        self.groups = groups
        self.task = task
        self.missing_indicator = missing_indicator
        self.max_categories = max_categories
        self.device = device
        self.progress = progress
        self.random_state = random_state


class _LinearSelector(BaseSelector):
    def __init__(
        self,
        n_features_to_select: int | float | None = None,
        *,
        class_weight: Mapping[Any, float] | str | None = None,
        groups: Groups | None = None,
        task: str | None = None,
        missing_indicator: bool = False,
        max_categories: int = 64,
    ) -> None:
        self.n_features_to_select = n_features_to_select
        self.class_weight = class_weight
        self.groups = groups
        self.task = task
        self.missing_indicator = missing_indicator
        self.max_categories = max_categories


class OMPSelector(_LinearSelector):
    """Choose features by Orthogonal Matching Pursuit on least squares; classes are one-hot targets.

    Parameters and attributes are those of ``SequentialAttentionSelector``, less what concerns networks.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from seqatt import OMPSelector
    >>> X, y = load_wine(return_X_y=True, as_frame=True)
    >>> OMPSelector(n_features_to_select=2).fit(X, y).selection_.features
    ['proline', 'color_intensity']
    """

    method = "linear_omp"


class SequentialLassoSelector(_LinearSelector):
    """Choose features by Sequential LASSO on least squares; as ``OMPSelector``."""

    method = "linear_sequential_lasso"


class LinearAttentionSelector(_LinearSelector):
    """Choose features by regularised linear Sequential Attention; as ``OMPSelector``.

    ``parameterisation`` is "linear" (Definition 3.1) or "softmax" (Lemma 3.2).
    """

    method = "linear_attention"

    def __init__(
        self,
        n_features_to_select: int | float | None = None,
        *,
        parameterisation: str = "linear",
        class_weight: Mapping[Any, float] | str | None = None,
        groups: Groups | None = None,
        task: str | None = None,
        missing_indicator: bool = False,
        max_categories: int = 64,
    ) -> None:
        super().__init__(
            n_features_to_select,
            class_weight=class_weight,
            groups=groups,
            task=task,
            missing_indicator=missing_indicator,
            max_categories=max_categories,
        )
        self.parameterisation = parameterisation


def _rank_columns(selection: Selection, columns: int) -> NDArray[np.int64]:
    """Each input column's place; the columns of a group share the group's."""
    if len(selection.names) == columns:
        return selection.ranking
    ranking = np.zeros(columns, dtype=np.int64)
    for place, members in zip(selection.ranking, selection.members, strict=True):
        ranking[members] = place
    return ranking
