#!/usr/bin/env python3
"""What it costs to call a batched JAX density from the engine: python_crossing.py [--chains N] [--dim D] [--us U] [--rounds R]

The density is tuned to take about U microseconds per batch of N chains when a Python loop calls it with NumPy arrays in and
out. The engine makes the same calls, as a fit makes them. Times are of all threads of the process, so that what else the
machine does hardly counts; all are measured in turn, a few milliseconds each, in an order that chance decides anew every round
(what comes second is slower by itself), and compared round by round. JAX copies an array unless
it begins at a multiple of 64 bytes, as the engine's do and NumPy's seldom do: JAX alone is timed with either. JAX computes on threads
of its own, so that the first to look at a result pays for its way to another core: that is timed too, by a copy of the results. A
density that has its answer ready shows the cost of the crossing alone.
"""

import argparse
import time

import jax
import jax.numpy as jnp
import numpy as np

import hone
from hone import _hone
from hone._density import convert

CALLS = 20  # between two looks at the clock


def log_p_of(work):
    def log_p(z):
        x = z
        for _ in range(work):
            x = jnp.tanh(x) + z
        return -0.5 * z @ z + 1e-9 * x.sum()

    return log_p


def jax_alone(log_p):
    """What JAX itself needs, from a loop in Python: NumPy in and out, double precision."""
    compiled = jax.jit(jax.vmap(jax.value_and_grad(log_p)))

    def call(z):
        with jax.enable_x64(True):
            value, gradient = compiled(z)
        return np.asarray(value), np.asarray(gradient)

    return call


def aligned(z):
    """A copy that begins at a multiple of 64 bytes."""
    memory = np.empty(z.nbytes + 64, np.uint8)
    begin = -memory.ctypes.data % 64
    copy = memory[begin : begin + z.nbytes].view(z.dtype).reshape(z.shape)
    copy[:] = z
    return copy


def looking(call, z):
    """The same call by somebody who looks at the results."""
    kept = [array.copy() for array in call(z)]

    def call_and_look(z):
        for mine, array in zip(kept, call(z), strict=True):
            np.copyto(mine, array)

    return call_and_look


def timed(call, z):
    began = time.process_time()
    for _ in range(CALLS):
        call(z)
    return 1e6 * (time.process_time() - began) / CALLS


def tuned(z, us):
    """The density whose batch takes about `us` microseconds, as JAX runs it."""
    for work in range(64):
        alone = jax_alone(log_p_of(work))
        alone(z)
        if min(timed(alone, z) for _ in range(40)) >= us:
            break
    return alone, log_p_of(work)


def model_of(density, dim):
    parts = _hone.Density()
    parts.coordinates = parts.names = [f"z.{k + 1}" for k in range(dim)]
    parts.batches, parts.view, parts.parameters = True, True, dim
    parts.density, parts.convert, parts.constrain = density, convert, None
    return _hone.Model(parts, "bench")


def by_engine(model, z, gradients_alone):
    return 1e6 * _hone.time_evaluations(model, z, CALLS, gradients_alone) / CALLS


def row(name, times, *others):
    """Median and quartiles; then the median of the ratios to others of the same round, with its standard error by the bootstrap."""
    text = f"{name:<42}{np.median(times):6.1f}   {np.quantile(times, 0.25):6.1f} to {np.quantile(times, 0.75):6.1f}       "
    random = np.random.default_rng(1)
    for other in others:
        ratios = np.array(times) / other
        medians = [np.median(random.choice(ratios, len(ratios))) for _ in range(1000)]
        text += f"   {100 * (np.median(ratios) - 1):+5.1f} % ± {100 * np.std(medians):.1f}"
    print(text)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--chains", type=int, default=4000)
    parser.add_argument("--dim", type=int, default=2)
    parser.add_argument("--us", type=float, default=100)
    parser.add_argument("--rounds", type=int, default=1000)
    given = parser.parse_args()
    z = np.random.default_rng(0).standard_normal((given.chains, given.dim))
    alone, log_p = tuned(z, given.us)
    density = hone.from_jax(log_p)
    for _ in range(10):  # from_jax compiles for this very size when it comes again
        density(z)
    model, ready, better = model_of(density, given.dim), alone(z), aligned(z)
    looked = looking(alone, better)
    nothing = model_of(lambda _: ready, given.dim)
    kinds = {"JAX alone, NumPy in and out": lambda: timed(alone, z),
             "JAX alone, aligned NumPy in": lambda: timed(alone, better),
             "JAX alone, aligned, results looked at": lambda: timed(looked, better),
             "by the engine, gradients": lambda: by_engine(model, z, True),
             "by the engine, values and gradients": lambda: by_engine(model, z, False)}
    times = {name: [] for name in kinds}
    names, random = list(kinds), np.random.default_rng(2)
    for _ in range(given.rounds):
        for name in random.permutation(names):
            times[name].append(kinds[name]())
    print(f"{given.chains} chains, {given.dim} dimensions, {jax.devices()[0].platform}, JAX {jax.__version__}, NumPy {np.__version__}; "
          f"{given.rounds} rounds of {CALLS} calls\n{'':<42}median   quartiles, CPU µs per batch   more than the first, the second, the third")
    alone_times = [np.array(times[name]) for name in list(kinds)[:3]]
    for name, found in times.items():
        row(name, found, *alone_times)
    for name, only in (("gradients", True), ("values and gradients", False)):
        row(f"the crossing alone, {name}", [by_engine(nothing, z, only) for _ in range(given.rounds)])


if __name__ == "__main__":
    main()
