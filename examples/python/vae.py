"""A small VAE of binary images, in scikit-learn's manners. Usage: vae.py [FOLDER]"""

import sys
from pathlib import Path

import numpy as np

import hone

out = Path(sys.argv[1] if len(sys.argv) > 1 else "out/python")
out.mkdir(parents=True, exist_ok=True)


def stripes(n, seed):
    """Images of 8 × 8 pixels: a bright row or column, a few pixels flipped."""
    random = np.random.default_rng(seed)
    images = np.zeros((n, 8, 8), np.uint8)
    for image in images:
        line = random.integers(8)
        if random.random() < 0.5:
            image[line] = 1
        else:
            image[:, line] = 1
    return (images ^ (random.random(images.shape) < 0.02)).astype(np.uint8).reshape(n, 64)


X, X_test = stripes(2000, 1), stripes(100, 2)
vae = hone.VAE(latent=4, hidden=(64,), encoder_hidden=(64,), rate_mean=5e-3, rate_scale=5e-3, rate_model=5e-3,
               iterations=3000, seed=1).fit(X, X_test)
print("ELBO per datum:", vae.summary_["elbo"]["mean"])
print("test log-likelihood per datum:", vae.score_samples(X_test, samples=1000).mean())

z = vae.transform(X_test, refine=8)  # refined draws of z for each image
rows = [X_test[:10], vae.inverse_transform(vae.transform(X_test[:10])), vae.inverse_transform(z[:10]), vae.sample(10)]

import matplotlib  # noqa: E402

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402

figure, axes = plt.subplots(4, 10, figsize=(9, 4), layout="constrained")
for images, axis_row, title in zip(rows, axes, ("data", "mean of q", "refined draw", "sample"), strict=True):
    for image, axis in zip(images, axis_row, strict=True):
        axis.imshow(image.reshape(8, 8), cmap="gray", vmin=0, vmax=1)
        axis.set(xticks=[], yticks=[])
    axis_row[0].set_ylabel(title, rotation=0, ha="right", va="center")
figure.savefig(out / "stripes.png", dpi=120)
vae.save(out / "vae-run")  # hone report, hone eval and hone train --resume take it
