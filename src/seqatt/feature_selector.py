"""Any method as a scikit-learn selector."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from seqatt.estimators import BaseSelector

OTHER_PARAMETERS = {
    "X": "an argument of fit",
    "y": "an argument of fit",
    "sample_weight": "an argument of fit",
    "k": "the parameter n_features_to_select",
    "seed": "the parameter random_state",
    "seeds": "the parameter random_state",
    "method": "a parameter of its own",
    "device": "a parameter of its own",
    "progress": "a parameter of its own",
}


class FeatureSelector(BaseSelector):
    """Select features by any method of ``seqatt.methods()``, as a scikit-learn selector.

    Parameters
    ----------
    n_features_to_select : int, float or None
        Number of features, or the fraction of them; None is half.
    method : str
        One of ``seqatt.methods()``.
    options : dict or None
        The options of that method and of the table, as ``seqatt.select`` takes them by name.
    device, progress :
        As in ``seqatt.select``.
    random_state : int or None
        The seed; None is 0, so that a fit can be repeated.

    Attributes are those of ``SequentialAttentionSelector``.

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
        n_features_to_select: int | float | None = None,
        *,
        method: str = "sequential_attention",
        options: Mapping[str, Any] | None = None,
        device: str = "auto",
        progress: bool = False,
        random_state: int | None = None,
    ) -> None:
        self._store_parameters(locals())

    def _options(self) -> dict[str, Any]:
        given = {} if self.options is None else self.options
        if not isinstance(given, Mapping) or not all(isinstance(name, str) for name in given):
            raise TypeError(f"options: must be a dict of options by name, got {given!r}")
        for name in given:
            if name in OTHER_PARAMETERS:
                raise ValueError(f"options: {name!r} is {OTHER_PARAMETERS[name]}; say it there")
        return {"device": self.device, "progress": self.progress, **given}
