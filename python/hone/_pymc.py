"""PyMC models: their compiled log density over unconstrained coordinates, the way to the natural scale and back."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from . import _hone

MOST_LOG_LIKELIHOODS = 20_000_000  # numbers; a group with more is left out


@dataclass
class PymcModel:
    density: Callable[[np.ndarray], tuple[Any, Any]]  # at a point z (D,)
    shapes: dict[str, tuple[int, ...]]  # of the coordinates
    natural: Callable[[np.ndarray], dict[str, Any]]  # natural values of z
    parameters: dict[str, tuple[int, ...]]  # shapes of the free variables on the natural scale
    dims: dict[str, list[str]]
    coords: dict[str, list[Any]]
    model: Any

    @property
    def others(self) -> list[str]:
        """Names of what is observed or constant."""
        return [variable.name for variable in (*self.model.observed_RVs, *self.model.data_vars)]

    def unconstrain(self, values: Mapping[str, np.ndarray]) -> np.ndarray:
        """Coordinates (n, D) of free variables on the natural scale, name → (n, *shape)."""
        from pytensor.graph.replace import clone_replace

        from pymc.pytensorf import compile as compile_function

        model = self.model
        inputs = {variable: variable.type(f"{variable.name}_given") for variable in model.free_RVs}
        outputs = []
        for variable in model.free_RVs:
            transform = model.rvs_to_transforms[variable]
            outputs.append(variable if transform is None else transform.forward(variable, *variable.owner.inputs))
        function = compile_function(list(inputs.values()), clone_replace(outputs, replace=inputs), on_unused_input="ignore")
        columns = [np.asarray(values[variable.name]) for variable in model.free_RVs]
        kinds = [variable.dtype for variable in model.free_RVs]
        rows = []
        for row in zip(*columns, strict=True):
            made = function(*(np.asarray(value, kind) for value, kind in zip(row, kinds, strict=True)))
            rows.append(np.concatenate([np.ravel(value) for value in made]))
        return np.ascontiguousarray(rows, dtype=np.float64)

    def groups(self, z: np.ndarray, stop: _hone.Stop) -> dict[str, dict[str, np.ndarray]]:
        """log_likelihood at points z (n, D), unless it is stopped, observed_data and constant_data, for ArviZ."""
        observed = {variable.name: _value_of(self.model.rvs_to_values[variable]) for variable in self.model.observed_RVs}
        constant = {variable.name: _value_of(variable) for variable in self.model.data_vars}
        groups = {"observed_data": observed, "constant_data": constant}
        if observed and len(z) * sum(value.size for value in observed.values()) <= MOST_LOG_LIKELIHOODS:
            groups["log_likelihood"] = self._log_likelihood(z, stop)
        return {name: group for name, group in groups.items() if group}

    def _log_likelihood(self, z: np.ndarray, stop: _hone.Stop) -> dict[str, np.ndarray]:
        terms = self.model.logp(self.model.observed_RVs, sum=False)
        function = self.model.compile_fn(terms, inputs=self.model.value_vars, on_unused_input="ignore", point_fn=False)
        ends = np.cumsum([int(np.prod(shape)) for shape in self.shapes.values()])[:-1]
        rows = []
        for row in z:
            if stop:
                return {}
            parts = zip(np.split(row, ends), self.shapes.values(), strict=True)
            rows.append(function(*(part.reshape(shape) for part, shape in parts)))
        return {variable.name: np.array([row[k] for row in rows])
                for k, variable in enumerate(self.model.observed_RVs)}


def _value_of(variable: Any) -> np.ndarray:
    """The numbers of a constant or of shared data."""
    if hasattr(variable, "get_value"):
        return np.asarray(variable.get_value())
    return np.asarray(variable.data) if hasattr(variable, "data") else np.asarray(variable.eval())


def model_of(model: Any) -> PymcModel:
    from pymc.blocking import DictToArrayBijection, RaveledVars
    from pymc.pytensorf import compile as compile_function
    from pymc.pytensorf import join_nonshared_inputs

    variables = model.value_vars
    if any(variable.dtype.startswith("int") for variable in variables):
        raise ValueError("model: it has discrete variables; marginalise them first")
    if not variables:
        raise ValueError("model: it has no free variables: there is nothing to fit")
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
        point = DictToArrayBijection.rmap(RaveledVars(np.asarray(z, np.float64), template.point_map_info))
        return dict(zip([variable.name for variable in wanted], natural_of(point), strict=True))

    first = natural(np.concatenate([value.ravel() for value in start.values()]))
    dims = {name: list(own) for name, own in model.named_vars_to_dims.items()}
    coords = {name: list(values) for name, values in model.coords.items() if values is not None}
    return PymcModel(density, shapes, natural, {variable.name: np.shape(first[variable.name]) for variable in model.free_RVs},
                     dims, coords, model)
