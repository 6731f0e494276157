"""scikit-learn selectors: check the input, call ``select``, store the result."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Self

import narwhals.stable.v1 as nw
import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.feature_selection import SelectorMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from seqatt.algorithms.answer_options import AnswerOptions
from seqatt.algorithms.neural.attention_options import AttentionOptions
from seqatt.api.select import select
from seqatt.data.tables.consistency import check_same_order
from seqatt.data.tables.containers import check_unique_names
from seqatt.data.tables.options import TableOptions
from seqatt.data.tables.table_data import Groups
from seqatt.data.tables.target import target_array
from seqatt.options import describe, fill_in_options
from seqatt.selection import Selection, why_empty
from seqatt.validation import integer


class BaseSelector(SelectorMixin, BaseEstimator):  # type: ignore[misc]
    """A scikit-learn selector whose parameters are options of the method ``method``."""

    method: str
    n_features_to_select: int | float | str | None

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Select features; ``sample_weight`` has one weight per row."""
        table = self._check(X, reset=True)
        if isinstance(y, str):
            raise TypeError(
                f"y: must be the values, because the mask of a selector has all columns of X; pass X without the "
                f"column, X.drop(columns={y!r}), and X[{y!r}]"
            )
        check_same_order(X, y, ("X", "y"))
        check_same_order(X, sample_weight, ("X", "sample_weight"))
        labels = target_array(y, "y")
        options = self._options()
        seed = integer(0, optional=True)("random_state", getattr(self, "random_state", None))
        k = self.n_features_to_select
        try:
            self.selection_: Selection = select(
                table,
                labels,
                0.5 if k is None and options.get("fdr") is None else k,
                method=self.method,
                seed=0 if seed is None else seed,
                sample_weight=sample_weight,
                **options,
            )
        except (TypeError, ValueError) as error:
            message = str(error)
            if not message.startswith("k: "):
                raise
            # Not checked before, because the number of features depends on the groups.
            raise type(error)(f"n_features_to_select{message[1:]}") from None
        self.support_ = np.zeros(self.n_features_in_, dtype=bool)
        self.support_[self.selection_.columns] = True
        self.ranking_ = _rank_columns(self.selection_, self.n_features_in_)
        return self

    def _options(self) -> dict[str, Any]:
        """The parameters that are options of ``select`` of the same name."""
        parameters = self.get_params(deep=False).items()
        renamed = ("n_features_to_select", "random_state")  # k and seed of ``select``
        return {name: value for name, value in parameters if name not in renamed}

    def _store_parameters(self, arguments: dict[str, Any]) -> None:
        """Store the arguments of ``__init__`` as attributes of the same names, as scikit-learn expects."""
        for name in self._get_param_names():
            setattr(self, name, arguments[name])

    def transform(self, X: Any) -> Any:
        """Keep the selected columns; a DataFrame is returned as a DataFrame."""
        check_is_fitted(self)
        if not self.support_.any():
            by_rate = self.selection_.false_discoveries is not None
            argument = "fdr:" if by_rate else "n_features_to_select: 'auto'"
            raise ValueError(
                f"{argument} selected no features: {why_empty(self.selection_)}; use "
                f"{'a larger rate or ' * by_rate}a number instead"
            )
        check_unique_names(X, "X")
        frame = nw.from_native(X, eager_only=True, pass_through=True)
        if not isinstance(frame, nw.DataFrame):
            return super().transform(X)
        self._check(X, reset=False)
        return frame[:, self.get_support(indices=True).tolist()].to_native()

    def _get_support_mask(self) -> NDArray[np.bool_]:
        check_is_fitted(self)
        return self.support_

    def _check(self, X: Any, *, reset: bool) -> Any:
        """Check X as scikit-learn does; of a DataFrame only the column names, because ``select`` reads its values."""
        check_unique_names(X, "X")
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
    """Select features by Sequential Attention, as a scikit-learn selector.

    Works in pipelines, searches, ``clone``, pickles and ``set_output``. NaN, categories and sparse matrices need no
    preparation. A DataFrame is returned as a DataFrame, with its names and types.

    Parameters
    ----------
    n_features_to_select : int, float, "auto" or None, default None
        Number of features, or the fraction of them; "auto" finds out how many are needed; None is half.
    device : str, default "auto"
        "auto" is CUDA where there is one, else "cpu".
    progress : bool, default False
        Show a progress bar on the terminal or in a notebook.
    random_state : int or None, default None
        The seed; None is 0, so that a fit can be repeated.

    Options of ``seqatt.select``:

    {options}

    Attributes
    ----------
    selection_ : Selection
        The result, with the order, the scores and the history.
    support_ : ndarray of bool, one value per input column
        Whether each input column is selected.
    ranking_ : ndarray of int, one value per input column
        1 is the first feature selected.
    n_features_in_, feature_names_in_ :
        As everywhere in scikit-learn.

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
        n_features_to_select: int | float | str | None = None,
        *,
        epochs: float | None = None,
        batch_size: int | None = None,
        learning_rate: float = 3e-3,
        scaling: str = "standard",
        hidden: tuple[int, ...] = (67,),
        activation: str = "relu",
        dropout: float = 0.0,
        input_dropout: float | None = None,
        label_smoothing: float = 0.0,
        batch_norm: bool = False,
        embedding_dim: int | None = None,
        recipe: str = "default",
        mask: str = "softmax",
        temperature: float = 1.0,
        logit_learning_rate: float | None = None,
        features_per_phase: int | None = None,
        warmup: float = 0.1,
        ensemble: int | None = None,
        surplus: float | None = None,
        replacement: int | None = None,
        weight_decay: float | None = None,
        univariate_test: float | None = None,
        asinh_inputs: bool | None = None,
        one_pass: bool | None = None,
        reset_logits: bool = True,
        reset_model: bool = False,
        model: Any = None,
        loss: Callable[..., Any] | None = None,
        optimizer: Callable[..., Any] | None = None,
        class_weight: Mapping[Any, float] | str | None = None,
        groups: Groups | None = None,
        max_k: int | None = None,
        k_rule: str | float = "one_standard_error",
        fdr: float | None = None,
        repeats: int | None = None,
        keep: Any = (),
        importance: bool | None = None,
        task: str | None = None,
        log1p: bool | tuple[str, ...] = False,
        negatives_kept: float = 1.0,
        missing_indicator: bool = False,
        max_categories: int = 64,
        device: str = "auto",
        progress: bool = False,
        random_state: int | None = None,
    ) -> None:
        self._store_parameters(locals())


SequentialAttentionSelector.__doc__ = fill_in_options(
    SequentialAttentionSelector.__doc__,
    describe(AttentionOptions)
    + describe(TableOptions, skip={"sample_weight", "ignore", "column_types"})
    + describe(AnswerOptions),
)


class _LinearSelector(BaseSelector):
    """A linear method: nothing is trained on a device and nothing is random, so only options of the table remain."""

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
        self._store_parameters(locals())


class OMPSelector(_LinearSelector):
    """Select features by Orthogonal Matching Pursuit on least squares; classes are one-hot targets.

    Parameters and attributes are those of ``SequentialAttentionSelector``, without those about networks.

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
    """Select features by Sequential LASSO on least squares; parameters and attributes as in ``OMPSelector``."""

    method = "linear_sequential_lasso"


class LinearAttentionSelector(_LinearSelector):
    """Select features by regularised linear Sequential Attention; parameters and attributes as in ``OMPSelector``.

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
        self._store_parameters(locals())


def _rank_columns(selection: Selection, columns: int) -> NDArray[np.int64]:
    """The rank of each input column; the columns of a group share the rank of the group."""
    if len(selection.names) == columns:
        return selection.ranking
    ranking = np.zeros(columns, dtype=np.int64)
    for rank, input_columns in zip(selection.ranking, selection.input_columns, strict=True):
        ranking[input_columns] = rank
    return ranking
