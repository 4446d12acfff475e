"""hone.fit and hone.check."""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from . import _hone
from ._density import Names, array_of, convert, flat_names, takes_batches
from ._progress import Work
from ._result import Result, checked_dims, grouped, numbers_in

DEFAULT_BUDGET = 4_000_000
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


def _plain(value: Any, name: str) -> Any:
    """Data of a Stan model as JSON's own types."""
    if isinstance(value, Mapping):
        return {str(key): _plain(entry, str(key)) for key, entry in value.items()}
    if isinstance(value, (bool, np.bool_)):
        return int(value)
    if isinstance(value, (int, float, str)):
        return value
    array = np.asarray(value)
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
    names: list[str] | None = None  # of the natural values, where they are known before the fit
    dims: dict[str, list[str]] = field(default_factory=dict)
    coords: dict[str, Any] = field(default_factory=dict)
    aside: Any = None  # the temporary folder that holds data.json

    def __enter__(self) -> _Model:
        return self

    def __exit__(self, *_: object) -> None:
        if self.aside is not None:
            self.aside.cleanup()


def _stan(model: Path, data: Data) -> _Model:
    if data is None:
        return _Model(_hone.Model(str(model), ""))
    if isinstance(data, (str, os.PathLike)) and not str(data).lstrip().startswith("{"):
        return _Model(_hone.Model(str(model), str(data)), numbers_in(Path(data)))
    given = json.loads(data) if isinstance(data, (str, os.PathLike)) else _plain(data, "data")
    if not isinstance(given, dict):
        raise TypeError("data: expected a dict, JSON text or the path of a JSON file")
    folder = tempfile.TemporaryDirectory(prefix="hone-")
    path = Path(folder.name) / "data.json"
    path.write_text(json.dumps(given))
    return _Model(_hone.Model(str(model), str(path)), given, aside=folder)


def _constrained(constrain: Callable[..., Any], point: np.ndarray) -> tuple[Callable[..., Any], list[str]]:
    """A function (n, D) → (n, names) from one that takes a point (D,) and returns a dict of arrays."""
    first = constrain(point.copy())
    if not isinstance(first, Mapping):
        raise TypeError(f"constrain returned a {type(first).__name__}; expected a dict: name → number or array")
    shapes = {name: np.shape(value) for name, value in first.items()}
    names = flat_names(shapes, None, "constrain")
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
             constrain: Callable[..., Any] | None, batched: bool | None) -> _Model:
    if dim is not None and (isinstance(dim, bool) or int(dim) != dim or dim < 1):
        raise ValueError(f"dim: expected a whole number, at least 1, found {dim}")
    if init is not None:
        if dim is not None and init.shape[1] != dim:
            raise ValueError(f"init: points of {init.shape[1]} coordinates, but dim is {dim}")
        dim = init.shape[1]
    parts = _hone.Density()
    parts.coordinates = flat_names(names, dim)
    dim = len(parts.coordinates)
    point = np.full(dim, 0.1) if init is None else init[0]
    if batched is None:
        batched = getattr(density, "hone_batches", None)
    parts.batches = takes_batches(density, point) if batched is None else bool(batched)
    parts.view = bool(getattr(density, "hone_view", False))
    parts.density, parts.convert, parts.constrain = density, convert, None
    parts.names = list(parts.coordinates)
    if constrain is not None:
        parts.constrain, parts.names = _constrained(constrain, point)
    parts.parameters = len(parts.names)
    return _Model(_hone.Model(parts, getattr(density, "__name__", "log_density")), names=parts.names)


def _is_pymc(model: Any) -> bool:
    pymc = sys.modules.get("pymc")
    return pymc is not None and hasattr(pymc, "Model") and isinstance(model, pymc.Model)


def _model(model: Any, data: Data, dim: int | None, init: Any, names: Names | None,
           constrain: Callable[..., Any] | None, batched: bool | None) -> tuple[_Model, np.ndarray | None]:
    points = None if init is None else _points(init, "init")
    kind = "PyMC" if _is_pymc(model) else "Stan" if isinstance(model, (str, os.PathLike)) else ""
    own = {"dim": dim, "names": names, "constrain": constrain, "batched": batched}
    for argument, value in {**own, **({"data": data} if kind == "PyMC" else {})}.items():
        if kind and value is not None:
            raise ValueError(f"{argument}: the {kind} model says that itself")
    if kind == "PyMC":
        from ._pymc import model_of

        density, shapes, constrain, (dims, coords) = model_of(model)
        made = _density(density, None, points, shapes, constrain, False)
        known = grouped(made.names or [])  # an array without elements is not there
        made.dims, made.coords = {name: value for name, value in dims.items() if name in known}, coords
        return made, points
    if kind == "Stan":
        return _stan(Path(model), data), points
    if data is not None:
        raise ValueError("data: only Stan models take data; a callable has its own")
    if not callable(model):
        raise TypeError(f"model: expected a callable, a PyMC model, or the path of a .stan or .so file, "
                        f"found {type(model).__name__}")
    return _density(model, dim, points, names, constrain, batched), points


def _budget(budget: Any) -> tuple[Any, int]:
    """A budget as a configuration file has it, and the gradients that a progress bar goes to."""
    if isinstance(budget, (int, float, np.integer, np.floating)) and not isinstance(budget, bool):
        budget = str(int(budget)) if float(budget).is_integer() else repr(float(budget))
    return budget, int(budget) if isinstance(budget, str) and budget.isdigit() else DEFAULT_BUDGET


