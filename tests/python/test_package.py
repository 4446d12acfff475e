"""The package itself: import, types, wheel, messages where something is missing."""

import os
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest
from conftest import FAKES

import hone


def in_python(code, **environment):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env={**os.environ, **environment})


def test_installed_and_not_the_source_tree():
    assert "site-packages" in hone.__file__ or "HONE_SOURCE" not in os.environ
    assert metadata.version("hone-vi") == hone.__version__


def test_import_is_fast_and_loads_no_optional_package():
    code = ("import time, sys; import numpy; t = time.perf_counter(); import hone; print(time.perf_counter() - t);"
            "print([m for m in ('sklearn', 'jax', 'torch', 'arviz', 'xarray', 'matplotlib', 'pymc') if m in sys.modules])")
    seconds, loaded = in_python(code).stdout.split("\n")[:2]
    assert loaded == "[]"
    assert float(seconds) < 0.3


def test_typed():
    folder = Path(hone.__file__).parent
    assert (folder / "py.typed").exists()
    stub = (folder / "_hone.pyi").read_text()
    assert "class TrainedNetworks" in stub and "def fit(" in stub


TYPED = """
import numpy as np
import hone

def log_p(z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return -0.5 * (z * z).sum(-1), -z

r = hone.fit(log_p, dim=2, budget="30s", names={"theta": (2,)})
verdict: str = r.verdict
first: np.ndarray = r["theta"][0] + r.q.sample(5)
p: float = hone.check(r.draws, hone.from_jax(log_p)).p_value
vae: hone.VAE = hone.VAE(2, (4,), rate_mean=1e-3).fit(np.zeros((9, 3)), X_test=np.zeros((9, 3)))
version, devices = hone.__version__ + "", hone.devices()[0].upper()
"""
WRONG = {  # line → what mypy says
    "hone.fit(log_p, dimension=2)": 'Unexpected keyword argument "dimension" for "fit"',
    "hone.VAE(layers=3)": 'Unexpected keyword argument "layers" for "VAE"',
    "hone.VAE(latent='two')": 'Argument "latent" to "VAE" has incompatible type',
    "hone.fits": "Module has no attribute",
    "r.verdict + 1": "Unsupported operand types for +",
}


def test_types_as_mypy_sees_them(tmp_path):
    """The installed package, strictly: right code passes, and each wrong line is found."""
    pytest.importorskip("mypy", reason="mypy is not installed")

    def found(text):
        (tmp_path / "own.py").write_text(text)
        words = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(tmp_path / "cache"), "own.py"]
        return [line for line in subprocess.run(words, capture_output=True, text=True, cwd=tmp_path).stdout.splitlines()
                if " error: " in line or not line.startswith("own.py")]

    assert found(TYPED) == ["Success: no issues found in 1 source file"]
    told = found(TYPED + "\n".join(WRONG))
    assert len(told) == len(WRONG) + 1 and all(part in line for part, line in zip(WRONG.values(), told[:-1], strict=True)), told


def test_wheel_is_small_and_needs_no_other_library():
    wheel = os.environ.get("HONE_WHEEL")
    if not wheel:
        pytest.skip("no wheel was built for this run")
    assert Path(wheel).stat().st_size < 15e6
    shown = subprocess.run([sys.executable, "-m", "auditwheel", "show", wheel], capture_output=True, text=True).stdout
    assert "manylinux_2" in shown.replace("\n", " ").split("is consistent with the following platform tag")[1]
    tag = "abi3" if sys.version_info >= (3, 12) else f"cp{sys.version_info[0]}{sys.version_info[1]}-cp"
    assert tag in Path(wheel).name


@pytest.mark.parametrize("package, call", [
    ("jax", "hone.from_jax(lambda z: 0)"), ("torch", "hone.from_torch(lambda z: 0)"),
    ("matplotlib", "r.plot()"), ("xarray", "r.to_datatree()"), ("arviz", "r.to_inference_data()")])
def test_a_missing_package_is_named(package, call):
    code = (f"import sys; sys.modules['{package}'] = None\nimport hone\n"
            "r = hone.fit(lambda z: (-0.5 * z @ z, -z), dim=1, budget=1, draws=100, progress=False)\n"
            f"try: {call}\nexcept ImportError as error: print(error)")
    told = in_python(code)
    assert f"{package}, which is not installed: pip install {package}" in told.stdout, told.stderr


