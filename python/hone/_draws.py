"""Draws as other tools give them, on their way to hone.check."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ._data import path_of
from ._density import array_of
from ._names import flat_name, grouped

LOG_Q = ("log_q__", "log_g__", "lp_approx__")  # hone and CmdStan's laplace, its variational method, its pathfinder


@dataclass
class Given:
    """Values (n, names). Without names, the columns are in the model's own order."""

    names: list[str]
    values: np.ndarray
    log_q: list[float]

    def arrays(self) -> dict[str, np.ndarray]:
        """name → (n, *shape)."""
        return {name: self.values[:, columns].reshape(-1, *shape) for name, (shape, columns) in grouped(self.names).items()}


def _table(names: Sequence[Any], values: Any, *, resampled: bool = False) -> Given:
    """Columns with names, as in a CSV file."""
    flat = [flat_name(str(name)) for name in names]
    columns = np.asarray(values)
    own = [k for k, name in enumerate(flat) if columns.dtype != object or _are_numbers(columns[:, k])]
    found = next((flat.index(name) for name in LOG_Q if name in flat), None)
    log_q = [] if found is None or resampled else array_of(columns[:, found], "draws").tolist()
    return Given([flat[k] for k in own], np.ascontiguousarray(columns[:, own], dtype=np.float64), log_q)


def _are_numbers(column: np.ndarray) -> bool:
    try:
        column.astype(np.float64)
    except (TypeError, ValueError):
        return False
    return True


def _by_variable(variables: Mapping[str, Any], shapes: Mapping[str, tuple[int, ...]]) -> Given:
    """A dict name → (n, *shape) or (chains, draws, *shape); names that are not the model's are left aside."""
    names: list[str] = []
    columns: list[np.ndarray] = []
    counts: dict[tuple[int, ...], str] = {}
    for name, shape in shapes.items():
        if name not in variables:
            continue
        array = array_of(variables[name], f"draws['{name}']")
        leading = array.ndim - len(shape)
        if leading not in (1, 2) or array.shape[leading:] != shape:
            raise ValueError(f"draws['{name}']: expected shape {_shown('n', shape)} or {_shown('chains, draws', shape)}, "
                             f"found {array.shape}")
        counts.setdefault(array.shape[:leading], name)
        columns.append(array.reshape(-1, math.prod(shape)))
        names += [".".join([name, *(str(i + 1) for i in index)]) for index in np.ndindex(*shape)]
    if len({math.prod(count) for count in counts}) > 1:
        (one, first), (other, second) = list(counts.items())[:2]
        raise ValueError(f"draws: '{first}' has {math.prod(one)} draws and '{second}' {math.prod(other)}")
    if not columns:
        raise ValueError(f"draws: none of the model's variables {', '.join(shapes)} is there, "
                         f"found {', '.join(map(str, variables)) or 'nothing'}")
    return Given(names, np.ascontiguousarray(np.concatenate(columns, axis=1)), [])


def _shown(first: str, shape: tuple[int, ...]) -> str:
    return f"({first}{',' if not shape and first == 'n' else ''}{''.join(f', {length}' for length in shape)})"


def _of_dataset(dataset: Any) -> dict[str, Any]:
    """Variables of an xarray.Dataset, the draws' dimensions first."""
    variables = {}
    for name, variable in dataset.data_vars.items():
        leading = [dim for dim in ("chain", "draw", "sample") if dim in variable.dims]
        if leading:
            variables[str(name)] = variable.transpose(*leading, ...).values
    return variables


def _posterior_of(draws: Any) -> Any:
    """The group posterior of an InferenceData or a DataTree; None if it is neither."""
    if hasattr(draws, "data_vars") and not hasattr(draws, "children"):
        return draws  # a Dataset
    if hasattr(draws, "children") and hasattr(draws, "to_dataset"):  # a DataTree, whole or the group itself
        node = draws["posterior"] if "posterior" in draws.children else draws
        return node.to_dataset()
    groups = getattr(draws, "groups", None)
    if not callable(groups):
        return None
    if "posterior" not in groups():
        raise ValueError(f"draws: expected a group posterior, found {', '.join(groups())}")
    return draws.posterior


def _of_file(path: str, shapes: Mapping[str, tuple[int, ...]]) -> Given:
    from . import _hone

    if not os.path.isfile(path):
        raise ValueError(f"draws: there is no file {path}")
    if not path.endswith(".nc"):
        return Given(*_hone.read_csv_draws(path))
    try:
        import xarray
    except ImportError as error:
        raise ImportError("reading NetCDF needs xarray, which is not installed: pip install xarray") from error
    with xarray.open_dataset(path, group="posterior") as dataset:
        return _by_variable(_of_dataset(dataset), shapes)


def _of_cmdstan(draws: Any) -> Given:
    """A fit of CmdStanPy's, of any method that draws."""
    if hasattr(draws, "variational_sample"):
        return _table(draws.column_names, draws.variational_sample)
    values = draws.draws(concat_chains=True) if hasattr(draws, "chains") else draws.draws()
    return _table(draws.column_names, values, resampled=bool(getattr(draws, "is_resampled", False)))


def are_named(draws: Any) -> bool:
    """Whether draws come by name alone, and in no order. Data frames have both."""
    own = ("column_names", "data_vars", "children", "groups")
    return isinstance(draws, (str, os.PathLike, Mapping)) or any(hasattr(draws, name) for name in own)


def given(draws: Any, shapes: Mapping[str, tuple[int, ...]]) -> Given:
    """Draws of any kind that hone.check takes; `shapes` are those of the model's variables."""
    if isinstance(draws, (str, os.PathLike)):
        return _of_file(str(path_of(draws)), shapes)
    posterior = _posterior_of(draws)
    if posterior is not None:
        return _by_variable(_of_dataset(posterior), shapes)
    if isinstance(draws, Mapping):
        return _by_variable(draws, shapes)
    if hasattr(draws, "column_names") and (hasattr(draws, "draws") or hasattr(draws, "variational_sample")):
        return _of_cmdstan(draws)
    if hasattr(draws, "columns") and hasattr(draws, "to_numpy"):  # a data frame
        return _table(list(draws.columns), draws.to_numpy())
    array = array_of(draws, "draws")
    if array.ndim == 1 and list(shapes.values()) == [()]:  # of a single coordinate
        array = array[:, None]
    if array.ndim == 3:  # chains, draws, D
        array = array.reshape(-1, array.shape[2])
    if array.ndim != 2 or array.size == 0:
        raise ValueError(f"draws: expected (n, D) or (chains, draws, D), found shape {np.shape(draws)}")
    return Given([], np.ascontiguousarray(array), [])
