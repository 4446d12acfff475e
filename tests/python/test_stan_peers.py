"""Libraries that hone compiles, loaded by others: BridgeStan's Python client, nutpie and walnutpie."""

import json
import os
import subprocess

import numpy as np
import pytest
from conftest import PROGRAM, SOURCE, run

DATA = SOURCE / "examples/posteriors/eight_schools/data.json"
MISSING = "pip could not install it, so no library of hone's was tried with it"


@pytest.fixture(scope="module")
def schools_library():
    """The library in hone's cache."""
    return run("stan", "compile", SOURCE / "examples/posteriors/eight_schools_noncentered.stan", "--data", DATA,
               "--quiet").stdout.strip()


@pytest.fixture(scope="module")
def shapes(tmp_path_factory):
    """A model with parameters of several shapes, whose density is known in closed form."""
    program = tmp_path_factory.mktemp("shapes") / "shapes.stan"
    program.write_text("""parameters {
  real<lower=0> scale;
  matrix[2, 3] m;
  real x;
}
model {
  print("at ", x);
  if (x > 1.5) reject("x is ", x);
  scale ~ lognormal(0, 1);
  to_vector(m) ~ normal(0, 2);
  target += -x ^ 4 + x * m[1, 2];
}
generated quantities {
  real noise = normal_rng(x, 1);
}
""")
    return run("stan", "compile", program, "--quiet").stdout.strip()


def density(z):
    """log p over (log scale, m by columns, x), up to a constant; its gradient and Hessian."""
    s, m, x = z[0], z[1:7], z[7]
    value = -0.5 * s**2 - np.sum(m**2) / 8 - x**4 + x * m[2]  # the Jacobian takes 1 / scale away
    gradient = np.concatenate([[-s], -m / 4, [-4 * x**3 + m[2]]])
    gradient[3] += x
    hessian = np.diag(np.concatenate([[-1.0], np.full(6, -0.25), [-12 * x**2]]))
    hessian[3, 7] = hessian[7, 3] = 1
    return value, gradient, hessian


def test_bridgestans_client_finds_everything(shapes, capfd):
    bridgestan = pytest.importorskip("bridgestan", reason=MISSING)
    model = bridgestan.StanModel(shapes, warn=False)  # warns if versions differ, which would be an error here
    assert model.model_version() == (2, 9, 0) and "STAN_THREADS=true" in model.model_info()
    z = np.array([0.3, 1.0, -2.0, 0.5, 0.1, 0.7, -1.1, 0.9])
    expected, slope, curvature = density(z)
    constant = model.log_density(z, propto=False) - expected
    other = np.linspace(-1, 1, 8)
    assert np.isclose(model.log_density(other, propto=False) - density(other)[0], constant)
    value, gradient = model.log_density_gradient(z, propto=False)
    assert np.isclose(value - expected, constant) and np.allclose(gradient, slope, atol=1e-12)
    value, gradient, hessian = model.log_density_hessian(z, propto=False)
    assert np.allclose(gradient, slope, atol=1e-12) and np.allclose(hessian, curvature, atol=1e-8)
    value, product = model.log_density_hessian_vector_product(z, other, propto=False)
    assert np.isclose(value - expected, constant) and np.allclose(product, curvature @ other, atol=1e-8)
    without = model.log_density(z, propto=False, jacobian=False)
    assert np.isclose(without, value - 0.3)  # log of scale's Jacobian
    assert "at 0.9" in capfd.readouterr().out  # what the model prints
    with pytest.raises(RuntimeError, match="x is 2"):
        model.log_density(np.concatenate([z[:7], [2.0]]))


