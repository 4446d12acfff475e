"""Names of values in Stan's CSV form, the arrays that they make up, and the dims of these."""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

DIMENSIONS = ("chain", "draw")  # of all draws, in ArviZ
ELEMENT = re.compile(r"([^\[\]]+)\[([\d, ]+)\]$")


def flat_name(name: str) -> str:
    """theta[1,2] as theta.1.2."""
    found = ELEMENT.match(name)
    return name if found is None else ".".join([found[1], *(part.strip() for part in found[2].split(","))])


def grouped(names: Sequence[str]) -> dict[str, tuple[tuple[int, ...], list[int]]]:
    """Names in Stan's CSV form as arrays: name → (shape, column of each element, last index fastest)."""
    found: dict[str, dict[tuple[int, ...], int]] = {}
    for column, name in enumerate(names):
        base, *rest = name.split(".")
        if not all(part.isdigit() and int(part) > 0 for part in rest):
            base, rest = name, []
        found.setdefault(base, {})[tuple(int(part) - 1 for part in rest)] = column
    arrays: dict[str, tuple[tuple[int, ...], list[int]]] = {}
    for base, columns in found.items():
        ranks = {len(index) for index in columns}
        shape = tuple(1 + max(index[k] for index in columns) for k in range(len(next(iter(columns)))))
        if len(ranks) == 1 and math.prod(shape) == len(columns):
            arrays[base] = (shape, [columns[index] for index in np.ndindex(*shape)])
        else:  # no rectangle: each name for itself
            for index, column in columns.items():
                arrays[".".join([base, *(str(i + 1) for i in index)])] = ((), [column])
    return arrays


def checked_coords(coords: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """Coordinates as arrays of numbers, dates or texts; what is neither number nor date becomes its text."""
    checked = {}
    for dimension, values in coords.items():
        if isinstance(values, (str, Mapping, set, frozenset)) or not hasattr(values, "__len__"):
            raise TypeError(f"coords['{dimension}']: expected a list of values, found {values!r}")
        array = np.asarray(values) if hasattr(values, "dtype") else _array(list(values))
        if array.dtype.kind == "O" and all(isinstance(entry, datetime.date) for entry in array.flat):
            array = array.astype("datetime64[us]")
        if array.ndim != 1:
            raise ValueError(f"coords['{dimension}']: expected one value per place, found shape {array.shape}")
        if array.dtype.kind not in "biufmMU":
            array = np.array([str(entry) for entry in array], dtype=str)
        checked[dimension] = array
    return checked


def _array(values: list[Any]) -> np.ndarray:
    """One entry per value: tuples are values, not rows."""
    if any(isinstance(entry, (tuple, list, Mapping)) for entry in values):
        array = np.empty(len(values), dtype=object)
        array[:] = values
        return array
    return np.asarray(values)


def coords_as_json(coords: Mapping[str, np.ndarray]) -> dict[str, Any]:
    """Coordinates as a JSON file has them: lists, and dates as whole numbers with their dtype."""
    return {dimension: {"dtype": str(array.dtype), "values": array.astype(np.int64).tolist()}
            if array.dtype.kind in "mM" else array.tolist() for dimension, array in coords.items()}


def coords_in_json(stored: Mapping[str, Any]) -> dict[str, Any]:
    return {dimension: np.array(values["values"], np.int64).astype(values["dtype"]) if isinstance(values, dict) else values
            for dimension, values in stored.items()}


def checked_dims(names: Sequence[str], dims: Mapping[str, Any], coords: Mapping[str, Any],
                 others: Iterable[str] = ()) -> dict[str, list[str]]:
    """dims with a name for each dimension; errors say what does not fit. `others` need not be among the names."""
    arrays = grouped(names)
    lengths = {dimension: (len(values), f"coords['{dimension}'] has") for dimension, values in coords.items()}
    checked = {}
    for name, given in dims.items():
        if isinstance(given, str) or not isinstance(given, (Sequence, np.ndarray)):
            raise TypeError(f"dims['{name}']: expected a list of names of dimensions, found {given!r}")
        own = checked[name] = [f"{name}_dim_{k}" if entry is None else entry for k, entry in enumerate(given)]
        if not all(isinstance(entry, str) for entry in own) or len({"chain", "draw", *own}) != 2 + len(own):
            raise ValueError(f"dims['{name}']: expected different names, neither chain nor draw, found {own}")
        if taken := next((entry for entry in own if entry in arrays), None):
            raise ValueError(f"dims['{name}']: '{taken}' is the name of a variable; give the dimension another one")
        if name in others and name not in arrays:
            continue
        if name not in arrays:
            raise ValueError(f"dims: '{name}' is not one of the variables {', '.join(arrays)}")
        shape = arrays[name][0]
        if len(shape) != len(own):
            raise ValueError(f"dims['{name}']: {len(own)} names for {len(shape)} dimensions")
        for dimension, length in zip(own, shape, strict=True):
            known, who = lengths.setdefault(dimension, (length, f"dims['{name}'] gives it"))
            if known != length:
                raise ValueError(f"dims['{name}']: '{dimension}' has length {length} here, but {who} {known}")
    return checked
