"""Checks of vcd_loop and vcd_evaluate on tiny problems in float64, against second computations:

- the gradient of q that the loop uses: JAX's autodiff of a surrogate, and central differences of the same surrogate;
- the gradient of the model: central differences;
- the refinement, the control variate and RMSProp: NumPy, datum by datum;
- unrolled and rolled loops, and runs side by side or alone: the same numbers;
- importance sampling: quadrature in one dimension.
"""

import dataclasses
import math

import jax
import jax.numpy as jnp
import numpy as np

import vcd_evaluate
import vcd_loop

TINY = {"data": 12, "pixels": 7, "latent": 3, "encoder_hidden": (5, 4), "batch": 4, "steps": 3, "shared_until": 3}


def tiny(model, objective, **changed):
    hidden = (6, 5) if model == "vae" else ()
    return vcd_loop.Settings(model=model, objective=objective, hidden=hidden, **{**TINY, **changed})


def expect_close(what, found, wanted, tolerance):
    found, wanted = np.asarray(found, float), np.asarray(wanted, float)
    worst = float(np.max(np.abs(found - wanted) / (1 + np.abs(wanted))))
    if not worst <= tolerance:
        raise AssertionError(f"{what}: differs by {worst:.3g}, more than {tolerance:.3g}")
    return worst


def flat(tree):
    return np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(tree)])


def problem(settings, seed):
    keys = jax.random.split(jax.random.key(seed), 4)
    theta = vcd_loop.initial_state(settings, keys[0]).theta
    x = jax.random.bernoulli(keys[1], 0.5, (settings.batch, settings.pixels)).astype(float)
    baseline = jax.random.normal(keys[3], (settings.batch,))
    return theta, x, vcd_loop.noise_of(settings, keys[2]), baseline


# NumPy, one datum at a time


def numpy_joint(decoder, z, x):
    """log p(x, z) and its gradient in z, by hand."""
    inputs, kept = np.asarray(z), []
    for weight, bias in decoder[:-1]:
        inputs = np.maximum(inputs @ np.asarray(weight) + np.asarray(bias), 0)
        kept.append(inputs)
    logits = inputs @ np.asarray(decoder[-1][0]) + np.asarray(decoder[-1][1])
    value = float(np.sum(np.where(x > 0.5, -np.logaddexp(0, -logits), -np.logaddexp(0, logits))))
    value -= 0.5 * float(z @ z) + 0.5 * len(z) * math.log(2 * math.pi)
    delta = np.asarray(decoder[-1][0]) @ (x - 1 / (1 + np.exp(-logits)))
    for (weight, _), active in zip(reversed(decoder[:-1]), reversed(kept)):
        delta = np.asarray(weight) @ (delta * (active > 0))
    return value, delta - z


def numpy_refine(settings, decoder, x, z0, step_size, noise):
    """The refined draws, the step size, and the number of proposals that were accepted."""
    z, total = [np.array(row) for row in z0], 0
    for step in range(settings.steps):
        accepted = 0
        for n in range(settings.batch):
            p = np.array(noise.momenta[step, n])
            before = numpy_joint(decoder, z[n], x[n])[0] - 0.5 * float(p @ p)
            point = z[n].copy()
            for _ in range(settings.leapfrog):  # kick, drift, kick: two half kicks in a row make a whole one
                p = p + 0.5 * step_size * numpy_joint(decoder, point, x[n])[1]
                point = point + step_size * p
                p = p + 0.5 * step_size * numpy_joint(decoder, point, x[n])[1]
            after = numpy_joint(decoder, point, x[n])[0] - 0.5 * float(p @ p)
            if float(noise.log_uniforms[step, n]) < after - before:
                z[n], accepted = point, accepted + 1
        total += accepted
        if step < settings.steps - 1:
            step_size *= 1 + 0.01 * (accepted / settings.batch - settings.acceptance) / settings.acceptance
    return np.array(z), step_size, total


# The checks


def surrogate(settings, theta, x, noise, refined, g, baseline):
    """A function of q's networks whose gradient at theta is the direction: z_t and the weight of z0's score are held fixed."""
    held = vcd_loop.encode(theta, x)
    z0 = held[0] + held[1] * noise.draw

    def of(encoder):
        mean, sd = vcd_loop.encode(encoder, x)
        total = jnp.sum(vcd_loop.log_joint(theta["decoder"], mean + sd * noise.draw, x)) + jnp.sum(jnp.log(sd))
        if settings.objective == "vcd":
            log_q0 = vcd_evaluate.log_density(z0, mean, sd)
            log_qt = vcd_evaluate.log_density(refined, mean, sd)
            total += jnp.sum(-(g - baseline) * log_q0 + log_qt)
        return total

    return of


