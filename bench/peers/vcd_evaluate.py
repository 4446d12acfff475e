"""Test log-likelihood by importance sampling with the paper's three proposals, in JAX (eq. approx_log_lik).

All points' chains move at once, with one step size (hone: one for every 50 points). The draws go through the decoder in
chunks of `chunk_points` data times `chunk_samples` draws times three proposals.
"""

import functools
import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jax.scipy.special import logsumexp

import vcd_loop

WIDENING = 1.2
SMALLEST_SD = 1e-4


class EvaluationSettings(NamedTuple):
    points: int = 10000
    samples: int = 20000  # S, of every proposal
    burn_in: int = 300  # steps that adapt the step size
    kept: int = 300  # steps that count
    chunk_points: int = 100
    chunk_samples: int = 250

    def check(self):
        for part, whole in (("chunk_points", "points"), ("chunk_samples", "samples")):
            if getattr(self, whole) % getattr(self, part) != 0:
                raise ValueError(f"{part} ({getattr(self, part)}) must divide {whole} ({getattr(self, whole)})")
        if self.kept < 2 or self.samples < 10:
            raise ValueError("an evaluation needs at least 2 kept steps and 10 samples")


def chain_moments(settings, evaluation, decoder, x, mean, step_size, key):
    """HMC from q's mean (n, D): means and standard deviations (n − 1) of the kept steps."""

    def move(chains, step_size, step):
        normal, uniform = jax.random.split(jax.random.fold_in(key, step))
        momentum = jax.random.normal(normal, mean.shape)
        log_uniform = -jax.random.exponential(uniform, mean.shape[:1])
        chains, accepted, _ = vcd_loop.hmc_step(settings, decoder, x, chains, step_size, momentum, log_uniform)
        return chains, jnp.mean(accepted.astype(mean.dtype))

    def adapting(step, carry):
        chains, step_size = carry
        chains, accepted = move(chains, step_size, step)
        return chains, vcd_loop.adapted(settings, step_size, accepted)

    def counting(i, carry):  # Welford's sums
        chains, step_size, average, squares = carry
        chains, _ = move(chains, step_size, evaluation.burn_in + i)
        off = chains.z - average
        average = average + off / (i + 1)
        return chains, step_size, average, squares + off * (chains.z - average)

    chains = vcd_loop.chains_at(decoder, mean, x)
    chains, step_size = lax.fori_loop(0, evaluation.burn_in, adapting, (chains, step_size))
    zeros = jnp.zeros_like(mean)
    _, _, average, squares = lax.fori_loop(0, evaluation.kept, counting, (chains, step_size, zeros, zeros))
    return average, jnp.maximum(jnp.sqrt(squares / (evaluation.kept - 1)), SMALLEST_SD)


def proposals_of(settings, evaluation, theta, data, step_size, key):
    """Means and (widened) standard deviations of the three proposals: (3, n, D) each."""
    x = data.astype(step_size.dtype)
    q_mean, q_sd = vcd_loop.encode(theta, x)
    mean, sd = chain_moments(settings, evaluation, theta["decoder"], x, q_mean, step_size, key)
    return jnp.stack([q_mean, mean, mean]), WIDENING * jnp.stack([q_sd, q_sd, sd])


def log_density(z, mean, sd):
    u = (z - mean) / sd
    return jnp.sum(-0.5 * u * u - jnp.log(sd), axis=-1) - 0.5 * z.shape[-1] * math.log(2 * math.pi)


def log_weights(evaluation, decoder, x, mean, sd, key):
    """Of data x (n, P): against a draw's own proposal and against the equal mixture of all, (3, n, S) each."""

    def some(_, chunk):
        shape = (3, x.shape[0], evaluation.chunk_samples, mean.shape[-1])
        noise = jax.random.normal(jax.random.fold_in(key, chunk), shape)
        z = mean[:, :, None] + sd[:, :, None] * noise
        joint = vcd_loop.log_joint(decoder, z, x[:, None])
        joint = jnp.where(jnp.isfinite(joint), joint, -jnp.inf)
        density = log_density(z[:, None], mean[None, :, :, None], sd[None, :, :, None])  # (drawn by, under, n, chunk)
        own = jnp.stack([density[j, j] for j in range(3)])
        return None, (joint - own, joint - logsumexp(density, axis=1) + math.log(3))

    _, weights = lax.scan(some, None, jnp.arange(evaluation.samples // evaluation.chunk_samples))
    return tuple(jnp.moveaxis(w, 0, 2).reshape(3, x.shape[0], evaluation.samples) for w in weights)


def mean_and_size(weights):
    """log of the mean weight, and the effective number of draws, over the last axis."""
    total = logsumexp(weights, axis=-1)
    return total - math.log(weights.shape[-1]), jnp.exp(2 * total - logsumexp(2 * weights, axis=-1))


def estimates_of(evaluation, theta, data, mean, sd, key):
    """Per datum: the three estimates and their effective draws (3, n), best, pilot and mixture (n,)."""
    pilot = max(1, evaluation.samples // 10)
    chunks = evaluation.points // evaluation.chunk_points

    def split(a):  # (…, n, k) → (chunks, …, n / chunks, k)
        return jnp.moveaxis(a.reshape(*a.shape[:-2], chunks, evaluation.chunk_points, a.shape[-1]), -3, 0)

    def chunk(inputs):
        number, x, mean, sd = inputs
        x = x.astype(mean.dtype)
        own, mixed = log_weights(evaluation, theta["decoder"], x, mean, sd, jax.random.fold_in(key, number))
        value, size = mean_and_size(own)
        chosen = jnp.argmax(mean_and_size(own[..., :pilot])[0], axis=0)
        rest = mean_and_size(own[..., pilot:])[0]
        picked = jnp.take_along_axis(rest, chosen[None], axis=0)[0]
        mixture, _ = mean_and_size(jnp.moveaxis(mixed, 0, 1).reshape(x.shape[0], -1))
        best = jnp.max(value, axis=0)
        return {"proposals": value, "effective": size, "best": best, "pilot": picked, "mixture": mixture}

    found = lax.map(chunk, (jnp.arange(chunks), split(data), split(mean), split(sd)))
    return {name: jnp.moveaxis(v, 0, -2).reshape(*v.shape[1:-1], evaluation.points) for name, v in found.items()}


def evaluation_programs(settings, evaluation):
    """The two parts, jitted: proposals(theta, data, step_size, key) and estimates(theta, data, mean, sd, key)."""
    evaluation.check()
    return (jax.jit(functools.partial(proposals_of, settings, evaluation)),
            jax.jit(functools.partial(estimates_of, evaluation)))