def test_bridgestans_client_constrains_and_back(shapes):
    bridgestan = pytest.importorskip("bridgestan", reason=MISSING)
    model = bridgestan.StanModel(shapes, warn=False, capture_stan_prints=False)
    z = np.array([0.3, 1.0, -2.0, 0.5, 0.1, 0.7, -1.1, 0.9])
    x = model.param_constrain(z)
    assert np.allclose(x, np.concatenate([[np.exp(0.3)], z[1:]]))
    assert model.param_names()[:4] == ["scale", "m.1.1", "m.2.1", "m.1.2"]
    assert np.allclose(model.param_unconstrain(x), z)
    text = {"scale": np.exp(0.3), "m": [[1.0, 0.5, 0.7], [-2.0, 0.1, -1.1]], "x": 0.9}
    assert np.allclose(model.param_unconstrain_json(text), z)
    rng = model.new_rng(3)
    start = model.param_initialize(rng, {"m": text["m"]})
    assert np.allclose(start[1:7], z[1:7]) and abs(start[0]) <= 2 and -2 <= start[7] <= 1.5
    starts = np.array([model.param_initialize(rng) for _ in range(200)])
    assert starts.min() >= -2 and starts.max() < 2 and starts[:, 7].max() <= 1.5
    assert starts[:, 0].std() == pytest.approx(2 / np.sqrt(3), rel=0.15)
    with pytest.raises(RuntimeError, match="no starting point was found in 5 attempts; the last one: .*x is 3"):
        model.param_initialize(rng, {"x": 3.0}, max_tries=5)
    assert np.isnan(model.param_constrain(z, include_gq=True, rng=rng)).sum() == 0


def agree(draws, name):
    """Eight schools against its reference draws, within five standard errors of 400 effective draws."""
    reference = json.loads((DATA.parent / "reference.json").read_text())["parameters"][name]
    assert len(draws) >= 2000, name
    assert abs(np.mean(draws) - reference["mean"]) < 5 * reference["sd"] / np.sqrt(400)


def test_nutpie_samples(schools_library):
    nutpie = pytest.importorskip("nutpie", reason=MISSING)
    pytest.importorskip("stanio", reason=MISSING)
    from nutpie.compile_stan import CompiledStanModel

    data = json.loads(DATA.read_text())
    compiled = CompiledStanModel(code="", library=nutpie._lib.StanLibrary(schools_library), dims={}, _coords={},
                                 model=None, data=None).with_data(seed=1, **data)
    trace = nutpie.sample(compiled, draws=500, tune=500, chains=4, cores=2, seed=2, progress_bar=False)
    for name in ("mu", "tau"):
        agree(trace.posterior[name].values.ravel(), name)


def test_walnutpie_samples(schools_library):
    walnutpie = pytest.importorskip("walnutpie", reason=MISSING)
    bridgestan = pytest.importorskip("bridgestan", reason=MISSING)
    model = bridgestan.StanModel(schools_library, str(DATA), warn=False)
    chains = walnutpie.walnuts_stan(model, num_chains=4, seed=5, min_warmup_iter=1000, min_sampling_iter=1000)
    for name in ("mu", "tau"):
        agree(np.concatenate([np.ravel(chain[name]) for chain in chains]), name)


def test_ctrl_c_ends_the_compiler(tmp_path):
    """A compiler that never ends, and a user who does not wait for it."""
    compiler = tmp_path / "slow-compiler"
    compiler.write_text(f"""#!/bin/sh
case "$*" in *--version*) echo slow 1.0; exit 0;; esac
sleep 1000 &
echo $! >> {tmp_path}/children
wait
""")
    compiler.chmod(0o755)
    program = tmp_path / "small.stan"
    program.write_text("parameters {\n  real a;\n}\nmodel {\n  a ~ normal(0, 1);\n}\n")
    environment = dict(os.environ, CXX=str(compiler))
    process = subprocess.Popen([PROGRAM, "fit", program, "--out", tmp_path / "run"], env=environment, text=True,
                               stderr=subprocess.PIPE)
    while not (tmp_path / "children").exists():
        assert process.poll() is None, process.stderr.read()
    process.send_signal(2)
    assert process.wait(20) == 130
    for child in map(int, (tmp_path / "children").read_text().split()):
        status = subprocess.run(["ps", "-o", "stat=", "-p", str(child)], capture_output=True, text=True).stdout
        assert status.strip()[:1] in ("", "Z"), status  # N follows where the tests run with nice
    assert not (tmp_path / "run").exists()
    cache = os.path.join(os.environ["XDG_CACHE_HOME"], "hone", "stan")
    assert not [name for name in os.listdir(cache) if ".making-" in name or ".partial" in name]
