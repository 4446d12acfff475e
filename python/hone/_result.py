"""What hone.fit returns: q, the refined draws, the verdict."""

from __future__ import annotations

import html
import json
import math
import shutil
import textwrap
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from . import _hone
from ._data import count_of, path_of
from ._names import DIMENSIONS, checked_coords, checked_dims, coords_as_json, flat_name, grouped
from ._plot import COLOURS, plot
from ._q import Q
from ._warm_start import warm_start

MOST_ROWS = 40  # of a second opinion
MOVES = ("acceptance_rate", "diverging", "energy", "short_chain")  # of the steps that led to the draws

Variables = dict[str, tuple[list[str], np.ndarray]]  # name → its dimensions and values


def cell(value: float) -> str:
    return "-" if math.isnan(value) else f"{value:.4g}"


def _ragged(value: Any) -> bool:
    try:
        np.asarray(value)
    except ValueError:
        return True
    return False


def numbers_in(path: Path) -> dict[str, Any] | None:
    """The data of a Stan model, for the group observed_data; None where they cannot be read."""
    try:
        data = json.loads(path.read_text())
    except (OSError, ValueError):
        return None
    return data if isinstance(data, dict) else None


def judged_html(verdict: str, reasons: Sequence[str], notes: Sequence[str], head: str, body: str, told: str = "") -> str:
    """A verdict, its reasons and a table, for a notebook."""
    lines = "".join(f"<li>{html.escape(line)}</li>" for line in [*reasons, *(f"note: {note}" for note in notes)])
    return (f"<div><p><b style='color:{COLOURS[verdict]}'>verdict: {verdict}</b></p><ul>{lines}</ul>"
            f"<table><thead><tr><th></th>{head}</tr></thead><tbody>{body}</tbody></table><p>{html.escape(told)}</p></div>")


