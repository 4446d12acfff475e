"""Training of a latent-variable model as `hone train` does it, in JAX: the paper's section 4.2.

Shapes: B data of a minibatch, D latent dimensions, P pixels, t steps of HMC. Sums run over the minibatch, not means.
A model's parameters are a dictionary of three networks ("decoder", "mean", "sd"), each a list of (weight, bias).
"""

import dataclasses
import functools
import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

SOFTPLUS_SHIFT = 1e-4
BASELINE_DECAY = 0.9
LATENT = {"vae": 10, "logistic-mf": 50}
HIDDEN = {"vae": (200, 200), "logistic-mf": ()}


@dataclasses.dataclass(frozen=True)
class Settings:
    """Defaults are the paper's. unroll: 'none', 'leapfrog' (inside a trajectory) or 'all' (the t steps as well)."""

    model: str = "vae"
    objective: str = "vcd"
    steps: int = 8
    unroll: str = "leapfrog"
    data: int = 50000
    pixels: int = 784
    latent: int = 0  # 0: the paper's for the model
    hidden: tuple = None  # None: likewise
    encoder_hidden: tuple = (200, 200)
    batch: int = 100
    leapfrog: int = 5
    acceptance: float = 0.9
    shared_until: int = 3000
    rate_mean: float = 5e-4
    rate_scale: float = 2.5e-4
    rate_model: float = 5e-4
    rate_decay: float = 0.9
    decay_every: int = 15000

    def __post_init__(self):
        if self.latent == 0:
            object.__setattr__(self, "latent", LATENT[self.model])
        if self.hidden is None:
            object.__setattr__(self, "hidden", HIDDEN[self.model])
        if self.data % self.batch != 0:
            raise ValueError("the size of the minibatch must divide the number of data")

    @property
    def refines(self):
        return self.objective != "kl"

    @property
    def first_step_size(self):
        return 0.5 / self.latent

    @property
    def epoch(self):
        return self.data // self.batch


class State(NamedTuple):
    """What an iteration reads and writes; of several runs, with one more axis in front."""

    theta: dict
    moments: dict  # RMSProp's G
    step_size: jax.Array
    baseline: jax.Array  # (data,): C_n
    shared: jax.Array  # C of all data, until shared_until
    key: jax.Array
    totals: jax.Array  # (3,): sums over a stretch's iterations of the ELBO, the VCD and the acceptance


class Chains(NamedTuple):
    z: jax.Array  # (B, D)
    value: jax.Array  # (B,): log p(x, z)
    slope: jax.Array  # (B, D): its gradient in z


class Noise(NamedTuple):
    draw: jax.Array  # (B, D)
    momenta: jax.Array  # (t, B, D)
    log_uniforms: jax.Array  # (t, B)


# The model and q


@jax.custom_jvp
def softplus(a):
    return jnp.maximum(a, 0) + jnp.log1p(jnp.exp(-jnp.abs(a)))


@softplus.defjvp
def _(primals, tangents):  # a sigmoid alone: JAX's own rule goes through the value, which a trajectory does not need
    (a,), (da,) = primals, tangents
    return softplus(a), jax.nn.sigmoid(a) * da


def network(layers, x):
    for weight, bias in layers[:-1]:
        x = jax.nn.relu(x @ weight + bias)
    weight, bias = layers[-1]
    return x @ weight + bias


def log_likelihood(decoder, z, x):
    logits = network(decoder, z)
    return jnp.sum(x * logits - softplus(logits), axis=-1)


def log_joint(decoder, z, x):
    return log_likelihood(decoder, z, x) - 0.5 * jnp.sum(z * z + math.log(2 * math.pi), axis=-1)


def chains_at(decoder, z, x):
    """Value and slope at z; where only the slope is used, XLA leaves the value out."""
    value, pull = jax.vjp(lambda point: log_joint(decoder, point, x), z)
    return Chains(z, value, pull(jnp.ones_like(value))[0])


def encode(encoder, x):
    sd = SOFTPLUS_SHIFT + softplus(network(encoder["sd"], x) - SOFTPLUS_SHIFT)
    return network(encoder["mean"], x), sd


