"""Data and settings on their way to the engine and to files."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from . import _hone

IN_FILES = (np.bool_, np.uint8, np.float32, np.float64)  # what `hone train` reads


def shape_in(given: Any) -> tuple[int, ...]:
    """The shape of an array, or of lists; () where there is none."""
    if hasattr(given, "shape"):
        return tuple(given.shape)
    try:
        return np.shape(given) if isinstance(given, (list, tuple)) else ()
    except ValueError:  # lists of unequal lengths
        return ()


def image_of(shape: Sequence[int] | None) -> tuple[int, ...] | None:
    """(rows, columns, channels) of a datum, if its shape is that of an image."""
    if shape is None or len(shape) not in (2, 3) or shape[2:] not in ((), (1,), (3,), [1], [3]):
        return None
    return (*shape, 1) if len(shape) == 2 else tuple(shape)


def rows_of(X: Any) -> tuple[Any, tuple[int, ...] | None]:
    """Images (n, rows, columns) or (n, rows, columns, channels) as rows (n, values), and their shape; None for others."""
    shape = shape_in(X)
    if len(shape) not in (3, 4):
        return X, None
    return np.asarray(X).reshape(shape[0], math.prod(shape[1:])), shape[1:]


def unmasked(X: Any, name: str, missing: str | None) -> Any:
    """A masked array with NaN where it is masked; it needs missing="ignore"."""
    if not np.ma.isMaskedArray(X):
        return X
    if not np.ma.is_masked(X):
        return X.data
    if missing != "ignore":
        raise ValueError(f"{name}: has masked values; missing=\"ignore\" leaves missing values out of the likelihood")
    return X.astype(X.dtype if X.dtype == np.float32 else np.float64).filled(np.nan)


def first_not_finite(X: Any, allow_nan: bool) -> str:
    """Where the first value is that is not finite, as the end of a message; empty if X does not tell."""
    sparse = X.tocoo() if hasattr(X, "tocoo") else None
    try:
        values = np.asarray(X if sparse is None else sparse.data, np.float64)
    except (TypeError, ValueError):
        return ""
    bad = np.argwhere(np.isinf(values) if allow_nan else ~np.isfinite(values))
    if not bad.size or (sparse is None and values.ndim != 2):
        return ""
    first = bad[0] if sparse is None else (sparse.row[bad[0][0]], sparse.col[bad[0][0]])
    return f"; the first is in row {first[0]}, column {first[1]} (both count from 0)"


def data_of(X: Any, shape: Sequence[int] = (), binarization: str | None = None) -> _hone.Data:
    """Data for the engine, without a copy where the type allows it; bits are packed. shape: of a datum.

    Whole numbers from 0 to 255 are bytes. Sparse ones are made dense where they are to be binarized, as bytes are.
    """
    image = list(image_of(shape) or (1, X.shape[1], 1))
    if hasattr(X, "tocsr") and X.dtype.kind in "iu" and binarization in ("threshold", "stochastic") and _bytes(X):
        X = X.astype(np.uint8).toarray()
    if hasattr(X, "tocsr"):
        X = X.tocsr()
        if not X.has_canonical_format:
            X = X.copy()
            X.sum_duplicates()
        return _hone.Data.sparse(np.asarray(X.indptr, np.int64), np.asarray(X.indices, np.int32),
                                 np.asarray(X.data, np.float64), image)
    if X.dtype.kind == "b":
        return _hone.Data.bytes(X.view(np.uint8), image)
    if X.dtype == np.uint8:
        return _hone.Data.bytes(X, image)
    if X.dtype.kind in "iu":
        return data_of(X.astype(np.uint8 if _bytes(X) else np.float64), shape)
    return _hone.Data.floats(X, image) if X.dtype == np.float32 else _hone.Data.doubles(X, image)


def _bytes(X: Any) -> bool:
    return bool(X.shape[0] and X.min() >= 0 and X.max() <= 255)


def bits_of(X: Any, threshold: float | None) -> Any:
    """X > threshold, whatever its type; True and False stay what they are."""
    if threshold is None or X.dtype.kind == "b":
        return X
    dense = X.toarray() if hasattr(X, "toarray") else X
    if dense.min() < 0 or dense.max() > 2 * threshold:
        raise ValueError(f"X: expected values from 0 to {2 * threshold:g}, as in the training data, "
                         f"found {dense.min():g} to {dense.max():g}")
    return (dense > threshold).astype(np.uint8)


def _whole(value: Any) -> int:
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, np.integer)):
        raise TypeError(f"expected whole numbers, found {value!r}")
    return int(value)


MOST, MOST_SEED = 2**31 - 1, 2**64 - 1  # what the engine counts to


def count_of(value: Any, name: str, least: int = 1, most: int | None = MOST) -> int:
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, np.integer)) or value < least:
        raise ValueError(f"{name}: expected a whole number, at least {least}, found {value!r}")
    if most is not None and value > most:
        raise ValueError(f"{name}: expected at most {most}, found {value}")
    return int(value)


def seed_of(value: Any) -> int:
    return count_of(value, "seed", 0, MOST_SEED)


def path_of(path: str | os.PathLike[str]) -> Path:
    """A path as a shell has it: ~ is the user's folder."""
    return Path(path).expanduser()


def text_of(value: Any) -> str:
    """A setting as a flag has it."""
    if isinstance(value, (list, tuple, np.ndarray)):
        return ",".join(str(_whole(entry)) for entry in value)
    if isinstance(value, (bool, np.bool_)):
        raise TypeError(f"expected a number or a text, found {value}")
    return value if isinstance(value, str) else repr(value.item() if hasattr(value, "item") else value)


def flat(table: dict[str, Any]) -> dict[str, Any]:
    """The keys of a TOML file with their tables: checkpoint.every."""
    entries = {}
    for key, value in table.items():
        inner = value.items() if isinstance(value, dict) else ()
        entries.update({f"{key}.{name}": entry for name, entry in inner} if inner else {key: value})
    return entries


def write_npy(path: Path, X: Any, shape: Sequence[int]) -> None:
    """Data as `hone train` reads them, with the shape of a datum; sparse ones row by row."""
    kind = X.dtype.kind
    dtype = np.dtype(np.uint8) if kind == "b" else X.dtype
    if kind in "iu" and dtype != np.uint8:
        dtype = np.dtype(np.uint8 if _bytes(X) else np.float64)
    if dtype.kind == "f" and hasattr(X, "toarray"):
        dtype = np.dtype(np.float64)
    target = np.lib.format.open_memmap(path, mode="w+", dtype=dtype, shape=(X.shape[0], *shape))
    for begin in range(0, X.shape[0], 1024):
        rows = X[begin : begin + 1024]
        target[begin : begin + 1024] = (rows.toarray() if hasattr(rows, "toarray") else rows).reshape(-1, *shape)
    target.flush()


def own_file(X: Any) -> str | None:
    """The .npy file that an array is mapped from, if it is all of it."""
    if not isinstance(X, np.memmap) or X.filename is None or Path(X.filename).suffix != ".npy":
        return None
    whole = np.load(X.filename, mmap_mode="r")
    same = whole.shape == X.shape and whole.dtype == X.dtype and X.dtype in IN_FILES and X.flags.c_contiguous
    return str(Path(X.filename).resolve()) if same and X.offset == whole.offset else None
