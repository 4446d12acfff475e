#!/usr/bin/env python3
"""The installed Python package on a device: a fit, and a VAE with the program's bits.

    package_check.py HONE [ENGINE]     HONE: the program; ENGINE: cuda
"""
import pathlib
import subprocess
import sys
import tempfile

import numpy as np

import hone

program, engine = sys.argv[1], (sys.argv[2:] or ["cuda"])[0]
assert engine != "cuda" or hone.devices(), "this build of the package finds no device"
r = hone.fit(lambda z: (-0.5 * (z * z).sum(-1), -z), dim=3, seed=1, progress=False)
assert r.verdict == "use-q" and r.draws.shape[1] == 3

X = (np.random.default_rng(1).random((500, 36)) < 0.3).astype(np.uint8)
with tempfile.TemporaryDirectory() as name:
    folder = pathlib.Path(name)
    np.save(folder / "x.npy", X)
    (folder / "c.toml").write_text(f'model = "vae"\ndata = "x.npy"\nlatent = 4\nhidden = [32]\nencoder_hidden = [32]\niterations = 300\n'
                                   f'engine = "{engine}"\n')
    subprocess.run([program, "train", folder / "c.toml", "--out", folder / "run", "--quiet"], check=True)
    theirs = hone.load(folder / "run")
    ours = hone.VAE(latent=4, hidden=(32,), encoder_hidden=(32,), iterations=300, engine=engine, progress=False).fit(X)
    assert ours.summary_["engine"] == theirs.summary_["engine"] == engine, (ours.summary_["engine"], theirs.summary_["engine"])
    for key, value in theirs.parameters_.items():
        assert np.array_equal(value, ours.parameters_[key]), f"{key}: not the program's bits"
    assert np.array_equal(theirs.transform(X), ours.transform(X))
print(f"the package on {engine}: a fit, and a VAE with the program's bits")
