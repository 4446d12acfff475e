"""Densities of JAX, PyTorch, numba and PyMC."""

import numpy as np
import pytest
from conftest import COVARIANCE, NO_TORCH, PRECISION, gaussians

import hone
from hone._density import convert

QUICK = dict(dim=2, seed=5, draws=1000, budget=400_000, progress=False)


def close(r):
    """The right posterior, within the errors of the draws: last bits differ, and with them a fit's path."""
    assert r.verdict in ("use-q", "use-refined")
    n = len(r.draws)
    assert (np.abs(r.draws.mean(axis=0)) < 4 * np.sqrt(np.diag(COVARIANCE) / n)).all()
    assert (np.abs(r.draws.var(axis=0) / np.diag(COVARIANCE) - 1) < 4 * np.sqrt(2 / n)).all()


@pytest.fixture
def in_place(monkeypatch):
    """The engine reads all results where they are: a conversion fails."""
    def refuse(*_):
        raise AssertionError("converted")

    monkeypatch.setattr("hone._fit.convert", refuse)


def test_jax(in_place):
    jax = pytest.importorskip("jax", reason="jax is not installed")
    import jax.numpy as jnp

    def log_p(z):
        return -0.5 * z @ jnp.asarray(PRECISION) @ z

    density = hone.from_jax(log_p)
    value, gradient = density(np.ones((5, 2)))
    assert value.dtype == gradient.dtype == np.float64 and np.allclose(value, gaussians(np.ones((5, 2)))[0], rtol=1e-14)
    close(hone.fit(density, **QUICK))
    close(hone.fit(hone.from_jax(lambda z: -0.5 * jnp.einsum("ni,ij,nj->n", z, PRECISION, z), batched=True), **QUICK))
    assert not jax.config.jax_enable_x64  # left as it was
    single = hone.from_jax(log_p, x64=False)(np.ones((3, 2)))[0]
    assert single.dtype == np.float64 and abs(single[0] - value[0]) < 1e-5
    own = convert(jax.value_and_grad(log_p)(np.ones(2)), 1, 2, False)  # JAX's own arrays, in its own precision
    assert own[1].dtype == np.float64 and np.allclose(own[1][0], gradient[0], rtol=1e-5)
    with pytest.raises(TypeError, match="from_jax: expected a function"):
        hone.from_jax(3)

    def raises(z):
        raise RuntimeError("inside a trace")

    with pytest.raises(RuntimeError, match="inside a trace"):
        hone.fit(hone.from_jax(raises), **QUICK)


def test_jax_compiles_few_programs():
    from hone._density import Sizes, padded_size

    chosen = Sizes()
    assert [chosen.of(4000) for _ in range(10)] == [4096] * 8 + [4000] * 2  # it comes again and again
    made = {chosen.of(n) for _ in range(30) for n in range(3000, 3100)}
    assert len(made - {padded_size(n) for n in range(3000, 3100)}) <= 8

    sizes = {padded_size(n) for n in range(1, 4001)}
    assert len(sizes) <= 20 and all(padded_size(n) >= n for n in range(1, 5000))
    assert max((padded_size(n) - n) / n for n in range(257, 5000)) <= 0.25


def test_torch(in_place):
    torch = pytest.importorskip("torch", reason=NO_TORCH)
    matrix = torch.tensor(PRECISION)
    close(hone.fit(hone.from_torch(lambda z: -0.5 * z @ matrix @ z), **QUICK))

    z = torch.ones(2, dtype=torch.float64, requires_grad=True)
    value = -0.5 * z @ matrix @ z
    value.backward()
    own = convert((value, z.grad), 1, 2, False)  # tensors, one of which still has its graph
    assert np.allclose(own[1][0], -PRECISION @ np.ones(2))


def test_numba():
    numba = pytest.importorskip("numba", reason="numba is not installed")
    matrix = PRECISION.copy()

    @numba.njit
    def density(z):
        w = matrix @ np.ascontiguousarray(z)
        return -0.5 * (w @ z), -w

    close(hone.fit(density, **QUICK))


