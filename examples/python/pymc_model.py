"""A PyMC model: counts per year, with a rate that falls. Usage: pymc_model.py [FOLDER]"""

import sys
from pathlib import Path

import numpy as np
import pymc as pm

import hone

out = Path(sys.argv[1] if len(sys.argv) > 1 else "out/python")
out.mkdir(parents=True, exist_ok=True)

random = np.random.default_rng(2)
years = np.arange(1900, 1940)
counts = random.poisson(np.exp(1.2 - 0.06 * (years - 1900)))

with pm.Model(coords={"year": years}) as model:
    level = pm.Normal("level", 0, 2)
    slope = pm.Normal("slope", 0, 0.5)
    excess = pm.HalfNormal("excess", 1)
    rate = pm.Deterministic("rate", pm.math.exp(level + slope * (years - 1900)), dims="year")
    pm.NegativeBinomial("counts", mu=rate, alpha=1 / excess, observed=counts, dims="year")

r = hone.fit(model, seed=1, draws=2000)
print(r)
posterior = r.to_datatree()["posterior"]
print(posterior["rate"].mean(("chain", "draw")).to_series().head())

import matplotlib  # noqa: E402

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402

low, middle, high = np.quantile(r["rate"], [0.05, 0.5, 0.95], axis=0)
figure, axis = plt.subplots(figsize=(7, 4), layout="constrained")
axis.fill_between(years, low, high, alpha=0.3, color="#c0392b", label="rate, 5 % to 95 %")
axis.plot(years, middle, color="#c0392b")
axis.plot(years, counts, "o", color="black", markersize=4, label="counts")
axis.set(xlabel="year", ylabel="events", title=f"verdict: {r.verdict}")
axis.legend(frameon=False)
figure.savefig(out / "rates.png", dpi=120)
