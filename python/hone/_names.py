"""Names of values in Stan's CSV form, the arrays that they make up, and the dims of these."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

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


def checked_dims(names: Sequence[str], dims: Mapping[str, Any], coords: Mapping[str, Any],
                 others: Iterable[str] = ()) -> dict[str, list[str]]:
    """dims with a name for each dimension; errors say what does not fit. `others` need not be among the names."""
    for dimension, values in coords.items():
        if isinstance(values, str) or not hasattr(values, "__len__"):
            raise TypeError(f"coords['{dimension}']: expected a list of values, found {values!r}")
    arrays = grouped(names)
    lengths = {dimension: (len(values), f"coords['{dimension}'] has") for dimension, values in coords.items()}
    checked = {}
    for name, given in dims.items():
        if isinstance(given, str) or not isinstance(given, (Sequence, np.ndarray)):
            raise TypeError(f"dims['{name}']: expected a list of names of dimensions, found {given!r}")
        own = checked[name] = [f"{name}_dim_{k}" if entry is None else entry for k, entry in enumerate(given)]
        if not all(isinstance(entry, str) for entry in own) or len({"chain", "draw", *own}) != 2 + len(own):
            raise ValueError(f"dims['{name}']: expected different names, neither chain nor draw, found {own}")
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