def initial_network(key, widths, hidden):
    layers = []
    for l, (inputs, outputs) in enumerate(zip(widths[:-1], widths[1:])):
        scale = 0.01 if not hidden else 1.0 if l == len(hidden) else 1 / math.sqrt(outputs)
        key, of_weight, of_bias = jax.random.split(key, 3)
        layers.append((scale * jax.random.normal(of_weight, (inputs, outputs)),
                       scale * jax.random.normal(of_bias, (outputs,))))
    return layers


def initial_state(settings, key):
    key, decoder, mean, sd = jax.random.split(key, 4)
    outward = (settings.latent, *settings.hidden, settings.pixels)
    inward = (settings.pixels, *settings.encoder_hidden, settings.latent)
    theta = {"decoder": initial_network(decoder, outward, settings.hidden),
             "mean": initial_network(mean, inward, settings.encoder_hidden),
             "sd": initial_network(sd, inward, settings.encoder_hidden)}
    real = jnp.zeros(()).dtype
    return State(theta, jax.tree.map(jnp.zeros_like, theta), jnp.asarray(settings.first_step_size, real),
                 jnp.zeros(settings.data, real), jnp.zeros((), real), key, jnp.zeros(3, real))


# Refinement


def hmc_step(settings, decoder, x, chains, step_size, momentum, log_uniform):
    """One trajectory and its accept step. Returns the chains, who accepted, and the acceptance probabilities."""

    def drift_and_kick(_, carry):
        z, p = carry
        z = z + step_size * p
        return z, p + step_size * chains_at(decoder, z, x).slope

    half = momentum + 0.5 * step_size * chains.slope
    unroll = max(1, settings.leapfrog - 1) if settings.unroll != "none" else 1
    z, p = lax.fori_loop(0, settings.leapfrog - 1, drift_and_kick, (chains.z, half), unroll=unroll)
    proposal = chains_at(decoder, z + step_size * p, x)
    p = p + 0.5 * step_size * proposal.slope
    log_ratio = proposal.value - chains.value + 0.5 * jnp.sum(momentum * momentum - p * p, axis=-1)
    sound = jnp.isfinite(proposal.value) & ~jnp.isnan(log_ratio)
    accepted = sound & (log_uniform < log_ratio)
    kept = Chains(*(jnp.where(accepted.reshape(accepted.shape + (1,) * (new.ndim - 1)), new, old)
                    for new, old in zip(proposal, chains)))
    return kept, accepted, jnp.where(sound, jnp.exp(jnp.minimum(log_ratio, 0)), 0)


def adapted(settings, step_size, accepted):
    first = settings.first_step_size
    factor = 1 + 0.01 * (accepted - settings.acceptance) / settings.acceptance
    return jnp.clip(step_size * factor, 1e-6 * first, 1e6 * first)


def refine(settings, decoder, x, chains, step_size, noise):
    """t steps; the step size follows the accepted fraction after each of them but the last."""
    steps = noise.momenta.shape[0]

    def one(carry, xs):
        chains, step_size, total = carry
        momentum, log_uniform, adapts = xs
        chains, accepted, probability = hmc_step(settings, decoder, x, chains, step_size, momentum, log_uniform)
        new = adapted(settings, step_size, jnp.mean(accepted.astype(step_size.dtype)))
        return (chains, jnp.where(adapts, new, step_size), total + jnp.mean(probability)), None

    xs = (noise.momenta, noise.log_uniforms, jnp.arange(steps) < steps - 1)
    start = (chains, step_size, jnp.zeros_like(step_size))
    (chains, step_size, total), _ = lax.scan(one, start, xs, unroll=steps if settings.unroll == "all" else 1)
    return chains, step_size, total / steps


# One iteration


class Direction(NamedTuple):
    gradient: dict  # as theta; both ascend
    step_size: jax.Array
    g: jax.Array  # (B,): appendix 3's g at the refined draws; 0 without
    estimates: jax.Array  # (3,): as State.totals


