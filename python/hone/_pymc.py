"""PyMC models: their compiled log density over unconstrained coordinates, and back to the natural scale."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np


def model_of(model: Any) -> tuple[Callable[..., Any], dict[str, tuple[int, ...]], Callable[..., Any], tuple[Any, Any]]:
    """(log density of a point, shapes of its coordinates, natural values of a point, (dims, coords))."""
    from pymc.blocking import DictToArrayBijection
    from pymc.pytensorf import compile as compile_function
    from pymc.pytensorf import join_nonshared_inputs

    variables = model.value_vars
    if any(variable.dtype.startswith("int") for variable in variables):
        raise ValueError("model: it has discrete variables; marginalise them first")
    start = model.initial_point()
    start = {variable.name: np.asarray(start[variable.name], np.float64) for variable in variables}
    shapes = {name: value.shape for name, value in start.items()}
    [logp, gradient], joined = join_nonshared_inputs(start, [model.logp(), model.dlogp()], variables)
    value_and_gradient = compile_function([joined], [logp, gradient])
    value_and_gradient.trust_input = True

    def density(z: np.ndarray) -> tuple[Any, Any]:
        value, slope = value_and_gradient(np.asarray(z, np.float64))
        return value, slope

    density.__name__ = model.name or "pymc"
    wanted = [*model.free_RVs, *model.deterministics]
    outputs = model.replace_rvs_by_values(wanted)
    natural_of = model.compile_fn(outputs, inputs=variables, on_unused_input="ignore", point_fn=True)
    template = DictToArrayBijection.map(start)

    def natural(z: np.ndarray) -> dict[str, Any]:
        from pymc.blocking import RaveledVars

        point = DictToArrayBijection.rmap(RaveledVars(np.asarray(z, np.float64), template.point_map_info))
        return dict(zip([variable.name for variable in wanted], natural_of(point), strict=True))

    dims = {variable.name: list(model.named_vars_to_dims[variable.name]) for variable in wanted
            if variable.name in model.named_vars_to_dims}
    coords = {name: list(values) for name, values in model.coords.items() if values is not None}
    return density, shapes, natural, (dims, coords)
