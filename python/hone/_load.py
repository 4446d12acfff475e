"""hone.load: run folders of the program, and of Result.save and the estimators' save."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import numpy as np

from ._data import path_of
from ._hone import InputError
from ._names import coords_in_json


def _text(path: Path) -> str:
    if not path.exists():
        raise InputError(f"{path}: missing; expected a whole run folder of 'hone fit' or 'hone train'")
    return path.read_text()


def _table(path: Path) -> tuple[list[str], np.ndarray]:
    """Names and values of a Stan CSV file."""
    if not path.exists():
        raise InputError(f"{path}: missing; expected the folder of a 'hone fit'")
    with path.open() as file:
        names: list[str] = []
        rows = []
        for line in file:
            if line.startswith("#") or not line.strip():
                continue
            if not names:
                names = line.strip().split(",")
            else:
                rows.append(line)
    try:
        values = np.loadtxt(rows, delimiter=",", ndmin=2) if rows else np.empty((0, len(names)))
    except ValueError as error:
        raise InputError(f"{path}: damaged: {error}") from error
    if values.shape[1] != len(names):
        raise InputError(f"{path}: damaged: {values.shape[1]} columns for {len(names)} names")
    return names, values


def _stan_version(path: Path) -> str:
    """The version of Stan that a Stan CSV file begins with; empty if it is not known."""
    with path.open() as file:
        head = [file.readline().partition(" = ") for _ in range(3)]
    numbers = [number.strip() for name, _, number in head if name.startswith("# stan_version_")]
    return ".".join(numbers) if numbers != ["0"] * 3 else ""


def _groups(path: Path) -> dict[str, dict[str, np.ndarray]]:
    """What a PyMC model adds for ArviZ."""
    groups: dict[str, dict[str, np.ndarray]] = {}
    if path.exists():
        with np.load(path) as arrays:
            for key in arrays.files:
                group, name = key.split("/", 1)
                groups.setdefault(group, {})[name] = arrays[key]
    return groups


def _data_file(folder: Path, configured: str | None, told: str) -> Path:
    """The copy that Result.save writes of data.json; else what config.toml names, by its whole path if it was a file."""
    copy = folder / "data.json"
    return copy if told == copy.name and copy.is_file() else folder / (configured or told)


def _fit(folder: Path) -> Any:
    from ._result import Result, numbers_in

    parts: dict[str, Any] = {name.split(".")[0]: _text(folder / name) for name in ("config.toml", "q.json", "summary.json")}
    names, refined = _table(folder / "draws.csv")
    parts["stan_version"] = _stan_version(folder / "draws.csv")
    _, q = _table(folder / "draws_q.csv")
    coordinates, over_z = _table(folder / "draws_unconstrained.csv")
    own = 3  # lp__, log_p__, log_q__ come first, then what the steps of the chains were, and which chains
    moves = {"accept_stat__": "acceptance_rate", "divergent__": "diverging", "energy__": "energy",
             "short_chain__": "short_chain"}
    first = own + sum(name in moves for name in names)
    for column in range(own, first):
        parts[moves[names[column]]] = refined[:, column].copy()
    parts["names"], parts["coordinates"] = names[first:], coordinates[own:]
    for table, draws, log_p, log_q, begin in ((refined, "draws", "log_p", "log_q", first),
                                              (q, "draws_q", "log_p_q", "log_q_q", own)):
        parts[draws] = np.ascontiguousarray(table[:, begin:])
        parts[log_p], parts[log_q] = table[:, 1].copy(), table[:, 2].copy()
    parts["draws_unconstrained"] = np.ascontiguousarray(over_z[:, own:])
    extra = folder / "dims.json"
    own_dims = json.loads(extra.read_text()) if extra.exists() else {}
    if "coords" in own_dims:
        own_dims["coords"] = coords_in_json(own_dims["coords"])
    data = _data_file(folder, tomllib.loads(parts["config"]).get("data"), json.loads(parts["summary"])["data"])
    return Result(parts, data=numbers_in(data) if data.is_file() else None, groups=_groups(folder / "groups.npz"), **own_dims)


def _why(folder: Path) -> str:
    if folder.is_dir():
        return "no config.toml there"
    return "this is a file" if folder.exists() else "there is no such folder"


def load(folder: str | Path) -> Any:
    """The Result of a fit's run folder, or the estimator of a training run's."""
    folder = path_of(folder)
    if not (folder / "config.toml").exists():
        raise InputError(f"{folder}: {_why(folder)}; "
                         "expected the run folder of 'hone fit' or 'hone train'")
    if (folder / "q.json").exists():
        return _fit(folder)
    _text(folder / "summary.json")
    from ._estimators import load_estimator

    return load_estimator(folder)