def direction(settings, theta, x, noise, step_size, baseline):
    """Where theta is to move: the paper's eq. gradient_term1 and gradient_term2 in appendix 3's form."""
    encoder = {"mean": theta["mean"], "sd": theta["sd"]}
    (mean, sd), pull = jax.vjp(lambda networks: encode(networks, x), encoder)
    z0 = mean + sd * noise.draw
    log_sd = jnp.sum(jnp.log(sd), axis=-1)
    entropy = log_sd + 0.5 * settings.latent * (1 + math.log(2 * math.pi))
    g = jnp.zeros_like(log_sd)
    acceptance = vcd = jnp.zeros_like(step_size)
    if settings.refines:
        start = chains_at(theta["decoder"], z0, x)
        refined, step_size, acceptance = refine(settings, theta["decoder"], x, start, step_size, noise)
        u = (refined.z - mean) / sd
        g = refined.value + 0.5 * jnp.sum(u * u, axis=-1)
        ft = g + log_sd + 0.5 * settings.latent * math.log(2 * math.pi)
        vcd = jnp.mean(ft - start.value - entropy)
        of_decoder = jax.grad(lambda decoder: jnp.sum(log_likelihood(decoder, refined.z, x)))(theta["decoder"])
    else:  # the model learns at z0, so that one backward pass gives both gradients
        value, both = jax.vjp(lambda decoder, z: log_joint(decoder, z, x), theta["decoder"], z0)
        of_decoder, slope = both(jnp.ones_like(value))
        start = Chains(z0, value, slope)
    of_mean = start.slope
    of_sd = start.slope * noise.draw + 1 / sd
    if settings.objective == "vcd":
        weight = -(g - baseline)[:, None]
        of_mean = of_mean + (weight * noise.draw + u) / sd
        of_sd = of_sd + (weight * (noise.draw**2 - 1) + u * u - 1) / sd
    gradient = {**pull((of_mean, of_sd))[0], "decoder": of_decoder}
    return Direction(gradient, step_size, g, jnp.stack([jnp.mean(start.value + entropy), vcd, acceptance]))


