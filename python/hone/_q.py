"""The fitted q, as q.json of a run folder has it."""

from __future__ import annotations

import json
import math
from functools import cached_property
from typing import Any

import numpy as np

from ._data import count_of
from ._density import array_of


def _whitened(factor: np.ndarray, off: np.ndarray) -> tuple[np.ndarray, float]:
    """e of off = L e, for columns, and log |L|."""
    if factor.ndim == 1:
        return off / factor[:, None], np.log(factor).sum()
    if np.triu(factor, 1).any():  # a factor of low rank, not a triangle
        return np.linalg.solve(factor, off), np.linalg.slogdet(factor)[1]
    try:
        from scipy.linalg import solve_triangular
    except ImportError:
        solved = np.linalg.solve(factor, off)
    else:
        solved = solve_triangular(factor, off, lower=True)
    return solved, np.log(np.abs(np.diag(factor))).sum()


class Q:
    """The fitted q, a Gaussian or a mixture of Gaussians over the unconstrained coordinates."""

    def __init__(self, text: str) -> None:
        parts = json.loads(text)
        self.family: str = parts["family"]
        self.coordinates: list[str] = parts["coordinates"]
        self.weights = np.array([c["weight"] for c in parts["components"]], float)
        self.means = np.array([c["mean"] for c in parts["components"]], float)
        self.sds = np.array([c["sd"] for c in parts["components"]], float)
        self._components = parts["components"]

    @property
    def mean(self) -> np.ndarray:
        return self.weights @ self.means

    @cached_property
    def _factors(self) -> list[np.ndarray]:
        """L of each component, z = mean + L e; of a diagonal one its diagonal (D,)."""
        d = len(self.coordinates)
        factors = []
        for c in self._components:
            if "cholesky" in c:
                factor = np.zeros((d, d))
                for i, row in enumerate(c["cholesky"]):
                    factor[i, : i + 1] = row
            elif "factor" in c:
                f = {key: np.array(value, float) for key, value in c["factor"].items()}
                u = f["u"].reshape(-1, d).T
                factor = f["a"][:, None] * (np.eye(d) + (u * (f["r"] - 1)) @ u.T) * f["b"]
            else:
                factor = np.array(c["sd"], float)
            factors.append(factor)
        return factors

    def sample(self, n: int, seed: int | None = None) -> np.ndarray:
        """n independent draws (n, D)."""
        n = count_of(n, "n", 0)
        random = np.random.default_rng(None if seed is None else count_of(seed, "seed", 0, None))
        which = random.choice(len(self.weights), size=n, p=self.weights / self.weights.sum())
        noise = random.standard_normal((n, len(self.coordinates)))
        draws = np.empty_like(noise)
        for k, factor in enumerate(self._factors):
            own = which == k
            draws[own] = self.means[k] + (noise[own] * factor if factor.ndim == 1 else noise[own] @ factor.T)
        return draws

    def log_prob(self, z: Any) -> np.ndarray:
        """log q at points (n, D), or at one point (D,)."""
        z = array_of(z, "z")
        if z.shape[-1:] != (len(self.coordinates),) or z.ndim > 2:
            raise ValueError(f"z: expected shape (n, {len(self.coordinates)}), found {z.shape}")
        points = np.atleast_2d(z)
        terms = []
        for weight, mean, factor in zip(self.weights, self.means, self._factors, strict=True):
            e, log_det = _whitened(factor, (points - mean).T)
            terms.append(np.log(weight) - 0.5 * (e**2).sum(axis=0) - log_det
                         - 0.5 * len(mean) * math.log(2 * math.pi))
        value = np.logaddexp.reduce(np.array(terms), axis=0)
        return value if z.ndim == 2 else value[0]

    def __repr__(self) -> str:
        return f"q: {self.family}, {len(self.coordinates)} coordinates, {len(self.weights)} component(s)"
