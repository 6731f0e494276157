"""Other methods as scikit-learn selectors: ``FeatureSelector`` for any of them, and one for each linear method."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from seqatt.callbacks.callback import Callback
from seqatt.data.tables.groups import Groups
from seqatt.estimators import BaseSelector
from seqatt.validation import show

# Arguments of ``select`` that have another place in a scikit-learn selector.
OTHER_PARAMETERS = {
    "X": "an argument of fit",
    "y": "an argument of fit",
    "sample_weight": "an argument of fit",
    "groups_of_rows": "an argument of fit",
    "time": "an argument of fit",
    "k": "the parameter n_features_to_select",
    "seed": "the parameter random_state",
    "seeds": "the parameter random_state",
    "method": "a parameter of its own",
    "device": "a parameter of its own",
    "progress": "a parameter of its own",
    "callbacks": "a parameter of its own",
    "ignore": "not for a selector, whose mask has all columns; leave them out of X instead",
}


class FeatureSelector(BaseSelector):
    """Select features by any method of ``seqatt.methods()``, as a scikit-learn selector.

    Parameters
    ----------
    n_features_to_select : int, float, "auto" or None, default None
        Number of features, or the fraction of them; "auto" finds out how many are needed; None is half.
    method : str, default "sequential_attention"
        One of ``seqatt.methods()``.
    options : dict or None, default None
        Options of that method and of the table by name, as in ``seqatt.select``.
    device : str, default "auto"
        "auto" is CUDA where there is one, else "cpu".
    progress : bool, default False
        Show a progress bar on the terminal or in a notebook.
    callbacks : sequence of Callback, default ()
        Called while features are selected; ``clone`` and searches copy them.
    random_state : int, RandomState, Generator or None, default None
        The seed, or a generator that draws one per fit; None is 0, so that a fit can be repeated.

    Attributes
    ----------
    selection_, support_, ranking_, n_features_in_, feature_names_in_ :
        As in ``SequentialAttentionSelector``.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from seqatt import FeatureSelector
    >>> X, y = load_wine(return_X_y=True, as_frame=True)
    >>> FeatureSelector(3, method="forest", options={"n_estimators": 20}).fit_transform(X, y).shape
    (178, 3)
    """

    def __init__(
        self,
        n_features_to_select: int | float | str | None = None,
        *,
        method: str = "sequential_attention",
        options: Mapping[str, Any] | None = None,
        device: str = "auto",
        progress: bool = False,
        callbacks: Sequence[Callback] = (),
        random_state: int | np.random.RandomState | np.random.Generator | None = None,
    ) -> None:
        self._store_parameters(locals())

    def _options(self) -> dict[str, Any]:
        options = {} if self.options is None else self.options
        if not isinstance(options, Mapping) or not all(isinstance(name, str) for name in options):
            raise TypeError(f"options: must be a dict of options by name, got {show(options)}")
        for name in options:
            if name in OTHER_PARAMETERS:
                raise ValueError(f"options: {name!r} is {OTHER_PARAMETERS[name]}; give it there")
        return {"device": self.device, "progress": self.progress, "callbacks": self.callbacks, **options}


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
