"""Log densities in Python: detection of batches, conversion of results, JAX and PyTorch."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np

from ._names import DIMENSIONS, grouped

Names = Sequence[str] | Mapping[str, tuple[int, ...]]
COLUMNS = ("lp__", "log_p__", "log_q__", "accept_stat__", "divergent__", "energy__", "short_chain__")  # of draws.csv
EXPECTED = "expected (value, gradient) of log p; hone.from_jax and hone.from_torch differentiate a log density for you"


def array_of(value: Any, name: str) -> np.ndarray:
    """Anything array-like as doubles; errors name the argument."""
    if hasattr(value, "detach"):  # a torch tensor
        value = value.detach().cpu()
    if np.ma.is_masked(value):
        raise ValueError(f"{name}: has masked values; every number must be known")
    try:
        array = np.asarray(value)
    except Exception as error:
        raise TypeError(f"{name}: not an array of numbers: {error}") from error
    if array.dtype.kind not in "biuf":
        found = type(value).__name__ if array.dtype == object and array.ndim == 0 else f"dtype {array.dtype}"
        raise TypeError(f"{name}: expected real numbers, found {found}")
    return np.ascontiguousarray(array, dtype=np.float64)


def convert(result: Any, n: int, d: int, batches: bool) -> tuple[np.ndarray, np.ndarray]:
    """The result of a log density as (n,) and (n, D) doubles. A single point counts as a batch of one."""
    if not isinstance(result, (tuple, list)):
        raise TypeError(f"log_density returned one thing, of type {type(result).__name__}; {EXPECTED}")
    if len(result) != 2:
        raise TypeError(f"log_density returned a {type(result).__name__} of {len(result)}; {EXPECTED}")
    value = array_of(result[0], "log_density's value")
    gradient = array_of(result[1], "log_density's gradient")
    shapes = ((n,), (n, d)) if batches else ((), (d,))
    if not batches and value.shape == (1,):
        value = value.reshape(())
    if value.shape != shapes[0]:
        raise ValueError(f"log_density's value: expected shape {shapes[0]}, found {value.shape}")
    if gradient.shape != shapes[1]:
        raise ValueError(f"log_density's gradient: expected shape {shapes[1]}, found {gradient.shape}")
    return value.reshape(n), gradient.reshape(n, d)


def takes_batches(density: Callable[..., Any], point: np.ndarray) -> bool:
    """Whether a density takes (n, D): tried with a few points. If it does not, it must take a single one."""
    d = len(point)
    n = d + 2  # no square batch: shapes must not fit by accident
    batch = np.repeat(point[None, :], n, axis=0)
    try:
        convert(density(batch), n, d, True)
        return True
    except Exception as error:  # it may raise whatever it likes at a shape that it does not know
        of_batch = error
    try:
        convert(density(point.copy()), 1, d, False)
        return False
    except Exception as error:
        of_point = error
    tried = [("a batch (n, D)", of_batch), ("a single point (D,)", of_point)]
    (_, told), (how, other) = tried if _meant(density, of_batch, of_point) else tried[::-1]
    if (type(told), str(told)) != (type(other), str(other)):
        told.add_note(f"log_density was tried with {how} too, which raised {type(other).__name__}: {other}\n"
                      "batched=True or batched=False says what it takes.")
    raise told


def _meant(density: Callable[..., Any], of_batch: Exception, of_point: Exception) -> bool:
    """Whether a density that fails for both takes batches: the call that came further is the one it was written for."""
    batch, point = _reached(density, of_batch), _reached(density, of_point)
    return batch > point or (batch == point and isinstance(of_point, IndexError) and not isinstance(of_batch, IndexError))


def _reached(density: Callable[..., Any], error: Exception) -> float:
    """The line of the density that raised; infinity where it returned something that is not what we expect."""
    frame = error.__traceback__
    frame = None if frame is None else frame.tb_next
    if frame is None or frame.tb_frame.f_code is convert.__code__:
        return math.inf
    code = getattr(getattr(density, "__call__", density), "__code__", getattr(density, "__code__", None))
    return frame.tb_lineno if code is None or frame.tb_frame.f_code is code else 0


def flat_names(names: Names | None, dim: int | None, argument: str = "names") -> list[str]:
    """Names in Stan's CSV form: theta.1, theta.2, …"""
    if names is None:
        if dim is None:
            raise ValueError("dim: give the number of coordinates, or init, or names")
        return [f"z.{i + 1}" for i in range(dim)] if dim > 1 else ["z"]
    if isinstance(names, str):
        raise TypeError("names: expected a list of names or a dict of shapes, found one text")
    if isinstance(names, Mapping):
        flat = []
        for name, given in names.items():
            shape = (given,) if isinstance(given, (int, np.integer)) else tuple(given)
            if not all(isinstance(length, (int, np.integer)) and length > 0 for length in shape):
                raise ValueError(f"{argument}['{name}']: expected a shape, such as () or (8,), found {given!r}")
            flat += [".".join([str(name), *(str(i + 1) for i in index)]) for index in product(*map(range, shape))]
    else:
        flat = [str(name) for name in names]
    if not flat and argument == "names":
        raise ValueError("names: expected at least one name")
    if len(set(flat)) != len(flat):
        raise ValueError(f"{argument}: a name appears twice")
    checked_names(flat, argument)
    if dim is not None and len(flat) != dim:
        raise ValueError(f"names: {len(flat)} names for {dim} coordinates")
    return flat


