"""Where other samplers may begin."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from . import _hone
from ._data import count_of, path_of
from ._names import grouped

if TYPE_CHECKING:
    from ._result import Result

SAMPLERS = ("cmdstan", "pymc", "blackjax")
MOST_DENSE = 300  # coordinates


def inverse_metric(z: np.ndarray) -> np.ndarray:
    """The covariance of draws (n, D); of many coordinates only its diagonal (D,)."""
    n, d = z.shape
    dense = d <= MOST_DENSE
    metric = np.zeros((d, d) if dense else d)  # summed as the program sums, so that the bits are the same
    mean = np.zeros(d)
    for row in z:
        mean += row / n
    for row in z:
        off = row - mean
        metric += (off[:, None] * off if dense else off * off) / (n - 1)
    return metric


def warm_start(result: Result, sampler: str, chains: int, folder: str | Path | None) -> dict[str, Any]:
    """Result.warm_start."""
    if sampler not in SAMPLERS:
        raise ValueError(f"sampler: '{sampler}' is not known; expected one of {', '.join(SAMPLERS)}")
    if folder is not None and sampler != "cmdstan":
        raise ValueError(f"folder: {sampler} takes no files; leave it out")
    if count_of(chains, "chains") > len(result.draws):
        raise ValueError(f"chains: expected 1 to {len(result.draws)}, found {chains}")
    z = result.draws_unconstrained
    metric = inverse_metric(z)
    rows = [c * (len(z) // chains) for c in range(chains)]
    if sampler == "pymc":
        return {"chains": chains, "initvals": [{name: z[row, columns].reshape(shape) for name, (shape, columns)
                                                in grouped(result.coordinates).items()} for row in rows]}
    if sampler == "blackjax":
        return {"position": z[rows], "inverse_mass_matrix": metric, "step_size": float(result.summary["step_size"])}
    count = result.summary["parameter_count"]
    own = result.names[:count]
    first = result.draws[rows]
    inits = [{name: first[c, columns].reshape(shape).tolist() for name, (shape, columns) in grouped(own).items()}
             for c in range(chains)]
    step_size = float(result.summary["step_size"])
    if folder is not None:
        _hone.save_warm_start(str(path_of(folder)), own, np.ascontiguousarray(first[:, :count]),
                              np.atleast_2d(metric), step_size)
    return {"chains": chains, "inits": inits, "metric": {"inv_metric": metric.tolist()}, "step_size": step_size}
