"""The package itself: import, types, wheel, messages where something is missing."""

import os
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

import hone


def in_python(code, **environment):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env={**os.environ, **environment})


def test_installed_and_not_the_source_tree():
    assert "site-packages" in hone.__file__ or "HONE_SOURCE" not in os.environ
    assert metadata.version("hone") == hone.__version__


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


def test_unknown_attribute():
    with pytest.raises(AttributeError, match="module 'hone' has no attribute 'fits'"):
        hone.fits
    assert "fit" in dir(hone)
    assert isinstance(hone.devices(), list)