def checked_names(names: Sequence[str], argument: str) -> None:
    """Refuses names that would not come back from a run folder, or that ArviZ has for itself."""
    for name in names:
        if not name or any(character in name for character in ',"\r\n/'):
            raise ValueError(f"{argument}: {name!r} is not allowed; a name has no comma, quote, slash or line break")
        if name != name.strip():
            raise ValueError(f"{argument}: {name!r} is not allowed; a name has no blanks around it")
        if name in COLUMNS:
            raise ValueError(f"{argument}: {name!r} is not allowed: draws.csv has a column of that name; choose another one")
    checked_beside_draws(grouped(names), argument)


def checked_beside_draws(names: Collection[str], argument: str) -> None:
    """Refuses names that ArviZ has for itself, or that no group of its files may have."""
    for name in names:
        if "/" in name:
            raise ValueError(f"{argument}: {name!r} is not allowed; a name has no slash")
    if taken := next((name for name in names if name in DIMENSIONS), None):
        raise ValueError(f"{argument}: {taken!r} is not allowed: ArviZ has a dimension of that name; choose another one")


Batched = Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]


def _batched(call: Any, name: str) -> Batched:
    """Marks a density that takes batches and does not keep its argument, so that it may see hone's own memory."""
    call.hone_batches = call.hone_view = True
    call.__name__ = name
    return call


def _missing(package: str, what: str) -> ImportError:
    return ImportError(f"{what} needs {package}, which is not installed: pip install {package}")


def from_jax(f: Callable[..., Any], *, batched: bool = False, x64: bool = True) -> Batched:
    """A log density written in JAX, z (D,) → number, compiled, vectorised and differentiated.

    batched: f takes (n, D) and returns (n,) itself. x64: compute in double precision, whatever JAX's own setting is.
    Batches are padded to a few sizes, so that JAX compiles few programs. JAX gets a batch of such a size in the engine's
    own memory, others are copied for the padding. What JAX computes on the CPU is copied once, into that memory.
    """
    try:
        import jax
    except ImportError as error:
        raise _missing("jax", "hone.from_jax") from error
    if not callable(f):
        raise TypeError(f"from_jax: expected a function, found {type(f).__name__}")
    if batched:
        def sums(z: Any) -> Any:
            value = f(z)
            return value.sum(), value

        def both(z: Any) -> Any:
            gradient, value = jax.grad(sums, has_aux=True)(z)
            return value, gradient
    else:
        both = jax.vmap(jax.value_and_grad(f))
    compiled = jax.jit(both)
    precise = jax.enable_x64 if hasattr(jax, "enable_x64") else jax.experimental.enable_x64

    sizes = Sizes()

    def call(z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        n = len(z)
        size = n if n in sizes.own else sizes.of(n)
        if size != n:
            padded = np.empty((size, z.shape[1]))
            padded[:n], padded[n:] = z, z[-1]
            z = padded
        if x64:
            with precise(True):
                value, gradient = compiled(z)
        else:
            value, gradient = compiled(z)
        value, gradient = np.asarray(value), np.asarray(gradient)  # to ask for a type here costs more than the rest
        if not x64:
            value, gradient = value.astype(np.float64), gradient.astype(np.float64)
        return (value, gradient) if size == n else (value[:n], gradient[:n])

    return _batched(call, getattr(f, "__name__", "log_density"))


class Sizes:
    """The sizes that programs are compiled for: a short list, and a few of their own."""

    def __init__(self) -> None:
        self._seen: dict[int, int] = {}
        self.own: set[int] = set()  # those that come again and again

    def of(self, n: int) -> int:
        self._seen[n] = self._seen.get(n, 0) + 1
        if n > 256 and self._seen[n] > 8 and len(self.own) < 8:
            self.own.add(n)
        return n if n in self.own else padded_size(n)


def padded_size(n: int) -> int:
    """The next of 4, 16, 64, 256 and then of multiples of a quarter of a power of two: at most a quarter is wasted."""
    for size in (4, 16, 64, 256):
        if n <= size:
            return size
    step = (1 << (n - 1).bit_length()) // 8
    return -(-n // step) * step


def from_torch(f: Callable[..., Any], *, batched: bool = False) -> Batched:
    """A log density written in PyTorch, z (D,) → number in double precision, vectorised and differentiated.

    batched: f takes (n, D) and returns (n,) itself. The points are copied into a tensor, and
    the results into the engine's memory. Nothing is compiled: torch.compile needs a C++ compiler where it runs.
    """
    try:
        import torch
        if hasattr(torch, "func"):
            from torch.func import vmap
        else:  # before 2.0
            from functorch import vmap
    except ImportError as error:
        raise _missing("torch", "hone.from_torch") from error
    if not callable(f):
        raise TypeError(f"from_torch: expected a function, found {type(f).__name__}")
    values = f if batched else vmap(f)

    def call(z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        point = torch.tensor(z, dtype=torch.float64, requires_grad=True)
        with torch.enable_grad():
            value = values(point)
            (gradient,) = torch.autograd.grad(value.sum(), point)
        return value.detach().numpy(), gradient.numpy()

    return _batched(call, getattr(f, "__name__", "log_density"))
