"""What the tests share: where things are, small data, small models."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

SOURCE = Path(os.environ.get("HONE_SOURCE", Path(__file__).resolve().parents[2]))
PROGRAM = os.environ.get("HONE_PROGRAM", "hone")
FAKES = Path(os.environ.get("HONE_FAKES", "."))
NO_TORCH = "torch is not installed: tests/python/run.sh BUILD torch-at-hand runs these tests with Debian's (python3-torch), torch with PyPI's"

COVARIANCE = np.array([[1.0, 0.8], [0.8, 2.0]])
PRECISION = np.linalg.inv(COVARIANCE)


def gaussian(z):
    """N(0, COVARIANCE), one point."""
    (a, b), (_, c) = PRECISION
    u, v = a * z[0] + b * z[1], b * z[0] + c * z[1]
    return -0.5 * (u * z[0] + v * z[1]), np.array([-u, -v])


def gaussians(z):
    """The same for a batch, to the bit: a fit's path may turn at the last one."""
    (a, b), (_, c) = PRECISION
    u, v = a * z[:, 0] + b * z[:, 1], b * z[:, 0] + c * z[:, 1]
    return -0.5 * (u * z[:, 0] + v * z[:, 1]), np.stack([-u, -v], axis=1)


def run(*words, check=True):
    """Runs the program, without the sanitizer that Python needs to load a module built for it (run.sh)."""
    own = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
    done = subprocess.run([PROGRAM, *map(str, words)], capture_output=True, text=True, env=own)
    assert not check or done.returncode == 0, done.stderr
    return done


def stripes(n, seed):
    """Binary images of 8 × 8 pixels: a bright row or column, a few pixels flipped."""
    random = np.random.default_rng(seed)
    images = np.zeros((n, 8, 8), np.uint8)
    for image in images:
        line = random.integers(8)
        if random.random() < 0.5:
            image[line] = 1
        else:
            image[:, line] = 1
    return (images ^ (random.random(images.shape) < 0.02)).astype(np.uint8).reshape(n, 64)


SMALL = dict(latent=3, encoder_hidden=(16,), rate_mean=5e-3, rate_scale=5e-3, rate_model=5e-3, report_every=50,
             steps=4, threads=2, progress=False)


INTERRUPTED = """
import os, signal, sys, threading, time
import numpy as np, hone
from hone._progress import Work
signal.signal(signal.SIGINT, signal.default_int_handler)  # which a job in the background ignores
calls, sent = 0, []
def control_c():
    sent.append(time.perf_counter())
    os.kill(os.getpid(), signal.SIGINT)
def call():
    global calls
    calls += 1
    if calls in {at}:
        control_c()
def tell(text, done):
    global calls
    calls += {told!r} in text
    if {told!r} in text and calls in {at}:
        threading.Thread(target=control_c).start()
{before}
{watched}
try:
    {work}
except KeyboardInterrupt:
    print("KeyboardInterrupt")
print("took", time.perf_counter() - sent[0])
print("handler", signal.getsignal(signal.SIGINT) is signal.default_int_handler)
"""


def interrupted(work, *at, told=None, before=""):
    """What a process prints that gets Ctrl-C at these calls of call(), or as often as the work told a text with `told`.

    No delays: a slow machine interrupts the same work. "took" is the time from Ctrl-C to the end.
    """
    watched = "" if told is None else "Work.tell = property(lambda work: tell)"
    code = INTERRUPTED.format(work=work, at=at, told=told or "", before=before, watched=watched)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert "handler True" in done.stdout, done.stdout + done.stderr
    return done.stdout


SLOW = "lambda z: (time.sleep(0.02), (-0.5 * (z * z).sum(-1), -z))[1]"  # seconds for the starts, minutes for all


@pytest.fixture(scope="session")
def result():
    import hone

    return hone.fit(gaussians, dim=2, seed=5, progress=False)


@pytest.fixture(scope="session")
def schools():
    """Eight schools by hone.fit, and the folder of the same fit by the program."""
    import hone

    model = SOURCE / "examples/posteriors/eight_schools_noncentered.stan"
    data = SOURCE / "examples/posteriors/eight_schools/data.json"
    return hone.fit(model, data=data, seed=3, progress=False), model, data


@pytest.fixture(scope="session")
def trained():
    import hone

    return hone.VAE(hidden=(16,), iterations=200, test_every=100, test_points=20, test_samples=50,
                    **SMALL).fit(stripes(400, 1), stripes(60, 2))
