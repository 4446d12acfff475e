"""hone.fit and hone.check."""

from __future__ import annotations

import html
import json
import os
import sys
import tempfile
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from . import _hone
from ._density import Names, array_of, checked_beside_draws, convert, flat_names, takes_batches
from ._data import count_of, path_of
from ._draws import are_named, given
from ._progress import Total, Work
from ._names import checked_coords, checked_dims, grouped
from ._result import MOST_ROWS, Result, cell, judged_html, numbers_in

if TYPE_CHECKING:
    from ._pymc import PymcModel

TITLES = ["draws mean", "draws sd", "mean", "sd", "mcse"]  # of a second opinion
Data = str | os.PathLike[str] | Mapping[str, Any] | None


def _texts(settings: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Settings that were given, as a configuration file has them."""
    texts = []
    for key, value in settings.items():
        if value is None:
            continue
        if isinstance(value, (bool, np.bool_)) or not isinstance(value, (str, int, float, np.integer, np.floating)):
            raise TypeError(f"{key}: expected a number or a text, found {type(value).__name__}")
        texts.append((key, value if isinstance(value, str) else repr(value.item() if hasattr(value, "item") else value)))
    return texts


def _points(init: Any, name: str) -> np.ndarray:
    points = array_of(init, name)
    if points.ndim == 1:
        points = points[None, :]
    if points.ndim != 2 or points.size == 0:
        raise ValueError(f"{name}: expected a point (D,) or points (k, D), found shape {np.shape(init)}")
    if not np.isfinite(points).all():
        raise ValueError(f"{name}: contains a number that is not finite")
    return points


def _has_tuples(value: Any) -> bool:
    """Whether an array holds tuples of Stan's: dicts {"1": …, "2": …}."""
    if isinstance(value, np.ndarray):
        return value.dtype == object and any(isinstance(entry, Mapping) for entry in value.flat)
    return isinstance(value, (list, tuple)) and any(isinstance(entry, Mapping) or _has_tuples(entry) for entry in value)


def _plain(value: Any, name: str) -> Any:
    """Data of a Stan model as JSON's own types."""
    if isinstance(value, Mapping):
        return {str(key): _plain(entry, str(key)) for key, entry in value.items()}
    if isinstance(value, (bool, np.bool_)):
        return int(value)
    if isinstance(value, (int, float, str)):
        return value
    if np.ma.is_masked(value):
        raise ValueError(f"data['{name}']: has masked values; a Stan program has no missing data: leave them out")
    if _has_tuples(value):
        return [_plain(entry, name) for entry in value]
    try:
        array = np.asarray(value)
    except ValueError as error:
        raise ValueError(f"data['{name}']: the lists in it have different lengths; an array of Stan's is rectangular") from error
    if array.dtype.kind == "b":
        array = array.astype(int)
    if array.dtype.kind not in "iuf":
        raise TypeError(f"data['{name}']: expected numbers, found dtype {array.dtype}")
    return array.tolist()


@dataclass
class _Model:
    """What to fit, with what Python must remember of it."""

    parts: Any
    data: dict[str, Any] | None = None
    dims: dict[str, list[str]] = field(default_factory=dict)
    coords: dict[str, Any] = field(default_factory=dict)
    aside: Any = None  # the temporary folder that holds data.json
    pymc: PymcModel | None = None
    own_gradient: bool = False  # whether the user wrote it

    def __enter__(self) -> _Model:
        return self

    def __exit__(self, kind: Any, error: BaseException | None, _: object) -> None:
        if self.aside is None:
            return
        self.aside.cleanup()
        file = str(Path(self.aside.name) / "data.json")
        if isinstance(error, _hone.InputError) and file in str(error):  # the user gave no such file
            raise _hone.InputError(str(error).replace(file, "data")) from None


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        raise ValueError(f"data: not JSON: {error}") from error


def _stan(model: Path, data: Data) -> _Model:
    if data is None:
        return _Model(_hone.Model(str(model), ""))
    if isinstance(data, (str, os.PathLike)) and not str(data).lstrip().startswith("{"):
        path = path_of(data)
        return _Model(_hone.Model(str(model), str(path)), numbers_in(path))
    given = _json(str(data)) if isinstance(data, (str, os.PathLike)) else _plain(data, "data")
    if not isinstance(given, dict):
        raise TypeError("data: expected a dict, JSON text or the path of a JSON file")
    folder = tempfile.TemporaryDirectory(prefix="hone-")
    path = Path(folder.name) / "data.json"
    path.write_text(json.dumps(given))
    return _Model(_hone.Model(str(model), str(path)), given, aside=folder)


def _constrained(constrain: Callable[..., Any], point: np.ndarray, argument: str) -> tuple[Callable[..., Any], list[str]]:
    """A function (n, D) → (n, names) from one that takes a point (D,) and returns a dict of arrays."""
    if not callable(constrain):
        raise TypeError(f"constrain: expected a function, found {type(constrain).__name__}")
    first = constrain(point.copy())
    if not isinstance(first, Mapping):
        raise TypeError(f"constrain returned a {type(first).__name__}; expected a dict: name → number or array")
    shapes = {name: np.shape(value) for name, value in first.items()}
    names = flat_names(shapes, None, argument)
    if not names:
        raise ValueError("constrain returned no values; expected a dict: name → number or array")

    def flat(values: Mapping[str, Any]) -> np.ndarray:
        if not isinstance(values, Mapping) or values.keys() != shapes.keys():
            found = ", ".join(map(str, values)) if isinstance(values, Mapping) else type(values).__name__
            raise ValueError(f"constrain returned {found or 'nothing'}; expected {', '.join(map(str, shapes))}, as at first")
        arrays = [array_of(values[name], f"constrain's {name}") for name in shapes]
        for (name, shape), array in zip(shapes.items(), arrays, strict=True):
            if np.shape(values[name]) != shape:
                raise ValueError(f"constrain's {name}: expected shape {shape}, as at first, found {np.shape(values[name])}")
        return np.concatenate([array.reshape(-1) for array in arrays])

    def rows(z: np.ndarray) -> np.ndarray:
        return np.ascontiguousarray([flat(constrain(row.copy())) for row in z])

    return rows, names


def _density(density: Callable[..., Any], dim: int | None, init: np.ndarray | None, names: Names | None,
             constrain: Callable[..., Any] | None, batched: bool | None, argument: str = "names") -> _Model:
    dim = None if dim is None else count_of(dim, "dim")
    if init is not None:
        if dim is not None and init.shape[1] != dim:
            raise ValueError(f"init: points of {init.shape[1]} coordinates, but dim is {dim}")
        dim = init.shape[1]
    parts = _hone.Density()
    parts.coordinates = flat_names(names, dim, argument)
    dim = len(parts.coordinates)
    point = np.full(dim, 0.1) if init is None else init[0]
    if batched is None:
        batched = getattr(density, "hone_batches", None)
    elif not isinstance(batched, (bool, np.bool_)):
        raise TypeError(f"batched: expected True, False or None, found {batched!r}")
    elif not batched and getattr(density, "hone_batches", False):
        raise ValueError("batched: what from_jax and from_torch make takes batches; leave batched out")
    parts.batches = takes_batches(density, point) if batched is None else bool(batched)
    parts.view = bool(getattr(density, "hone_view", False))
    parts.density, parts.convert, parts.constrain = density, convert, None
    parts.names = list(parts.coordinates)
    if constrain is not None:
        parts.constrain, parts.names = _constrained(constrain, point, "constrain" if argument == "names" else argument)
    parts.parameters = len(parts.names)
    return _Model(_hone.Model(parts, getattr(density, "__name__", "log_density")), own_gradient=not parts.view)


def _is_pymc(model: Any) -> bool:
    pymc = sys.modules.get("pymc")
    return pymc is not None and hasattr(pymc, "Model") and isinstance(model, pymc.Model)


def _is_bridgestan(model: Any) -> bool:
    bridgestan = sys.modules.get("bridgestan")
    return bridgestan is not None and hasattr(bridgestan, "StanModel") and isinstance(model, bridgestan.StanModel)


def _kind(model: Any) -> str:
    if _is_pymc(model):
        return "PyMC"
    if _is_bridgestan(model):
        return "BridgeStan"
    return "Stan" if isinstance(model, (str, os.PathLike)) else ""


def _pymc(model: Any, init: np.ndarray | None) -> _Model:
    from ._pymc import model_of

    own = model_of(model)
    size = sum(int(np.prod(shape)) for shape in own.shapes.values())
    if init is not None and init.shape[1] != size:
        shown = ", ".join(f"{name} {shape}" if shape else name for name, shape in own.shapes.items())
        raise ValueError(f"init: points of {init.shape[1]} coordinates; the PyMC model has {size} unconstrained ones: {shown}")
    made = _density(own.density, None, init, own.shapes, own.natural, False, "model")
    checked_beside_draws(own.others, "model")
    made.dims, made.coords, made.pymc, made.own_gradient = own.dims, own.coords, own, False
    return made


def _model(model: Any, data: Data, dim: int | None, init: np.ndarray | None, names: Names | None,
           constrain: Callable[..., Any] | None, batched: bool | None) -> _Model:
    kind = _kind(model)
    own = {"dim": dim, "names": names, "constrain": constrain, "batched": batched}
    for argument, value in {**own, **({"data": data} if kind in ("PyMC", "BridgeStan") else {})}.items():
        if kind and value is not None:
            raise ValueError(f"{argument}: the {kind} model says that itself")
    if kind == "PyMC":
        return _pymc(model, init)
    if kind == "BridgeStan":
        return _stan(Path(model.lib_path), model.data or None)
    if kind == "Stan":
        return _stan(path_of(model), data)
    if data is not None:
        raise ValueError("data: only Stan models take data; a callable has its own")
    if not callable(model):
        raise TypeError(f"model: expected a callable, a PyMC or BridgeStan model, or the path of a .stan or .so file, "
                        f"found {type(model).__name__}")
    return _density(model, dim, init, names, constrain, batched)


def _names_of(made: _Model, work: Work) -> tuple[list[str], int, list[str]]:
    """Names of values, how many of them are parameters, and coordinates. A Stan program is compiled for them."""
    kind, work.kind = work.kind, "compile"
    found = _hone.names_of(made.parts, work.stop, work.tell)
    work.kind = kind
    return found


def _look_at_gradient(made: _Model, dim: int, points: np.ndarray | None = None) -> None:
    """Warns of a gradient that differences of the value contradict; those by automatic differentiation are trusted."""
    if made.own_gradient:
        told = _hone.gradient_complaint(made.parts, np.full((1, dim), 0.1) if points is None else points[:1])
        if told:
            warnings.warn(f"log_density: {told}", stacklevel=3)


def _budget(budget: Any) -> tuple[Any, Total]:
    """A budget as a configuration file has it, and what a progress bar goes to: gradients, or seconds."""
    if isinstance(budget, (int, float, np.integer, np.floating)) and not isinstance(budget, bool):
        budget = str(int(budget)) if float(budget).is_integer() else repr(float(budget))
    if budget is None:
        return None, Total(_hone.default_gradients, is_limit=True)
    text = budget if isinstance(budget, str) else ""  # others are refused, in the engine's words
    try:
        limit = float(text.removesuffix("s"))
    except ValueError:
        return budget, Total(None)
    return budget, Total(limit, in_seconds=text.endswith("s"), is_limit=True)


def fit(model: Any, data: Data = None, *, init: Any = None, dim: int | None = None, names: Names | None = None,
        constrain: Callable[[np.ndarray], Mapping[str, Any]] | None = None, batched: bool | None = None,
        family: str | None = None, objective: str | None = None, steps: int | None = None,
        draws_per_iteration: int | None = None, draws: int | None = None, starts: int | None = None,
        effort: str | None = None, error: float | None = None, target_accept: float | None = None,
        chain_coordinates: str | None = None,
        budget: int | float | str | None = None, tolerance_mean: float | None = None, tolerance_sd: float | None = None,
        tolerance_vcd: float | None = None, seed: int | None = None, threads: int | None = None,
        dims: Mapping[str, Sequence[str]] | None = None, coords: Mapping[str, Any] | None = None,
        progress: bool | None = None) -> Result:
    """Fits q to a posterior, refines its draws, and says which of the two to use.

    model: a Stan program (.stan) or compiled model (.so) with `data` (a path, JSON text or a dict); a bridgestan.StanModel;
    a PyMC model; or a callable that returns log p and its gradient, at a point (D,) → (number, (D,)) or for a batch
    (n, D) → ((n,), (n, D)), which is found out unless `batched` says it. It gets a copy of the points; its results
    are copied into the engine's memory, once where they are float64 in C order. A gradient whose sign or
    size contradicts differences of the value is a UserWarning. hone.from_jax and hone.from_torch make such a callable
    from log p alone.

    init: a point (D,) or points (k, D) where the searches begin. dim, names: of a callable's coordinates; names is a list,
    or a dict of shapes. constrain: unconstrained point (D,) → dict of natural values. The other arguments are those of
    `hone fit`; budget counts gradients, or seconds as "30s". dims, coords: names of dimensions for ArviZ.

    Ctrl-C ends the fit with the result so far; a second one ends it at once. progress: True, False, or None for a bar in
    terminals and notebooks.
    """
    budget, total = _budget(budget)
    settings = _texts({
        "family": family, "objective": objective, "steps": steps, "draws_per_iteration": draws_per_iteration,
        "draws": draws, "effort": effort, "error": error, "target_accept": target_accept,
        "chain_coordinates": chain_coordinates, "starts": starts, "budget": budget, "tolerance_mean": tolerance_mean,
        "tolerance_sd": tolerance_sd, "tolerance_vcd": tolerance_vcd, "seed": seed, "threads": threads})
    points = None if init is None else _points(init, "init")
    made = _model(model, data, dim, points, names, constrain, batched)
    with made, Work("fit", total, progress) as work:
        known, _, coordinates = _names_of(made, work)
        if points is not None and points.shape[1] != len(coordinates):
            raise ValueError(f"init: points of {points.shape[1]} coordinates, expected {len(coordinates)}: {', '.join(coordinates)}")
        named: dict[str, Any] = {"dims": {**made.dims, **dict(dims or {})}, "coords": checked_coords({**made.coords, **dict(coords or {})})}
        checked_dims(known, **named, others=made.dims)
        _look_at_gradient(made, len(coordinates), points)
        parts = _hone.fit(made.parts, settings, points, work.stop, work.tell)
    if made.aside is not None:  # data in memory have the name that Result.save gives them
        for text in ("config", "summary"):
            parts[text] = parts[text].replace(str(Path(made.aside.name) / "data.json"), "data.json")
    groups: dict[str, Any] = {}
    if made.pymc is not None:
        with Work("log_likelihood", Total(None), progress) as work:
            groups = made.pymc.groups(parts["draws_unconstrained"], work.stop)
        if work.stop:
            warnings.warn("interrupted after the fit: the group log_likelihood is left out", stacklevel=2)
    result = Result(parts, data=made.data, groups=groups, **named)
    if result.interrupted:
        warnings.warn(f"the fit was interrupted: this is the result so far, verdict {result.verdict}", stacklevel=2)
    return result


@dataclass(eq=False)  # its arrays have no single answer to ==
class Check:
    """A second opinion on draws: they were refined, and the refined draws compared with them."""

    verdict: str  # use-draws, use-refined or trust-neither
    reasons: list[str]
    notes: list[str]
    shift: np.ndarray  # per coordinate: (mean of the draws − refined mean) / refined sd
    sd_ratio: np.ndarray  # per coordinate: sd of the draws / refined sd
    p_value: float  # of the hypothesis that the draws are from the posterior
    k_hat: float  # of the importance weights; NaN where log q of the draws is not known
    vcd: tuple[float, float] | None  # and its standard error, where the draws are from a Gaussian with known log q
    nested_rhat: float
    steps: int
    outside_support: int
    gradients: int
    coordinates: list[str]
    names: list[str]
    table: dict[str, tuple[float, float, float, float, float]]  # mean and sd of the draws; mean, sd, mcse of the refined
    refined: np.ndarray  # the refined draws (n, D) over the unconstrained coordinates
    draws: np.ndarray  # and on the natural scale (n, names)
    interrupted: bool = False  # whether Ctrl-C ended the check

    def __getitem__(self, name: str) -> np.ndarray:
        """The refined draws of one variable, (n, *shape)."""
        arrays = grouped(self.names)
        if name not in arrays:
            raise KeyError(f"'{name}' is not one of {', '.join(arrays)}")
        shape, columns = arrays[name]
        return self.draws[:, columns].reshape(-1, *shape)

    def _repr_html_(self) -> str:
        titles = "".join(f"<th>{title}</th>" for title in TITLES)
        rows = "".join(f"<tr><th style='text-align:left'>{html.escape(name)}</th>"
                       + "".join(f"<td>{cell(value)}</td>" for value in values) + "</tr>"
                       for name, values in list(self.table.items())[:MOST_ROWS])
        if len(self.table) > MOST_ROWS:
            rows += f"<tr><td colspan={1 + len(TITLES)}>… {len(self.table) - MOST_ROWS} more in table</td></tr>"
        return judged_html(self.verdict, self.reasons, self.notes, titles, rows)

    def __repr__(self) -> str:
        rows = list(self.table.items())[:MOST_ROWS]
        width = max([9, *(len(name) for name, _ in rows)])

        def line(name: str, cells: Sequence[str]) -> str:
            padded = [f"{cell:>11}" for cell in cells]
            return f"{name:<{width}} {''.join(padded[:2])}  |{''.join(padded[2:])}"

        lines = [line("", TITLES)]
        lines += [line(name, [cell(value) for value in values]) for name, values in rows]
        if len(self.table) > MOST_ROWS:
            lines.append(f"… {len(self.table) - MOST_ROWS} more in table")
        lines += ["", f"verdict: {self.verdict}", *(f"  - {reason}" for reason in self.reasons)]
        lines += [f"note: {note}" for note in self.notes]
        return "\n".join(lines)


def _drawn(draws: Any, unconstrained: bool) -> Any:
    """The refined draws of a Result, by name; other draws as they are."""
    if not isinstance(draws, Result):
        return draws
    names, values = (draws.coordinates, draws.draws_unconstrained) if unconstrained else (draws.names, draws.draws)
    return {name: values[:, columns].reshape(-1, *shape) for name, (shape, columns) in grouped(names).items()}


def _given(draws: Any, made: _Model, natural: bool | None, known: tuple[list[str], int, list[str]]) -> Any:
    """Draws of any kind, for the engine. natural=None: they are on the natural scale if they have names."""
    names, parameters, coordinates = known
    density = made.parts.in_python and made.pymc is None  # a callable says nothing of a natural scale
    own = coordinates if density or natural is False else names[:parameters]
    shapes = made.pymc.parameters if made.pymc and natural is not False else {k: v[0] for k, v in grouped(own).items()}
    found = given(_drawn(draws, own is coordinates), shapes)
    if natural is None:
        natural = bool(found.names) and not density
    if natural and density:
        raise ValueError("scale: draws for a callable are over its own, unconstrained coordinates")
    if natural and made.pymc is not None:
        if not found.names:
            raise ValueError("draws: give them by name, as a dict or a table: the PyMC model has no order of its variables")
        arrays = found.arrays()
        for name, shape in shapes.items():
            if name not in arrays or arrays[name].shape[1:] != shape:
                raise ValueError(f"draws: '{name}' of shape {shape} is missing; expected every free variable of the model")
        return _hone.Draws([], made.pymc.unconstrain(arrays), found.log_q, False)
    return _hone.Draws(found.names, found.values, found.log_q, natural)


def check(draws: Any, model: Any, data: Data = None, *, scale: str | None = None, dim: int | None = None,
          names: Names | None = None, batched: bool | None = None, steps: int | None = None,
          budget: int | float | str | None = None, tolerance_mean: float | None = None,
          tolerance_sd: float | None = None, tolerance_vcd: float | None = None, seed: int | None = None,
          threads: int | None = None, progress: bool | None = None) -> Check:
    """A second opinion on anyone's draws from `model`, which is as in hone.fit.

    draws: a dict name → (n, *shape) or (chains, draws, *shape); an ArviZ InferenceData, DataTree or posterior group; a
    data frame; a fit of CmdStanPy's; a Result; the path of a Stan CSV, plain CSV or NetCDF file; an array (n, D) or
    (chains, draws, D). scale: "natural", "unconstrained", or None: natural if the draws have names, unconstrained if
    they do not or if the model is a callable.

    Chains of HMC start from 128 of the draws, evenly spaced, and run until they have forgotten them. Then all draws (at
    most 4,000, evenly spaced) are compared with the chains. Needs at least 100 draws.

    Ctrl-C ends the check with the result so far, as it ends a fit.
    """
    if scale not in (None, "natural", "unconstrained"):
        raise ValueError(f"scale: '{scale}' is not known; expected natural or unconstrained")
    budget, total = _budget(budget)
    settings = _texts({"steps": steps, "budget": budget, "tolerance_mean": tolerance_mean, "tolerance_sd": tolerance_sd,
                       "tolerance_vcd": tolerance_vcd, "seed": seed, "threads": threads})
    if callable(model) and not _kind(model) and dim is None and names is None:
        if isinstance(draws, Result):
            names = draws.coordinates
        elif are_named(draws):
            raise ValueError("names: give those of the coordinates, in the order of log_density's argument, as names=[\"a\", \"b\"] or "
                             "names={\"a\": (), \"b\": (8,)}: these draws are known by name")
        else:
            shape = np.shape(draws)
            dim = shape[-1] if len(shape) >= 2 else 1 if len(shape) == 1 else None
    made = _model(model, data, dim, None, names, None, batched)
    with made, Work("check", total, progress) as work:
        known = _names_of(made, work)
        asked = _given(draws, made, None if scale is None else scale == "natural", known)
        _look_at_gradient(made, len(known[2]))
        told = Check(**_hone.check_draws(made.parts, settings, asked, work.stop, work.tell))
    if told.interrupted:
        warnings.warn(f"the check was interrupted: this is what there was by then, verdict {told.verdict}", stacklevel=2)
    return told
