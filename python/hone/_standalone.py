"""What the estimators need of scikit-learn where it is not installed."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np


class NotFittedError(ValueError, AttributeError):
    """fit has not been called."""


class BaseEstimator:
    def get_params(self, deep: bool = True) -> dict[str, Any]:
        names = [name for name in inspect.signature(type(self).__init__).parameters if name != "self"]
        return {name: getattr(self, name) for name in names}

    def set_params(self, **parameters: Any) -> Any:
        known = self.get_params()
        for name, value in parameters.items():
            if name not in known:
                raise ValueError(f"{type(self).__name__} has no parameter '{name}'; expected one of {', '.join(known)}")
            setattr(self, name, value)
        return self

    def __getstate__(self) -> dict[str, Any]:
        return dict(vars(self))

    def __repr__(self) -> str:
        given = ", ".join(f"{name}={value!r}" for name, value in self.get_params().items() if value is not None)
        return f"{type(self).__name__}({given})"


class TransformerMixin:
    def fit_transform(self, X: Any, y: Any = None, **parameters: Any) -> Any:
        return self.fit(X, y, **parameters).transform(X)  # type: ignore[attr-defined]


class ClassNamePrefixFeaturesOutMixin:
    pass


def validate_data(estimator: Any, X: Any, *, dtype: Any, reset: bool, ensure_all_finite: Any, **_: Any) -> Any:
    sparse = hasattr(X, "tocsr")
    X = X.tocsr() if sparse else np.asarray(X)
    if X.ndim != 2 or 0 in X.shape:
        raise ValueError(f"X: expected a matrix (data, features), found shape {X.shape}")
    if X.dtype not in [np.dtype(kind) for kind in dtype]:
        if X.dtype.kind not in "biuf":
            raise TypeError(f"X: expected real numbers, found dtype {X.dtype}")
        X = X.astype(np.float64)
    if X.dtype.kind == "f" and not np.isfinite((X.data if sparse else X).sum()):
        values = X.data if sparse else X
        if not np.isfinite(values[~np.isnan(values)] if ensure_all_finite == "allow-nan" else values).all():
            raise ValueError("X: contains NaN or infinity")
    if reset:
        estimator.n_features_in_ = X.shape[1]
    elif X.shape[1] != estimator.n_features_in_:
        raise ValueError(f"X has {X.shape[1]} features, but {type(estimator).__name__} is expecting "
                         f"{estimator.n_features_in_} features as input")
    return X if sparse else np.ascontiguousarray(X)
