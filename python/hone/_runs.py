"""The files of a training run, in memory."""

from __future__ import annotations

import csv
import io
import tomllib
from pathlib import Path
from typing import Any

import numpy as np

from . import _hone
from ._data import flat, text_of

NEWEST, BEST = "checkpoint.safetensors", "best.safetensors"
FILES = ("config.toml", "metrics.csv", "clock.csv", "test_log_likelihood.csv", "validation_log_likelihood.csv",
         "summary.json", NEWEST, BEST)
IN_MEMORY = "<memory>"  # the name of data that are no file
Files = dict[str, bytes]


def read_files(folder: Path) -> Files:
    return {name: (folder / name).read_bytes() for name in FILES if (folder / name).exists()}


def write_files(folder: Path, files: Files) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (folder / name).write_bytes(content)


def settings_of(config: bytes) -> dict[str, Any]:
    """The keys of config.toml."""
    return flat(tomllib.loads(config.decode()))


def settings_in(folder: Path) -> dict[str, Any]:
    return settings_of((folder / "config.toml").read_bytes())


def with_data(files: Files, named: dict[str, str]) -> Files:
    """The files of a run whose data are elsewhere: `named` are keys and paths."""
    settings = {**settings_of(files["config.toml"]), **named}
    moved = dict(files)
    if "data" in named:
        for name in (NEWEST, BEST):
            if name in files:
                moved[name] = _hone.with_identity(files[name], "data", named["data"])
    texts = [(key, text_of(value)) for key, value in settings.items()]
    return {**moved, "config.toml": _hone.resolved_config(texts).encode()}


def columns(content: bytes) -> dict[str, np.ndarray]:
    """The columns of a CSV file; an empty cell is NaN."""
    rows = list(csv.DictReader(io.StringIO(content.decode())))
    return {key: np.array([float(row[key]) if row[key] else np.nan for row in rows]) for key in (rows[0] if rows else {})}
