"""scikit-learn selectors of the linear methods."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from seqatt.data.tables.table_data import Groups
from seqatt.estimators import BaseSelector


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
