"""The scikit-learn selector of Sequential Attention, and what it shares with those of other methods."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Self

import narwhals.stable.v1 as nw
import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.feature_selection import SelectorMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from seqatt.algorithms.answer_options import AnswerOptions, needs_k
from seqatt.algorithms.neural.attention_options import AttentionOptions
from seqatt.api.constraints.name_checks import refuse_names
from seqatt.api.select import select
from seqatt.callbacks.callback import Callback
from seqatt.column_names import plain_name
from seqatt.data.tables.consistency import check_same_order
from seqatt.data.tables.containers import check_unique_names
from seqatt.data.tables.groups import Groups
from seqatt.data.tables.objects import refuse_dicts
from seqatt.data.tables.options import TableOptions
from seqatt.data.tables.target import is_structured, target_array
from seqatt.options import describe, fill_in_options
from seqatt.selection import Selection
from seqatt.selection_file import why_empty
from seqatt.validation import integer, values_or_name

MAX_SEED = 2**31 - 1  # of those that a generator draws, as in scikit-learn


class BaseSelector(SelectorMixin, BaseEstimator):  # type: ignore[misc]
    """A scikit-learn selector whose parameters are options of the method ``method``."""

    method: str
    n_features_to_select: int | float | str | None

    def fit(
        self, X: Any, y: Any = None, sample_weight: Any = None, groups_of_rows: Any = None, time: Any = None
    ) -> Self:
        """Select features; ``sample_weight``, ``groups_of_rows`` and ``time`` have one value per row."""
        table = self._check(X, reset=True)
        of_rows = {"y": y, "sample_weight": sample_weight, "groups_of_rows": groups_of_rows, "time": time}
        for name, values in of_rows.items():
            if isinstance(values_or_name(name, values), str):
                raise TypeError(
                    f"{name}: must be the values, because the mask of a selector has all columns of X; pass X without "
                    f"the column, X.drop(columns={values!r}), and X[{values!r}]"
                )
            check_same_order(X, values, ("X", name))
        options = self._options() | {"groups_of_rows": groups_of_rows, "time": time}
        refuse_names(table, options)
        return self._fit(table, self._read_target(y), sample_weight, options)

    def _fit(self, table: Any, labels: NDArray[Any], sample_weight: Any, options: dict[str, Any]) -> Self:
        """Select features of a table that was checked; a subclass goes on from there."""
        k = self.n_features_to_select
        try:
            self.selection_: Selection = select(
                table,
                labels,
                0.5 if k is None and needs_k(options) else k,
                method=self.method,
                seed=_draw_seed(getattr(self, "random_state", None)),
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
        self.ranking_ = self.selection_.rank_columns(self.n_features_in_)
        return self

    def _read_target(self, y: Any) -> Any:
        as_given = is_structured(y) or (y is None and self._options().get("task") == "reconstruction")
        return y if as_given else target_array(y, "y")

    def _options(self) -> dict[str, Any]:
        """The parameters that are options of ``select`` of the same name."""
        renamed = ("n_features_to_select", "random_state")  # k and seed of ``select``
        return {name: value for name, value in self.get_params(deep=False).items() if name not in renamed}

    def _store_parameters(self, arguments: dict[str, Any]) -> None:
        """Store the arguments of ``__init__`` as attributes of the same names, as scikit-learn expects."""
        for name in self._get_param_names():
            setattr(self, name, arguments[name])

    def transform(self, X: Any) -> Any:
        """Keep the selected columns; a DataFrame is returned as a DataFrame."""
        check_is_fitted(self)
        if not self.support_.any() and self.selection_.settings.get("partial"):
            raise ValueError(
                "callbacks: one of them stopped before a feature was selected; let it stop later"
            )
        if not self.support_.any():
            reason = why_empty(self.selection_)
            if self.selection_.frontier is not None:
                raise ValueError(
                    f"costs: selected no features: {reason}; leave them out, or use a smaller cost_rate"
                )
            by_rate = self.selection_.false_discoveries is not None
            argument = "fdr:" if by_rate else "n_features_to_select: 'auto'"
            raise ValueError(
                f"{argument} selected no features: {reason}; use {'a larger rate or ' * by_rate}a number instead"
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

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """The names of the selected columns; those of a MultiIndex as text, because scikit-learn has only text."""
        names = self.selection_.input_names if hasattr(self, "selection_") else []
        if input_features is None and any(isinstance(name, tuple) for name in names):
            return np.array([str(name) for name in names], dtype=object)[self.support_]
        return np.asarray(super().get_feature_names_out(input_features))

    def _check_names(self, X: Any) -> None:
        """Compare names that are not text (of a MultiIndex, numbers), which scikit-learn does not look at."""
        expected = self.selection_.input_names
        if all(isinstance(name, str) for name in expected):
            return
        names = getattr(X, "column_names", getattr(X, "columns", ()))
        for position, (own, name) in enumerate(zip(expected, map(plain_name, names), strict=True)):
            if str(own) != str(name):
                raise ValueError(
                    f"X: column {position} is {name!r}, but was {own!r} in fit; pass the same columns in the same order"
                )

    def _check(self, X: Any, *, reset: bool) -> Any:
        """Check X as scikit-learn does; of a DataFrame only the column names, because ``select`` reads its values."""
        refuse_dicts(X, "X")
        check_unique_names(X, "X")
        if isinstance(nw.from_native(X, eager_only=True, pass_through=True), nw.DataFrame):
            validate_data(self, X=X, reset=reset, skip_check_array=True)
            if not reset:
                self._check_names(X)
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


def _draw_seed(random_state: Any) -> int:
    """A seed from ``random_state``, 0 for None; a generator of NumPy draws another one for every fit."""
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(MAX_SEED))
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(MAX_SEED))
    return int(integer(0, optional=True)("random_state", random_state) or 0)


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
    callbacks : sequence of Callback, default ()
        Called while features are selected; ``clone`` and searches copy them.
    random_state : int, RandomState, Generator or None, default None
        The seed, or a generator that draws one per fit; None is 0, so that a fit can be repeated.

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
        exchanges: int | None = None,
        weight_decay: float | None = None,
        univariate_test: float | None = None,
        asinh_inputs: bool | None = None,
        one_pass: bool | None = None,
        reset_logits: bool = True,
        reset_model: bool = False,
        model: Any = None,
        inputs: str = "columns",
        loss: Callable[..., Any] | None = None,
        optimizer: Callable[..., Any] | None = None,
        class_weight: Mapping[Any, float] | str | None = None,
        groups: Groups | None = None,
        max_k: int | None = None,
        k_rule: str | float = "one_standard_error",
        fdr: float | None = None,
        repeats: int | None = None,
        keep: Any = (),
        forbid: Any = (),
        candidates: Any = (),
        quotas: Mapping[Any, Mapping[str, Any]] | None = None,
        costs: Mapping[Any, Any] | None = None,
        budget: float | None = None,
        cost_rate: float | None = None,
        importance: bool | None = None,
        task: str | None = None,
        quantile: float = 0.5,
        log1p: bool | tuple[str, ...] = False,
        negatives_kept: float = 1.0,
        missing_indicator: bool = False,
        max_categories: int = 64,
        device: str = "auto",
        progress: bool = False,
        callbacks: Sequence[Callback] = (),
        random_state: int | np.random.RandomState | np.random.Generator | None = None,
    ) -> None:
        self._store_parameters(locals())


SequentialAttentionSelector.__doc__ = fill_in_options(
    SequentialAttentionSelector.__doc__,
    describe(AttentionOptions)
    + describe(TableOptions, skip={"sample_weight", "groups_of_rows", "time", "ignore", "column_types"})
    + describe(AnswerOptions),
)
