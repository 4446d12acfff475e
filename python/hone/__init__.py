"""Variational inference sharpened by MCMC, with a verdict on the result.

    r = hone.fit("schools.stan", data="schools.json")   # or a callable, a compiled model, a PyMC model
    r                                                   # a table and the verdict
    r.to_datatree()                                     # for ArviZ

    vae = hone.VAE(latent=10).fit(X, X_test)            # latent-variable models, in scikit-learn's manners
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ._hone import HoneError as HoneError, InputError as InputError
from ._hone import version as __version__

if TYPE_CHECKING:  # the names after "as" are exported, for mypy and others
    from ._density import from_jax as from_jax, from_torch as from_torch
    from ._estimators import VAE as VAE, MatrixFactorization as MatrixFactorization
    from ._fit import Check as Check, check as check, fit as fit
    from ._load import load as load
    from ._q import Q as Q
    from ._result import Result as Result
    from ._stan import install_stan as install_stan

_HOMES = {
    "fit": "_fit", "check": "_fit", "Check": "_fit", "load": "_load", "from_jax": "_density", "from_torch": "_density",
    "install_stan": "_stan", "Result": "_result", "Q": "_q", "VAE": "_estimators", "MatrixFactorization": "_estimators",
}

__all__ = ["HoneError", "InputError", "__version__", "devices", *_HOMES]


def devices() -> list[str]:
    """The CUDA devices that this build of hone can train on."""
    from . import _hone

    return _hone.devices()


def _part(name: str) -> Any:  # parts are loaded when they are first used: the import itself stays fast
    if name not in _HOMES:
        raise AttributeError(f"module 'hone' has no attribute '{name}'")
    from importlib import import_module

    value = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


if not TYPE_CHECKING:  # type checkers know all names from above
    __getattr__ = _part


def __dir__() -> list[str]:
    return sorted(__all__)