def fit(model: Any, data: Data = None, *, init: Any = None, dim: int | None = None, names: Names | None = None,
        constrain: Callable[[np.ndarray], Mapping[str, Any]] | None = None, batched: bool | None = None,
        family: str | None = None, objective: str | None = None, steps: int | None = None,
        draws_per_iteration: int | None = None, draws: int | None = None, starts: int | None = None,
        effort: str | None = None, error: float | None = None, target_accept: float | None = None,
        budget: int | float | str | None = None, tolerance_mean: float | None = None, tolerance_sd: float | None = None,
        tolerance_vcd: float | None = None, seed: int | None = None, threads: int | None = None,
        dims: Mapping[str, Sequence[str]] | None = None, coords: Mapping[str, Any] | None = None,
        progress: bool | None = None) -> Result:
    """Fits q to a posterior, refines its draws, and says which of the two to use.

    model: a Stan program (.stan) or compiled model (.so) with `data` (a path, JSON text or a dict); a PyMC model; or a
    callable that returns log p and its gradient, at a point (D,) → (number, (D,)) or for a batch (n, D) → ((n,), (n, D)),
    which is found out unless `batched` says it. hone.from_jax and hone.from_torch make such a callable from log p alone.

    init: a point (D,) or points (k, D) where the searches begin. dim, names: of a callable's coordinates; names is a list,
    or a dict of shapes. constrain: unconstrained point (D,) → dict of natural values. The other arguments are those of
    `hone fit`; budget counts gradients, or seconds as "30s". dims, coords: names of dimensions for ArviZ.

    Ctrl-C ends the fit with what there is; a second one ends it at once. progress: True, False, or None for a bar in
    terminals and notebooks.
    """
    budget, total = _budget(budget)
    settings = _texts({
        "family": family, "objective": objective, "steps": steps, "draws_per_iteration": draws_per_iteration,
        "draws": draws, "effort": effort, "error": error, "target_accept": target_accept,
        "starts": starts, "budget": budget, "tolerance_mean": tolerance_mean,
        "tolerance_sd": tolerance_sd, "tolerance_vcd": tolerance_vcd, "seed": seed, "threads": threads})
    made, points = _model(model, data, dim, init, names, constrain, batched)
    named = {"dims": {**made.dims, **dict(dims or {})}, "coords": {**made.coords, **dict(coords or {})}}
    checked_dims(made.names, **named)
    with made, Work("fit", total, progress) as work:
        parts = _hone.fit(made.parts, settings, points, work.stop, work.tell)
    if made.aside is not None:  # data in memory have the name that Result.save gives them
        for text in ("config", "summary"):
            parts[text] = parts[text].replace(str(Path(made.aside.name) / "data.json"), "data.json")
    return Result(parts, data=made.data, **named)


@dataclass
class Check:
    """A second opinion on draws: they were refined, and the refined draws compared with them."""

    verdict: str  # use-draws, use-refined or trust-neither
    reasons: list[str]
    notes: list[str]
    shift: np.ndarray  # per coordinate: (mean of the draws − refined mean) / refined sd
    sd_ratio: np.ndarray  # per coordinate: sd of the draws / refined sd
    p_value: float  # of the hypothesis that the draws are from the posterior
    nested_rhat: float
    steps: int
    outside_support: int
    gradients: int
    coordinates: list[str]
    refined: np.ndarray

    def __repr__(self) -> str:
        lines = [f"verdict: {self.verdict}", *(f"  - {reason}" for reason in self.reasons)]
        lines += [f"note: {note}" for note in self.notes]
        return "\n".join(lines)


MOST_CHECKED = 4000  # draws


def check(draws: Any, model: Any, data: Data = None, *, dim: int | None = None, names: Names | None = None,
          batched: bool | None = None, steps: int | None = None, budget: int | float | str | None = None,
          tolerance_mean: float | None = None, tolerance_sd: float | None = None, seed: int | None = None,
          threads: int | None = None, progress: bool | None = None) -> Check:
    """A second opinion on anyone's draws (n, D) from `model`, over its unconstrained coordinates.

    Every draw (of at most 4,000, evenly spaced) is refined by HMC until the chains have forgotten it. If the draws are
    from the posterior, refining changes none of their moments. Needs at least 100 draws.
    """
    points = _points(draws, "draws")
    if len(points) < 100:
        raise ValueError(f"draws: {len(points)} are too few; expected at least 100")
    points = np.ascontiguousarray(points[:: -(-len(points) // MOST_CHECKED)])
    if callable(model) and dim is None and names is None:
        dim = points.shape[1]
    made, _ = _model(model, data, dim, None, names, None, batched)
    budget, total = _budget(budget)
    settings = _texts({"steps": steps, "budget": budget, "tolerance_mean": tolerance_mean,
                       "tolerance_sd": tolerance_sd, "seed": seed, "threads": threads})
    with made, Work("check", total, progress) as work:
        found = _hone.check_draws(made.parts, settings, points, work.stop, work.tell)

    def words(text: str) -> str:
        return text.replace("q's ", "the draws' ").replace("q agrees", "the draws agree")

    notes = [note for note in found["notes"] if note.startswith(("all of this", "the refinement"))]
    if found["p_value"] < 0.01:
        notes.append(f"the draws differ from the posterior beyond chance (p = {found['p_value']:.3g})")
    verdict = {"use-q": "use-draws"}.get(found["verdict"], found["verdict"])
    reasons = [words(reason) for reason in found["reasons"]]
    if verdict == "use-draws":
        reasons = ["the draws agree with the refined ones within the tolerances, in means, sds and every direction"]
    return Check(**{**found, "verdict": verdict, "reasons": reasons, "notes": notes})