def test_estimators_without_scikit_learn():
    code = ("import sys; sys.modules['sklearn'] = sys.modules['sklearn.base'] = None\nimport numpy as np, hone, pickle\n"
            "X = (np.random.default_rng(0).random((50, 6)) < 0.5).astype(np.uint8)\n"
            "v = hone.VAE(2, (4,), encoder_hidden=(4,), iterations=5, progress=False).fit(X)\n"
            "print(v.fit_transform(X).shape, pickle.loads(pickle.dumps(v)).transform(X).shape, v)\n"
            "for bad in (X[:, :3], X.astype(float) * np.nan, X[0], X.astype(str)):\n"
            "    try: v.transform(bad)\n    except (TypeError, ValueError) as error: print('X' in str(error))")
    told = in_python(code)
    assert told.stdout.startswith("(50, 2) (50, 2) VAE(latent=2, hidden=(4,)") and told.stdout.count("True") == 4, told.stderr


def test_stan_is_installed_from_python(tmp_path):
    with pytest.raises(hone.InputError, match="expected a wheel of httpstan"):
        hone.install_stan(tmp_path / "other.whl", progress=False)
    told = hone._hone.in_python("to install it:\n  hone stan install\nor give the wheel: hone stan install --wheel FILE. pip says")
    assert told == "to install it:\n  hone.install_stan()\nor give the wheel: hone.install_stan(wheel=FILE). pip says"


def test_compiling_names_no_command_of_the_program(tmp_path):
    """Without Stan's compiled headers the progress bar says what makes the next time faster."""
    known = Path(os.environ["XDG_CACHE_HOME"]) / "hone" / "stan"
    stan = next((folder for folder in known.glob("httpstan-*") if (folder / "httpstan" / "stanc").exists()), None)
    if stan is None:
        pytest.skip("today's Stan is not installed: pip could not reach httpstan")
    (tmp_path / "hone" / "stan").mkdir(parents=True)
    (tmp_path / "hone" / "stan" / stan.name).symlink_to(stan.resolve())
    (tmp_path / "a.stan").write_text("parameters { real a; } model { a ~ normal(0, 1); }")
    code = ("import hone\nfrom hone._progress import Work\n"
            "def tell(text, done):\n"
            "    if text.startswith('compiling'): print(text); raise KeyboardInterrupt\n"
            "Work.tell = property(lambda work: tell)\n"
            f"try: hone.fit({str(tmp_path / 'a.stan')!r})\nexcept KeyboardInterrupt: pass")
    told = in_python(code, XDG_CACHE_HOME=str(tmp_path))
    assert "less after another 'hone.install_stan()'" in told.stdout, told.stdout + told.stderr


def test_threads_are_as_many_as_the_process_may_use():
    """Not as many as the machine has."""
    code = ("import os, threading, numpy as np\nos.sched_setaffinity(0, {min(os.sched_getaffinity(0))})\n"
            "import hone\nfrom hone import _estimators, _hone\n"
            "X = (np.arange(120).reshape(20, 6) % 3 == 0).astype(np.uint8)\n"
            "v = hone.VAE(2, (4,), encoder_hidden=(4,), iterations=2, progress=False).fit(X)\n"
            "asked, own = [], _hone.TrainedNetworks\n"
            "_hone.TrainedNetworks = lambda *given: asked.append(given[-1]) or own(*given)\n"
            "v._networks = {}; v.transform(X); print(asked)\n"
            f"fake = {str(FAKES / 'libfake_threads.so')!r}; quick = dict(budget=1, steps=2, progress=False)\n"
            "print(['threads = 1' in hone.fit(fake, draws=100, **quick)._parts['config']])\n"
            "before, most = len(os.listdir('/proc/self/task')), []\n"
            "def count(done=threading.Event()):\n"
            "    while not done.wait(0.001): most.append(len(os.listdir('/proc/self/task')))\n"
            "done = threading.Event(); counting = threading.Thread(target=count, args=(done,)); counting.start()\n"
            "hone.check(np.random.default_rng(1).standard_normal((400, 2)), fake, scale='unconstrained', **quick)\n"
            "done.set(); counting.join(); print([max(most) - before])")
    told = in_python(code)
    assert told.stdout == "[1]\n[True]\n[1]\n", told.stdout + told.stderr  # the last: the thread that counts


def test_unknown_attribute():
    with pytest.raises(AttributeError, match="module 'hone' has no attribute 'fits'"):
        hone.fits
    assert "fit" in dir(hone)
    assert isinstance(hone.devices(), list)