def central_difference(function, tree, along, width=1e-5):
    def moved(by):
        return function(jax.tree.map(lambda a, b: a + by * b, tree, along))

    return (moved(width) - moved(-width)) / (2 * width)


def random_like(tree, seed):
    leaves, shape = jax.tree.flatten(tree)
    keys = jax.random.split(jax.random.key(seed), len(leaves))
    return jax.tree.unflatten(shape, [jax.random.normal(k, leaf.shape) for k, leaf in zip(keys, leaves)])


def inner(a, b):
    return sum(float(jnp.vdot(x, y)) for x, y in zip(jax.tree.leaves(a), jax.tree.leaves(b)))


def check_direction(model, objective):
    settings = tiny(model, objective)
    theta, x, noise, baseline = problem(settings, 5)
    first = {"vae": 0.9, "logistic-mf": 1.8}[model]  # large enough that some proposals are rejected
    found = jax.jit(lambda *a: vcd_loop.direction(settings, *a))(theta, x, noise, jnp.asarray(first), baseline)
    encoder = {"mean": theta["mean"], "sd": theta["sd"]}
    mean, sd = vcd_loop.encode(encoder, x)
    refined, g = np.asarray(mean + sd * noise.draw), np.zeros(settings.batch)
    if settings.refines:
        refined, step_size, accepted = numpy_refine(settings, theta["decoder"], np.asarray(x), refined, first, noise)
        if not 0 < accepted < settings.steps * settings.batch:
            raise AssertionError(f"the problem is too easy or too hard: {accepted} proposals accepted")
        expect_close("the step size", found.step_size, step_size, 1e-12)
        u = (refined - np.asarray(mean)) / np.asarray(sd)
        g = np.array([numpy_joint(theta["decoder"], z, d)[0] for z, d in zip(refined, np.asarray(x))])
        g += 0.5 * np.sum(u * u, axis=1)
        expect_close("g at the refined draws", found.g, g, 1e-9)
    of = surrogate(settings, theta, x, noise, jnp.asarray(refined), jnp.asarray(g), baseline)
    q_found = {name: found.gradient[name] for name in encoder}
    worst = expect_close("q's gradient by autodiff", flat(q_found), flat(jax.grad(of)(encoder)), 1e-9)
    along = random_like(encoder, 6)
    expect_close("q's gradient by differences", inner(q_found, along), central_difference(of, encoder, along), 1e-6)

    def likelihood(decoder):
        return jnp.sum(vcd_loop.log_likelihood(decoder, jnp.asarray(refined), x))

    along = random_like(theta["decoder"], 7)
    expect_close("the model's gradient by differences", inner(found.gradient["decoder"], along),
                 central_difference(likelihood, theta["decoder"], along), 1e-6)
    return f"q's gradient within {worst:.1e} of the surrogate's"