class Result:
    """A fit: `verdict` says what to use, `draws` are the refined draws, `q` is the approximation."""

    def __init__(self, parts: Mapping[str, Any], *, data: Mapping[str, Any] | None = None,
                 dims: Mapping[str, Sequence[str]] | None = None, coords: Mapping[str, Any] | None = None,
                 groups: Mapping[str, Mapping[str, np.ndarray]] | None = None) -> None:
        self._parts = dict(parts)
        self.data = None if data is None else dict(data)
        self.groups = {name: dict(group) for name, group in (groups or {}).items()}  # more of them, for ArviZ
        self.coords = checked_coords(coords or {})
        self.dims = checked_dims(self._parts["names"], dims or {}, self.coords, dims or {})

    @cached_property
    def summary(self) -> dict[str, Any]:
        """Everything in summary.json."""
        return json.loads(self._parts["summary"])

    @property
    def verdict(self) -> str:
        """use-q, use-refined or trust-neither."""
        return self.summary["verdict"]

    @property
    def interrupted(self) -> bool:
        """Whether Ctrl-C ended the fit before it was finished."""
        return self.summary.get("interrupted", False)

    @property
    def reasons(self) -> list[str]:
        return [_hone.in_python(reason) for reason in self.summary["reasons"]]

    @property
    def notes(self) -> list[str]:
        return [_hone.in_python(note) for note in self.summary["notes"]]

    @property
    def names(self) -> list[str]:
        """Of the columns of `draws`, in Stan's form: mu, theta.1, …"""
        return list(self._parts["names"])

    @property
    def coordinates(self) -> list[str]:
        """Of the columns of `draws_unconstrained`."""
        return list(self._parts["coordinates"])

    @property
    def draws(self) -> np.ndarray:
        """The refined draws (n, names), chain after chain; summary["chains"] says how many chains they are.

        Each is made of several short chains of the fit, summary["short_chains"] in all.
        """
        return self._parts["draws"]

    @property
    def draws_q(self) -> np.ndarray:
        """Independent draws of q."""
        return self._parts["draws_q"]

    @property
    def draws_unconstrained(self) -> np.ndarray:
        """The refined draws over the coordinates of q."""
        return self._parts["draws_unconstrained"]

    @property
    def log_p(self) -> np.ndarray:
        """log p at the refined draws."""
        return self._parts["log_p"]

    @cached_property
    def q(self) -> Q:
        return Q(self._parts["q"])

    def __getitem__(self, name: str) -> np.ndarray:
        """The refined draws of one variable, (n, *shape), or of one of its elements: "theta.2" or "theta[2]"."""
        shape, columns = self._columns(name)
        return self.draws[:, columns].reshape(-1, *shape)

    def __iter__(self) -> Iterator[str]:
        """The names of the variables: mu, theta, …"""
        return iter(grouped(self.names))

    def __contains__(self, name: object) -> bool:
        """Whether r[name] is there."""
        return isinstance(name, str) and (name in grouped(self.names) or flat_name(name) in self.names)

    def _columns(self, name: str) -> tuple[tuple[int, ...], list[int]]:
        """The shape and the columns of a variable or of an element."""
        arrays = grouped(self.names)
        if name in arrays:
            return arrays[name]
        if flat_name(str(name)) in self.names:
            return (), [self.names.index(flat_name(str(name)))]
        raise KeyError(f"'{name}' is not one of {', '.join(arrays)}")

    def judge(self, *, mean: float | None = None, sd: float | None = None, vcd: float | None = None) -> dict[str, Any]:
        """The verdict again, with other tolerances, as `hone check` gives it."""
        import tempfile

        for name, value in (("mean", mean), ("sd", sd), ("vcd", vcd)):
            if value is not None and not (isinstance(value, (int, float, np.number)) and value > 0):
                raise ValueError(f"{name}: expected a number above 0, found {value!r}")

        with tempfile.TemporaryDirectory(prefix="hone-") as folder:
            (Path(folder) / "summary.json").write_text(self._parts["summary"])
            return _hone.judge_again(folder, *(math.nan if x is None else float(x) for x in (mean, sd, vcd)))

    def table(self, show: str | Sequence[str] = (), *, width: int | None = None) -> str:
        """The table as a text: parameters first, long vectors as one line, unless `show` names variables or values.

        Lines are no wider than `width`, by default the terminal (80 where there is none).
        """
        names = [show] if isinstance(show, str) else list(show) if isinstance(show, Iterable) else [show]
        if not all(isinstance(name, str) for name in names):
            raise TypeError(f"show: expected a name or a list of names, found {show!r}")
        columns = shutil.get_terminal_size((80, 24)).columns if width is None else count_of(width, "width")
        return _hone.table_text(self._parts["summary"], names, columns)

    def _told(self) -> str:
        s = self.summary
        return (f"q: {s['family']}, by {s['objective']}; right of the bar: "
                f"{s['chains_run']} chains of {s['steps']} HMC steps, without their burn-in; {s['gradient_evaluations']} gradients in {s['seconds']:.1f} s")

    def __repr__(self) -> str:
        width = shutil.get_terminal_size((80, 24)).columns
        lines = [self.table(), *textwrap.wrap(self._told(), width), "", f"verdict: {self.verdict}"]
        for reason in self.reasons:
            lines += textwrap.wrap(reason, width, initial_indent="  - ", subsequent_indent="    ")
        for note in self.notes:
            lines += textwrap.wrap(f"note: {note}", width, subsequent_indent="      ")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        titles, lines = _hone.table_of(self._parts["summary"], [])
        head = "".join(f"<th>{title}</th>" for title in titles)
        body = "".join(f"<tr><th style='text-align:left'{'' if cells else f' colspan={1 + len(titles)}'}>{html.escape(name)}</th>"
                       + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>" for name, cells, _ in lines)
        return judged_html(self.verdict, self.reasons, self.notes, head, body, self._told())

    def plot(self, names: str | Sequence[str] | None = None) -> Any:
        """Marginals of q and of the refined draws, one panel per value; returns matplotlib's figure.

        names: variables or values, as in table(); None: the first twelve parameters.
        """
        return plot(self, names)

    def _groups(self, chains: int | None) -> dict[str, Any]:
        """xarray datasets by group, in ArviZ's layout."""
        n = len(self.draws)
        chains = int(self.summary["chains"]) if chains is None else count_of(chains, "chains")
        if n % chains:
            raise ValueError(f"chains: {n} draws do not divide into {chains}")
        if taken := next((name for name in self if name in DIMENSIONS), None):  # of a Stan program's
            raise ValueError(f"'{taken}' is the name of a variable, and ArviZ has a dimension of that name: rename it in the model")
        own = self.summary.get("groups", {})  # which variables are no parameters
        posterior, q = self._variables(self.draws, chains), self._variables(self.draws_q, 1)  # draws of q are independent
        aside = {name for group in ("log_likelihood", "posterior_predictive") for name in own.get(group, [])}
        groups = {"posterior": {k: v for k, v in posterior.items() if k not in aside},
                  "sample_stats": self._statistics({"lp": "log_p", "log_q": "log_q", **{k: k for k in MOVES}}, chains),
                  "q": {k: v for k, v in q.items() if k not in aside},
                  "q_stats": self._statistics({"lp": "log_p_q", "log_q": "log_q_q"}, 1)}
        for group in ("log_likelihood", "posterior_predictive"):
            if own.get(group):
                groups[group] = {name: posterior[name] for name in own[group]}
        arrays = {key: np.asarray(value, dtype=object if isinstance(value, dict) else None)
                  for key, value in (self.data or {}).items() if not _ragged(value)}
        for group, observed in (("observed_data", True), ("constant_data", False)):
            chosen = {key: ([f"{key}_dim_{k}" for k in range(array.ndim)], array) for key, array in arrays.items()
                      if array.dtype.kind in "iuf" and (key in own.get("observed_data", [])) == observed}
            if chosen:
                groups[group] = chosen
        for group, arrays in self.groups.items():
            drawn = group == "log_likelihood"
            groups[group] = {
                key: ([*(["chain", "draw"] if drawn else []), *self._own_dims(key, array.shape[1:] if drawn else array.shape)],
                      array.reshape(chains, n // chains, *array.shape[1:]) if drawn else array)
                for key, array in arrays.items()}
        return {name: self._dataset(variables) for name, variables in groups.items()}

    def _dataset(self, values: Variables) -> Any:
        try:
            import xarray
        except ImportError as error:
            raise ImportError("this needs xarray, which is not installed: pip install xarray") from error
        attributes = {"inference_library": "hone", "inference_library_version": _hone.version, "verdict": self.verdict}
        coordinates = {dimension: self.coords.get(dimension, np.arange(length))
                       for own, array in values.values() for dimension, length in zip(own, array.shape, strict=True)}
        return xarray.Dataset({key: (own, array) for key, (own, array) in values.items()}, coordinates, attributes)

    def _own_dims(self, name: str, shape: tuple[int, ...]) -> list[str]:
        own = [dim if dim is not None else f"{name}_dim_{k}" for k, dim in enumerate(self.dims.get(name, []))]
        return own if len(own) == len(shape) else [f"{name}_dim_{k}" for k in range(len(shape))]

    def _variables(self, table: np.ndarray, chains: int) -> Variables:
        return {name: (["chain", "draw", *self._own_dims(name, shape)], table[:, columns].reshape(chains, -1, *shape))
                for name, (shape, columns) in grouped(self.names).items()}

    def _statistics(self, keys: dict[str, str], chains: int) -> Variables:
        found = {name: self._parts[key].reshape(chains, -1) for name, key in keys.items() if key in self._parts}
        for name, kind in (("diverging", bool), ("short_chain", int)):
            if name in found:
                found[name] = found[name].astype(kind)
        return {name: (["chain", "draw"], values) for name, values in found.items() if not np.isnan(values).all()}

    def to_datatree(self, chains: int | None = None) -> Any:
        """An xarray.DataTree in the layout of ArviZ: posterior (refined), q, sample_stats, log_likelihood, …

        The draws are eight chains, each made of short chains of the fit, which `short_chain` in sample_stats names.
        `chains` cuts the draws into another number of chains; chains=r.summary["short_chains"] gives the short ones.
        """
        groups = self._groups(chains)
        import xarray

        if not hasattr(xarray, "DataTree"):
            raise ImportError("to_datatree needs xarray 2024.10 or later; to_inference_data works with this one")
        return xarray.DataTree.from_dict(groups)

    def to_inference_data(self, chains: int | None = None) -> Any:
        """arviz.InferenceData with the same groups; with ArviZ 1.x, which has no such class, to_datatree()."""
        try:
            import arviz
        except ImportError as error:
            raise ImportError("to_inference_data needs arviz, which is not installed: pip install arviz") from error
        if int(arviz.__version__.split(".")[0]) >= 1:
            return self.to_datatree(chains)
        return arviz.InferenceData(warn_on_custom_groups=False, **self._groups(chains))

    def warm_start(self, sampler: str = "cmdstan", *, chains: int = 4, folder: str | Path | None = None) -> dict[str, Any]:
        """Where other samplers may begin, as arguments for them.

        "cmdstan": CmdStanPy's `sample` (inits, metric, step_size, chains); with `folder`, the files and arguments of CmdStan
        are written there too. "pymc": pymc.sample (initvals, chains), for a PyMC model. "blackjax": position (chains, D),
        inverse_mass_matrix and step_size over the unconstrained coordinates, as BlackJAX and others take them.
        """
        return warm_start(self, sampler, chains, folder)

    def save(self, folder: str | Path) -> Path:
        """Writes the run folder that `hone fit` writes; `hone report`, `hone check` and hone.load read it.

        inference_data.nc needs xarray with h5netcdf and h5py, or netCDF4, and is left out without them.
        """
        folder = path_of(folder)
        _hone.save_fit(str(folder), self._parts, self.verdict, int(self.summary["steps"]))
        if self.data is not None and self.summary["data"] == "data.json":
            (folder / "data.json").write_text(json.dumps(self.data) + "\n")
        if self.dims or self.coords:
            (folder / "dims.json").write_text(json.dumps({"dims": self.dims, "coords": coords_as_json(self.coords)}) + "\n")
        if self.groups:
            np.savez(folder / "groups.npz", **{f"{group}/{name}": array for group, arrays in self.groups.items()
                                               for name, array in arrays.items()})
        self._write_netcdf(folder / "inference_data.nc")
        return folder

    def _write_netcdf(self, path: Path) -> None:
        try:
            groups = self._groups(None)
        except ImportError:
            return
        except ValueError as error:
            return warnings.warn(f"{path.name} is left out: {error}", stacklevel=3)
        for mode, (name, group) in zip(["w", *["a"] * len(groups)], groups.items(), strict=False):
            try:
                group.to_netcdf(path, mode=mode, group=name)
            except (ValueError, ImportError):  # xarray found nothing to write NetCDF-4 with
                path.unlink(missing_ok=True)
                return