def test_names_of_pymc_that_would_be_lost():
    pymc = pytest.importorskip("pymc", reason="pymc is not installed")
    for name, observed, message in (("chain", "y", "model: 'chain' is not allowed: ArviZ has a dimension of that name"),
                                    ("energy__", "y", "model: 'energy__' is not allowed: draws.csv has a column"),
                                    ("a ", "y", "model: 'a ' is not allowed; a name has no blanks around it"),
                                    ("a", "draw", "model: 'draw' is not allowed: ArviZ has")):
        with pymc.Model() as model:
            pymc.Normal(observed, pymc.Normal(name), observed=[0.5])
        with pytest.raises(ValueError, match=message):
            hone.fit(model, progress=False)


def test_pymc(tmp_path):
    pymc = pytest.importorskip("pymc", reason="pymc is not installed")
    y = np.array([28.0, 8, -3, 7, -1, 1, 18, 12])
    sigma = np.array([15.0, 10, 16, 11, 9, 11, 10, 18])
    with pymc.Model(coords={"school": list("ABCDEFGH")}) as model:
        mu = pymc.Normal("mu", 0, 5)
        tau = pymc.HalfNormal("tau", 5)
        raw = pymc.Normal("raw", 0, 1, dims="school")
        theta = pymc.Deterministic("theta", mu + tau * raw, dims="school")
        pymc.Normal("y", theta, pymc.Data("sigma", sigma, dims="school"), observed=y, dims="school")
    r = hone.fit(model, seed=1, progress=False)
    assert (r["tau"] > 0).all() and r["theta"].shape == (len(r.draws), 8)
    assert np.allclose(r["theta"], r["mu"][:, None] + r["tau"][:, None] * r["raw"])
    z = r.draws_unconstrained[0]
    point = dict(mu=z[0], tau_log__=z[1], raw=z[2:])
    assert abs(model.compile_logp()(point) - r.log_p[0]) < 1e-9
    assert np.isclose(np.exp(z[1]), r["tau"][0])
    assert abs(r["mu"].mean() - 4.4) < 0.5  # posteriordb's eight schools has a wider prior; this is the centre of both
    tree = r.to_datatree()
    posterior, likelihood = tree["posterior"], tree["log_likelihood"]["y"]
    assert likelihood.dims == ("chain", "draw", "school") and list(likelihood["school"].values) == list("ABCDEFGH")
    normal = -0.5 * ((y - r["theta"]) / sigma) ** 2 - np.log(sigma) - 0.5 * np.log(2 * np.pi)
    assert np.allclose(likelihood.values.reshape(-1, 8), normal)
    assert tree["observed_data"]["y"].dims == ("school",) and np.array_equal(tree["observed_data"]["y"], y)
    assert np.array_equal(tree["constant_data"]["sigma"], sigma)
    arviz = pytest.importorskip("arviz")
    assert np.isfinite(float(getattr(arviz.loo(r.to_inference_data(), var_name="y"), "p_loo", 1)))
    assert posterior["theta"].dims == ("chain", "draw", "school") and list(posterior["school"].values) == list("ABCDEFGH")
    from pymc.initial_point import make_initial_point_fns_per_chain

    start = r.warm_start("pymc", chains=2)
    begin = make_initial_point_fns_per_chain(model=model, overrides=start["initvals"], jitter_rvs=set(), chains=start["chains"])
    for k, point in enumerate(begin):  # on the unconstrained scale
        made = np.concatenate([np.ravel(point(0)[name]) for name in ("mu", "tau_log__", "raw")])
        assert np.allclose(made, r.draws_unconstrained[k * (len(r.draws) // 2)])
    r.save(tmp_path / "run")
    assert hone.load(tmp_path / "run").to_datatree().identical(r.to_datatree())
    for argument, value in dict(data={}, dim=10, names=["a"], constrain=dict, batched=True).items():
        with pytest.raises(ValueError, match=f"{argument}: the PyMC model says that itself"):
            hone.fit(model, **{argument: value})
    with pytest.raises(ValueError, match=r"dims\['theta'\]: 2 names for 1 dimensions"):
        hone.fit(model, dims={"theta": ["a", "b"]})
    with pytest.raises(ValueError, match=r"init: points of 2 coordinates; the PyMC model has 10 .*: mu, tau_log__, raw \(8,\)"):
        hone.fit(model, init=[0.0, 0.0])

    class Own(pymc.Model):
        pass

    with Own() as own:
        pymc.Normal("x", 0, 1)
    assert hone.fit(own, budget=1, draws=100, progress=False).names == ["x"]
    with pymc.Model() as counts:
        pymc.Poisson("k", 3)
    with pytest.raises(ValueError, match="discrete variables"):
        hone.fit(counts)