def rmsprop(settings, theta, moments, gradient, iteration):
    decayed = settings.rate_decay ** ((iteration - 1) // settings.decay_every).astype(jnp.zeros(()).dtype)
    rates = {"mean": settings.rate_mean, "sd": settings.rate_scale, "decoder": settings.rate_model}
    first = iteration == 1
    new = jax.tree.map(lambda m, g: jnp.where(first, g * g, 0.9 * m + 0.1 * g * g), moments, gradient)

    def moved(name):
        return jax.tree.map(lambda p, m, g: p + decayed * rates[name] * g / (1 + jnp.sqrt(m)), theta[name], new[name],
                            gradient[name])

    return {name: moved(name) for name in theta}, new


def noise_of(settings, key):
    normal, uniform = jax.random.split(key)
    steps = settings.steps if settings.refines else 0
    normals = jax.random.normal(normal, (1 + steps, settings.batch, settings.latent))
    return Noise(normals[0], normals[1:], -jax.random.exponential(uniform, (steps, settings.batch)))


def iterate(settings, data, state, iteration, indices):
    """One iteration (counted from 1) on the data of these indices, which are all different."""
    x = data[indices].astype(state.step_size.dtype)
    noise = noise_of(settings, jax.random.fold_in(state.key, iteration))
    shared = iteration <= settings.shared_until
    before = jnp.where(shared, state.shared, state.baseline[indices])
    found = direction(settings, state.theta, x, noise, state.step_size, before)
    theta, moments = rmsprop(settings, state.theta, state.moments, found.gradient, iteration)
    baseline, common = state.baseline, state.shared
    if settings.objective == "vcd":  # used first, updated afterwards
        new = BASELINE_DECAY * before + (1 - BASELINE_DECAY) * found.g
        baseline = baseline.at[indices].set(new, unique_indices=True)
        common = jnp.where(shared, BASELINE_DECAY * common + (1 - BASELINE_DECAY) * jnp.mean(found.g), common)
    return State(theta, moments, found.step_size, baseline, common, state.key, state.totals + found.estimates)


# The loop


def stretch(settings, runs, data, states, iteration, order):
    """As many iterations as `order` (n, B), or (n, R, B) of several runs, has rows, on the device from end to end."""
    one = functools.partial(iterate, settings, data)
    step = one if runs == 1 else jax.vmap(one, in_axes=(0, None, 0))

    def body(carry, indices):
        states, iteration = carry
        return (step(states, iteration, indices), iteration + 1), None

    states = states._replace(totals=jnp.zeros_like(states.totals))
    (states, _), _ = lax.scan(body, (states, iteration), order)
    return states


def random_data(settings, key):
    """Binary and without structure: the time of an iteration does not depend on the values."""
    return jax.random.bernoulli(key, 0.3, (settings.data, settings.pixels)).astype(jnp.uint8)


class Trainer:
    """One run, or R runs side by side by vmap. train(n) goes on where the last call stopped.

    A call of the device covers `length` iterations, which divides the epoch. Between calls the host draws the epoch's
    permutation (on the device) and, at shared_until, hands the common C to every datum.
    """

    def __init__(self, settings, runs=1, seed=1, length=None, data=None):
        self.settings, self.runs = settings, runs
        self.length = length or settings.epoch
        if settings.epoch % self.length != 0:
            raise ValueError(f"a stretch of {self.length} iterations does not divide an epoch of {settings.epoch}")
        if settings.objective == "vcd" and settings.shared_until % self.length != 0:
            raise ValueError(f"a stretch of {self.length} iterations does not divide shared_until")
        self.iteration = 0
        of_data, self.shuffle_key, of_states = jax.random.split(jax.random.key(seed), 3)
        self.data = random_data(settings, of_data) if data is None else data
        keys = jax.random.split(of_states, runs)
        make = functools.partial(initial_state, settings)
        self.states = make(keys[0]) if runs == 1 else jax.vmap(make)(keys)
        self._permute = jax.jit(self._permutation)
        self._stretch = jax.jit(functools.partial(stretch, settings, runs), donate_argnums=1)

    def _permutation(self, key):
        def of_run(key):
            return jax.random.permutation(key, self.settings.data).reshape(self.settings.epoch, self.settings.batch)

        if self.runs == 1:
            return of_run(key)
        return jnp.swapaxes(jax.vmap(of_run)(jax.random.split(key, self.runs)), 0, 1)

    def _next_order(self):
        position = self.iteration % self.settings.epoch
        if position == 0:
            self.order = self._permute(jax.random.fold_in(self.shuffle_key, self.iteration // self.settings.epoch))
        return lax.dynamic_slice_in_dim(self.order, position, self.length)

    def train(self, iterations):
        if iterations % self.length != 0:
            raise ValueError(f"{iterations} iterations are not a multiple of a stretch of {self.length}")
        for _ in range(iterations // self.length):
            order = self._next_order()
            self.states = self._stretch(self.data, self.states, jnp.asarray(self.iteration + 1), order)
            self.iteration += self.length
            if self.iteration == self.settings.shared_until and self.settings.objective == "vcd":
                common = jnp.broadcast_to(self.states.shared[..., None], self.states.baseline.shape)
                self.states = self.states._replace(baseline=jnp.array(common))

    def wait(self):
        jax.block_until_ready(self.states)

    def check_finite(self):
        if not all(bool(jnp.all(jnp.isfinite(leaf))) for leaf in jax.tree.leaves(self.states.theta)):
            raise FloatingPointError(f"a parameter is no longer finite after iteration {self.iteration}")

    def estimates(self):
        """Means over the last stretch's iterations and all runs."""
        totals = jnp.mean(jnp.reshape(self.states.totals, (-1, 3)), axis=0) / self.length
        names = ("elbo", "vcd", "acceptance") if self.settings.refines else ("elbo",)
        found = {name: float(value) for name, value in zip(names, totals)}
        return found | ({"step_size": float(jnp.mean(self.states.step_size))} if self.settings.refines else {})