def check_updates():
    """Six iterations over two epochs, past shared_until: C and RMSProp by NumPy from the loop's own gradients."""
    settings = tiny("vae", "vcd", decay_every=2)
    trainer = vcd_loop.Trainer(settings, seed=3)
    start = jax.tree.map(jnp.array, trainer.states)  # train() gives its buffers away
    data, theta, step_size = trainer.data, start.theta, start.step_size
    moments, c, common = jax.tree.map(np.zeros_like, theta), np.zeros(settings.data), 0.0
    rates = {"mean": settings.rate_mean, "sd": settings.rate_scale, "decoder": settings.rate_model}
    direction = jax.jit(lambda *a: vcd_loop.direction(settings, *a))
    for iteration in range(1, 7):
        if (iteration - 1) % settings.epoch == 0:
            trainer.train(settings.epoch)
            order = np.asarray(trainer.order)
        rows = order[(iteration - 1) % settings.epoch]
        noise = vcd_loop.noise_of(settings, jax.random.fold_in(start.key, iteration))
        before = np.full(settings.batch, common) if iteration <= settings.shared_until else c[rows]
        found = direction(theta, data[rows].astype(float), noise, step_size, jnp.asarray(before))
        g, step_size = np.asarray(found.g), found.step_size
        if iteration <= settings.shared_until:
            common = 0.9 * common + 0.1 * g.mean()
            c[:] = common
        else:
            c[rows] = 0.9 * c[rows] + 0.1 * g
        rate = 0.9 ** ((iteration - 1) // 2)
        for name in theta:
            for layer, gradients in enumerate(found.gradient[name]):
                for part in range(2):
                    gradient, old = np.asarray(gradients[part]), moments[name][layer][part]
                    old[...] = gradient**2 if iteration == 1 else 0.9 * old + 0.1 * gradient**2
                    new = np.asarray(theta[name][layer][part]) + rate * rates[name] * gradient / (1 + np.sqrt(old))
                    pair = list(theta[name][layer])
                    pair[part] = jnp.asarray(new)
                    theta[name][layer] = tuple(pair)
    if sorted(order.ravel()) != list(range(settings.data)):
        raise AssertionError("an epoch is not a permutation of the data")
    expect_close("parameters after six iterations", flat(trainer.states.theta), flat(theta), 1e-11)
    worst = expect_close("the control variates", trainer.states.baseline, c, 1e-10)
    return f"control variates within {worst:.1e}"


def check_variants():
    settings = tiny("vae", "vcd")
    trained = {}
    for unroll in ("none", "leapfrog", "all"):
        trainer = vcd_loop.Trainer(dataclasses.replace(settings, unroll=unroll), seed=4)
        trainer.train(6)
        trained[unroll] = flat(trainer.states.theta)
    for unroll in ("leapfrog", "all"):
        expect_close(f"unroll {unroll}", trained[unroll], trained["none"], 1e-11)
    together = vcd_loop.Trainer(settings, runs=2, seed=4)
    key = jax.random.key(9)
    order = together._permutation(key)
    alone = jax.tree.map(lambda a: jnp.array(a[1]), together.states)
    one, two = jnp.asarray(1), vcd_loop.stretch(settings, 2, together.data, together.states, jnp.asarray(1), order)
    single = vcd_loop.stretch(settings, 1, together.data, alone, one, order[:, 1])
    worst = expect_close("a run among others", flat(jax.tree.map(lambda a: a[1], two.theta)), flat(single.theta), 1e-11)
    return f"runs side by side within {worst:.1e}"


def check_evaluation():
    settings = tiny("logistic-mf", "vcd", latent=1, pixels=12)
    evaluation = vcd_evaluate.EvaluationSettings(points=4, samples=20000, burn_in=50, kept=200, chunk_points=2,
                                                 chunk_samples=2000)
    theta = vcd_loop.initial_state(settings, jax.random.key(8)).theta
    theta["decoder"] = jax.tree.map(lambda a: 100 * a, theta["decoder"])
    x = jax.random.bernoulli(jax.random.key(9), 0.5, (4, 12)).astype(jnp.uint8)
    proposals, estimates = vcd_evaluate.evaluation_programs(settings, evaluation)
    mean, sd = proposals(theta, x, jnp.asarray(0.3), jax.random.key(10))
    found = estimates(theta, x, mean, sd, jax.random.key(11))
    grid = np.linspace(-12, 12, 4001)
    worst = 0.0
    for n in range(4):
        joint = np.array([numpy_joint(theta["decoder"], np.array([z]), np.asarray(x[n], float))[0] for z in grid])
        exact = float(np.log(np.sum(np.exp(joint - joint.max())) * (grid[1] - grid[0])) + joint.max())
        for j in range(3):
            se = math.sqrt(max(1 / float(found["effective"][j, n]) - 1 / evaluation.samples, 1e-12))
            errors = abs(float(found["proposals"][j, n]) - exact) / se
            worst = max(worst, errors)
            if not (errors < 4 and se < 0.05):
                raise AssertionError(f"datum {n}, proposal {j + 1}: {errors:.2f} standard errors of {se:.3g} off")
        expect_close("the best of three", found["best"][n], np.max(found["proposals"][:, n]), 0)
        expect_close("the mixture's estimate", found["mixture"][n], exact, 0.05)
        expect_close("the pilot's estimate", found["pilot"][n], exact, 0.05)
    return f"within {worst:.1f} standard errors of the quadrature"


def check_all():
    """Runs every check; prints a line for each. Throws at the first that fails."""
    jax.config.update("jax_enable_x64", True)
    for model in ("vae", "logistic-mf"):
        for objective in ("kl", "hoffman", "vcd"):
            print(f"{model} {objective}: {check_direction(model, objective)}", flush=True)
    print(f"six iterations: {check_updates()}", flush=True)
    print(f"variants: {check_variants()}", flush=True)
    print(f"evaluation: {check_evaluation()}", flush=True)
