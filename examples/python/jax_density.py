"""A winding ridge and a regression, written in JAX: compiled, vectorised and differentiated. Usage: jax_density.py [FOLDER]"""

import sys
from pathlib import Path

import jax.numpy as jnp
import numpy as np

import hone

out = Path(sys.argv[1] if len(sys.argv) > 1 else "out/python")
out.mkdir(parents=True, exist_ok=True)


def ridge(z):
    return -0.5 * z[0] ** 2 - 2 * (z[1] - jnp.sin(2 * z[0])) ** 2


r = hone.fit(hone.from_jax(ridge), names=["x", "y"], seed=1)
print(r)  # no Gaussian winds: the verdict says so

random = np.random.default_rng(0)
x = random.standard_normal((200, 3))
y = x @ [1.0, -2.0, 0.5] + 0.7 * random.standard_normal(200)


def regression(z):  # coefficients and log sigma, with standard normal priors
    slope, log_sigma = z[:3], z[3]
    off = (y - x @ slope) * jnp.exp(-log_sigma)
    return -0.5 * off @ off - len(y) * log_sigma - 0.5 * z @ z


s = hone.fit(hone.from_jax(regression), names={"slope": (3,), "log_sigma": ()}, seed=1,
             constrain=lambda z: {"slope": z[:3], "sigma": np.exp(z[3])})
print(s)

import matplotlib  # noqa: E402

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402

figure, axes = plt.subplots(1, 2, figsize=(9, 4), sharex=True, sharey=True, layout="constrained")
for axis, draws, title in zip(axes, (r.draws_q, r.draws), ("q", "refined"), strict=True):
    axis.plot(*draws.T, ".", markersize=2, alpha=0.4, color="#1f4e99" if title == "q" else "#c0392b")
    axis.set(title=title, xlabel="x", xlim=(-4, 4), ylim=(-3, 3))
axes[0].set_ylabel("y")
figure.suptitle(f"a winding ridge; verdict: {r.verdict}")
figure.savefig(out / "ridge.png", dpi=120)
