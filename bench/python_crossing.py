#!/usr/bin/env python3
"""What it costs to call a batched JAX density from the engine: python_crossing.py [--chains N] [--us U]

The density is tuned to take about U microseconds for a batch of N chains by itself, as JAX runs it from a Python loop with
NumPy arrays in and out. Then the engine makes the same calls, as a fit makes them.
"""

import argparse
import time

import jax
import jax.numpy as jnp
import numpy as np

import hone
from hone import _hone
from hone._density import convert

parser = argparse.ArgumentParser()
parser.add_argument("--chains", type=int, default=4000)
parser.add_argument("--us", type=float, default=100)
parser.add_argument("--dim", type=int, default=2)
arguments = parser.parse_args()


def log_p_of(work):
    def log_p(z):
        x = z
        for _ in range(work):
            x = jnp.tanh(x) + z
        return -0.5 * z @ z + 1e-9 * x.sum()

    return log_p


def density_alone(log_p):
    """What JAX itself needs, from a loop in Python: NumPy in and out, double precision, no padding."""
    compiled = jax.jit(jax.vmap(jax.value_and_grad(log_p)))

    def call(z):
        with jax.enable_x64(True):
            value, gradient = compiled(z)
        return np.asarray(value), np.asarray(gradient)

    return call


def density_used(alone):
    """The same, and the results copied to where a sampler needs them."""
    values, gradients = np.empty(len(z)), np.empty_like(z)

    def call(z):
        value, gradient = alone(z)
        np.copyto(values, value)
        np.copyto(gradients, gradient)

    return call


def seconds(call, calls=20):
    began = time.perf_counter()
    for _ in range(calls):
        call(z)
    return (time.perf_counter() - began) / calls


def model_of(density):
    parts = _hone.Density()
    parts.coordinates = parts.names = [f"z.{k + 1}" for k in range(arguments.dim)]
    parts.batches, parts.view, parts.parameters = True, True, arguments.dim
    parts.density, parts.convert, parts.constrain = density, convert, None
    return _hone.Model(parts, "bench")


z = np.random.default_rng(0).standard_normal((arguments.chains, arguments.dim))
work = 0
while True:
    alone = density_alone(log_p_of(work))
    alone(z)
    if min(seconds(alone) for _ in range(20)) * 1e6 >= arguments.us or work >= 64:
        break
    work += 1
density = hone.from_jax(log_p_of(work))
for _ in range(10):
    density(z)
model = model_of(density)
used = density_used(alone)
times = {"JAX alone, NumPy in and out": lambda: seconds(alone),
         "JAX alone, results copied": lambda: seconds(used),
         "by the engine, gradients": lambda: _hone.time_evaluations(model, z, 20, True) / 20,
         "by the engine, values and gradients": lambda: _hone.time_evaluations(model, z, 20, False) / 20}
found = {name: [] for name in times}
for _ in range(100):  # in turn, so that what else the machine does hits all alike
    for name, measure in times.items():
        found[name].append(1e6 * measure())
print(f"{arguments.chains} chains of {arguments.dim} dimensions, {jax.devices()[0].platform}; best of 100 times 20 calls, median")
base = min(found["JAX alone, results copied"])
for name, values in found.items():
    print(f"{name:<37}{min(values):8.1f} µs per batch ({np.median(values):.1f}), {100 * (min(values) / base - 1):+5.1f} %")
