"""hone.fit for callables: what it takes, what it gives, what it says."""

import os
import warnings

import numpy as np
import pytest
from conftest import COVARIANCE, FAKES, SMALL, gaussian, gaussians, stripes

import hone
import hone._progress

QUICK = dict(progress=False, budget=1, draws=200)  # the least that a fit does


def test_moments_and_verdict(result):
    assert result.verdict == "use-q" and result.reasons
    checks = result.summary["checks"]["chains"]  # draws of a chain depend on each other
    n = min(checks["effective"], checks["tail_effective"], len(result.draws)) / 2  # squares more than values
    assert n > 250 and len(result.draws) % result.summary["chains"] == 0
    error = 4 * np.sqrt(np.diag(COVARIANCE) / n)
    assert (np.abs(result.draws.mean(axis=0)) < error).all()
    covariance = np.cov(result.draws.T)
    spread = np.sqrt((COVARIANCE**2 + np.outer(np.diag(COVARIANCE), np.diag(COVARIANCE))) / n)
    assert (np.abs(covariance - COVARIANCE) < 4 * spread).all()


def test_one_point_and_batches_give_the_same_fit(result):
    short = dict(dim=2, seed=5, draws=300, budget=60_000, progress=False)
    single = hone.fit(gaussian, **short)
    assert np.array_equal(single.draws, hone.fit(gaussians, **short).draws)
    told = hone.fit(gaussians, dim=2, seed=5, batched=True, progress=False)
    assert np.array_equal(told.draws, result.draws)


def test_what_is_copied(monkeypatch, result):
    def given(mark):
        kept = []

        def density(z):
            kept.append((z, z.copy()))
            return gaussians(z)

        density.hone_view = mark
        assert np.array_equal(hone.fit(density, dim=2, seed=5, batched=True, progress=False).draws, result.draws)
        return kept

    def refuse(*_):
        raise AssertionError("float64 results in C order need no conversion")

    monkeypatch.setattr("hone._fit.convert", refuse)
    mine, own = given(False), given(True)
    assert all(np.array_equal(z, then) for z, then in mine)
    assert len({z.ctypes.data for z, _ in mine}) == len(mine)
    assert len({z.ctypes.data for z, _ in own}) < len(own) / 2  # the engine's own arrays, again and again


def test_seed_threads_and_options(result):
    assert np.array_equal(hone.fit(gaussians, dim=2, seed=5, threads=3, progress=False).draws, result.draws)
    assert not np.array_equal(hone.fit(gaussians, dim=2, seed=6, progress=False).draws, result.draws)
    other = hone.fit(gaussians, dim=2, objective="kl", family="gaussian", draws=500, starts=3, steps=4, budget=200_000,
                     tolerance_sd=0.5, tolerance_mean=0.5, tolerance_vcd=1.0, progress=False)
    assert other.summary["objective"] == "kl" and other.summary["family"] == "gaussian" and len(other.draws) == 500
    assert other.summary["tolerances"] == {"mean": 0.5, "sd": 0.5, "vcd": 1.0}


def test_init_begins_there():
    seen = []

    def far(z):  # a mode at 1000, which no random start near 0 is told of
        seen.append(z.copy())
        return -0.5 * ((z - 1000) ** 2).sum(), 1000 - z

    r = hone.fit(far, init=[999.0, 1001.0], seed=1, **QUICK)
    assert abs(r.draws.mean() - 1000) < 4 / np.sqrt(r.draws.size)
    assert min(np.abs(z - 1000).max() for z in seen[:20]) < 4
    with pytest.raises(ValueError, match="init: the log density is not finite at point 1"):
        hone.fit(lambda z: (-np.inf if z[0] < 0 else -z.sum(), -np.ones(1)), init=[-1.0], **QUICK)


def test_names_and_constrain():
    def density(z):  # log s ~ N(0, 1), m | s ~ N(0, 1)
        return -0.5 * z @ z, -z

    r = hone.fit(density, names={"m": (), "logs": (2,)}, constrain=lambda z: {"m": z[0], "s": np.exp(z[1:])},
                 **QUICK)
    assert r.coordinates == ["m", "logs.1", "logs.2"] and r.names == ["m", "s.1", "s.2"]
    assert r["s"].shape == (len(r.draws), 2) and (r["s"] > 0).all()
    assert np.allclose(np.log(r["s"]), r.draws_unconstrained[:, 1:])
    assert r["s.1"].shape == (len(r.draws),)
    with pytest.raises(KeyError, match="'t' is not one of m, s"):
        r["t"]


@pytest.mark.parametrize("arguments, message", [
    (dict(), "dim: give the number"),
    (dict(dim=0), "dim: expected a whole number"),
    (dict(dim=2.5), "dim: expected a whole number"),
    (dict(dim=2, init=[1.0, 2.0, 3.0]), "init: points of 3 coordinates, but dim is 2"),
    (dict(init=[np.nan, 1.0]), "init: contains a number that is not finite"),
    (dict(init=[["a", "b"]]), "init: expected real numbers"),
    (dict(init=np.zeros((2, 2, 2))), "init: expected a point"),
    (dict(init=np.zeros((99, 2))), "init: 99 points are more than the 8 starts"),
    (dict(dim=2, draws=50), "draws: '50' is not allowed; expected an integer from 100"),
    (dict(dim=2, draws=[100]), "draws: expected a number or a text, found list"),
    (dict(dim=2, seed=-1), "seed: '-1' is not allowed"),
    (dict(dim=2, family="gausian"), "did you mean 'gaussian'"),
    (dict(dim=2, budget="soon"), "budget 'soon'"),
    (dict(dim=2, names=["a"]), "names: 1 names for 2 coordinates"),
    (dict(names=["a", "a"]), "names: a name appears twice"),
    (dict(names="ab"), "names: expected a list"),
    (dict(names=["a,b", "c"]), "names: 'a,b' is not allowed"),
    (dict(names={"a\nb": 2}), "names: .* is not allowed"),
    (dict(names=["a/b", "c"]), "names: 'a/b' is not allowed; a name has no comma, quote, slash or line break"),
    (dict(names=[" a", "b"]), "names: ' a' is not allowed; a name has no blanks around it"),
    (dict(names=["a", "b "]), "names: 'b ' is not allowed; a name has no blanks"),
    *((dict(names=["a", name]), f"names: '{name}' is not allowed: draws.csv has a column of that name; choose another one")
      for name in ("lp__", "log_p__", "log_q__", "accept_stat__", "divergent__", "energy__", "short_chain__")),
    (dict(names={"chain": 2}), "names: 'chain' is not allowed: ArviZ has a dimension of that name"),
    (dict(names=["a", "draw"]), "names: 'draw' is not allowed: ArviZ has a dimension of that name"),
    (dict(dim=2, constrain=lambda z: {"energy__": z[0]}), "constrain: 'energy__' is not allowed: draws.csv has"),
    (dict(dim=2, constrain=lambda z: {"draw": z}), "constrain: 'draw' is not allowed: ArviZ has"),
    (dict(dim=2, data={}), "data: only Stan models"),
    (dict(dim=2, constrain=lambda z: {}), "constrain returned no values"),
    (dict(dim=2, constrain=lambda z: {"a,b": z}), "constrain: 'a,b.1' is not allowed"),
    (dict(names={"a": 2}, dims={"b": ["k"]}), "dims: 'b' is not one of the variables a"),
    (dict(names={"a": 2}, dims={"a": ["k", "l"]}), r"dims\['a'\]: 2 names for 1 dimensions"),
    (dict(names={"a": 2}, dims={"a": "k"}), r"dims\['a'\]: expected a list"),
    (dict(names={"a": 2}, dims={"a": ["draw"]}), "neither chain nor draw"),
    (dict(names={"a": 2}, dims={"a": ["k"]}, coords={"k": [1, 2, 3]}), r"length 2 here, but coords\['k'\] has 3"),
    (dict(names={"a": 2}, dims={"a": ["k"]}, coords={"k": "xy"}), r"coords\['k'\]: expected a list"),
    (dict(dim=2, constrain=lambda z: {"a": z, "b": z[:1]}, dims={"a": ["k"], "b": ["k"]}), r"length 1 here, but dims\['a'\]"),
    (dict(dim=2, constrain=lambda z: 1), "constrain returned a int; expected a dict"),
    (dict(dim=2, constrain={"a": 1}), "constrain: expected a function, found dict"),
    (dict(dim="2"), "dim: expected a whole number, at least 1, found '2'"),
    (dict(dim=2, batched="yes"), "batched: expected True, False or None, found 'yes'"),
    (dict(names=[]), "names: expected at least one name"),
    (dict(names={"a": "b"}), r"names\['a'\]: expected a shape"),
    (dict(names={"a": (-2,)}), r"names\['a'\]: expected a shape"),
    (dict(init=np.array(["2020-01-01", "2020-01-02"], "datetime64[D]")), "init: expected real numbers, found dtype datetime64"),
    (dict(init=np.ma.array([1.0, 2.0], mask=[0, 1])), "init: has masked values; every number must be known"),
])
def test_bad_arguments_are_named(arguments, message):
    def short(z):
        assert short.calls < 10, "this is found out before the fit"
        short.calls += "dims" in arguments
        return gaussian(z)

    short.calls = 0
    with pytest.raises((ValueError, TypeError), match=message):
        hone.fit(short, **arguments, progress=False)


@pytest.mark.parametrize("later, message", [
    (lambda z: {"a": z[0]}, "constrain returned a; expected a, b, as at first"),
    (lambda z: {}, "constrain returned nothing; expected a, b, as at first"),
    (lambda z: {"a": z[0], "b": z[:1]}, r"constrain's b: expected shape \(2,\), as at first, found \(1,\)"),
    (lambda z: 3, "constrain returned int; expected a, b"),
])
def test_constrain_that_changes_its_mind(later, message):
    calls = iter(range(10_000))
    with pytest.raises(ValueError, match=message):
        hone.fit(gaussian, dim=2, constrain=lambda z: later(z) if next(calls) else {"a": z[0], "b": z}, progress=False,
                 draws=100, budget=1)


def test_arguments_of_a_compiled_model_are_checked_before_the_fit():
    seen = []

    def look(text, done):
        seen.append(text)

    for arguments, message in ((dict(dims={"nothing": ["k"]}), "dims: 'nothing' is not one of the variables"),
                               (dict(dims={"mu": ["k"]}), r"dims\['mu'\]: 1 names for 0 dimensions"),
                               (dict(init=[0.0, 0, 0]), "init: points of 3 coordinates, expected 2: mu, tau"),
                               (dict(data="{x"), "data: not JSON")):
        with pytest.raises(ValueError, match=message), pytest.MonkeyPatch.context() as patch:
            patch.setattr(hone._progress.Work, "tell", look)
            hone.fit(FAKES / "libfake_threads.so", **arguments)
    assert "searching from the starts" not in seen


@pytest.mark.parametrize("factor", [-1, 0.1, 10])
def test_a_gradient_that_is_not_of_the_value_warns(factor):
    def faulty(z):
        value, gradient = gaussians(z)
        return value, gradient * [1, factor]

    for call in (lambda: hone.fit(faulty, names=["a", "tau"], init=[0.3, 0.7], budget=1, draws=100, progress=False),
                 lambda: hone.check(np.random.default_rng(0).standard_normal((200, 2)), faulty, names=["a", "tau"], budget=1, progress=False)):
        with pytest.warns(UserWarning, match="^log_density: the gradient is not that of the value: at the start, in coordinate tau, "
                                             "the gradient is .*, and differences of the value say ") as caught:
            call()
        assert len(caught) == 1 and caught[0].filename == __file__


def test_a_right_gradient_does_not_warn():
    seen = []

    def single(z):  # as JAX computes by default
        z = z.astype(np.float32)
        return np.float32(-1e4) - np.float32(0.5) * (z * z).sum(), -z

    def counted(z):
        seen.append(len(z))
        return -0.5 * (z * z).sum(-1), -z

    def half(z):
        return np.where(z[:, 0] > 0.1, -z[:, 0] - 0.5 * z[:, 1] ** 2, -np.inf), np.stack([-np.ones(len(z)), -z[:, 1]], 1)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for density, dim in ((single, 3), (counted, 60), (half, 2), (lambda z: (-np.abs(z).sum(-1), -np.sign(z)), 4)):
            hone.fit(density, dim=dim, init=np.full(dim, 0.1 + (density is half)), budget=1, draws=100, progress=False)
    assert seen[:5] == [62, 1, 14, 14, 12]  # the shape; a point; twenty coordinates, on both sides


def test_stan_data_of_every_shape():
    from hone._fit import _plain

    given = {"n": np.int64(3), "t": [{"1": 1, "2": 2.5}, {"1": 2, "2": np.array([3.5, 4.5])}], "deep": [[{"1": True}], [{"1": 2}]],
             "pair": {"1": 1, "2": [1.0, 2.0]}, "array": np.array([{"1": 1}, {"1": 2}]), "nothing": [], "m": ((1, 2), (3, 4))}
    assert _plain(given, "data") == {
        "n": 3, "t": [{"1": 1, "2": 2.5}, {"1": 2, "2": [3.5, 4.5]}], "deep": [[{"1": 1}], [{"1": 2}]],
        "pair": {"1": 1, "2": [1.0, 2.0]}, "array": [{"1": 1}, {"1": 2}], "nothing": [], "m": [[1, 2], [3, 4]]}
    with pytest.raises(ValueError, match=r"^data\['t'\]: the lists in it have different lengths; an array of Stan's is rectangular$"):
        hone.fit(FAKES / "libfake_threads.so", data={"t": [[1, 2], [3]]}, progress=False)
    with pytest.raises(ValueError, match=r"^data\['2'\]: the lists"):
        hone.fit(FAKES / "libfake_threads.so", data={"t": [{"1": 1, "2": [[1], [2, 3]]}]}, progress=False)


def test_a_tilde_is_the_users_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "own.so").write_bytes((FAKES / "libfake_threads.so").read_bytes())
    (tmp_path / "own.json").write_text('{"N": 1}')
    r = hone.fit("~/own.so", data="~/own.json", budget=1, draws=100, progress=False)
    assert r.data == {"N": 1} and r.save("~/run") == tmp_path / "run" and hone.load("~/run").data == {"N": 1}
    r.warm_start(folder="~/warm")
    assert (tmp_path / "warm" / "metric.json").exists() and not os.path.exists("~")
    assert hone.check("~/run/draws.csv", "~/own.so", budget=1, progress=False).names == r.names


def test_batches_of_jax_cannot_be_refused():
    jax = pytest.importorskip("jax")
    with pytest.raises(ValueError, match="batched: what from_jax and from_torch make takes batches; leave batched out"):
        hone.fit(hone.from_jax(lambda z: -0.5 * jax.numpy.dot(z, z)), dim=2, batched=False, progress=False)


def test_messages_know_no_command_line(tmp_path):
    X = stripes(100, 1)
    model = hone.VAE(hidden=(4,), iterations=2, folder=tmp_path / "run", **SMALL).fit(X)
    for call in (lambda: hone.fit(gaussians, dim=2, budget="soon"), lambda: hone.fit(FAKES / "libfake_needs_data.so"),
                 lambda: model.fit(X), lambda: hone.VAE(hidden=(4,), iterations=2, **SMALL).fit(X * 2.5),
                 lambda: hone.VAE(hidden=(4,), iterations=2, **SMALL).fit(X).set_params(
                     warm_start=True, iterations=3).fit(stripes(100, 2))):
        with pytest.raises(ValueError) as caught:
            call()
        assert "--" not in str(caught.value) and "<memory>" not in str(caught.value)


@pytest.mark.parametrize("density, message", [
    (lambda z: 1.0, "log_density returned one thing, of type float; expected .value, gradient."),
    (lambda z: (1.0, 2.0, 3.0), "log_density returned a tuple of 3"),
    (lambda z: (0.0, np.zeros(3)), r"log_density's gradient: expected shape \(2,\), found \(3,\)"),
    (lambda z: (np.zeros(2), np.zeros(2)), r"log_density's value: expected shape \(\), found \(2,\)"),
    (lambda z: ("a", z), "log_density's value: expected real numbers"),
    (lambda z: (1j, z), "log_density's value: expected real numbers, found dtype complex128"),
    (lambda z: (0.0, None), "log_density's gradient: expected real numbers"),
])
def test_bad_results_are_named(density, message):
    for batched in (None, False):
        with pytest.raises((ValueError, TypeError), match=message):
            hone.fit(density, dim=2, batched=batched, **QUICK)


class Odd:
    """A density that takes points, as an object, and fails at them."""

    def __call__(self, z):
        a, b = z
        return {}["mine"]


def of_points(z):
    a, b = z
    return -0.5 * (a * a + b * b), np.zeros(2) + {}["mine"]


def of_batches(z):
    a, b = z[:, 0], z[:, 1]
    return -0.5 * (a * a + b * b), unknown  # noqa: F821


@pytest.mark.parametrize("density, kind, message", [
    (of_batches, NameError, "unknown"), (lambda z: (z[:, 0].summ(), -z), AttributeError, "summ"),
    (lambda z: (-0.5 * (z * z).sum(axis=1), -z.T), ValueError, r"log_density's gradient: expected shape \(4, 2\), found \(2, 4\)"),
    (lambda z: (-0.5 * np.einsum("ni,ni->n", z, z), -z[:, :1]), ValueError, r"gradient: expected shape \(4, 2\), found \(4, 1\)"),
    (of_points, KeyError, "mine"), (Odd(), KeyError, "mine")])
def test_a_fault_in_a_density_is_not_hidden_by_the_search_for_batches(density, kind, message):
    with pytest.raises(kind, match=message) as caught:
        hone.fit(density, dim=2, progress=False)
    assert "batched=True or batched=False says what it takes" in caught.value.__notes__[0]


def test_a_density_that_is_nowhere_finite():
    with pytest.raises(hone.InputError, match="not finite at any.*The model says: log_density returned nan"):
        hone.fit(lambda z: (np.nan, z), dim=2, **QUICK)
    for batched in (False, True):
        with pytest.raises(hone.InputError, match="not finite at any.*returned a gradient with nan in it"):
            hone.fit(lambda z: (-0.5 * (z * z).sum(-1), np.nan * z), dim=2, batched=batched, **QUICK)
    with pytest.raises(hone.InputError, match="seems improper"):
        hone.fit(lambda z: (0.0 * z.sum(), 0 * z), dim=1, progress=False)


def test_other_types_of_results():
    for kind in (np.float32, np.int64, list):
        def density(z, kind=kind):
            if kind is list:
                return [float(-0.5 * z @ z), list(-z)]
            return (kind(0) if kind is np.int64 else kind(-0.5 * z @ z)), (-z).astype(np.float32)

        hone.fit(density, dim=2, **QUICK)


def test_the_argument_may_be_kept():
    kept = []

    def density(z):
        kept.append(z)
        return gaussians(z)

    hone.fit(density, dim=2, **QUICK)
    assert all(np.isfinite(z).all() for z in kept)  # not memory that something else has by now


def test_compiled_model():
    r = hone.fit(FAKES / "libfake_threads.so", data={"N": 1}, seed=2, **QUICK)
    assert r.names == ["mu", "tau", "twice_tau", "noise"]
    assert np.allclose(r["twice_tau"], 2 * r["tau"])
    with pytest.raises(hone.InputError, match="no such data file"):
        hone.fit(FAKES / "libfake_threads.so", data="nowhere.json", progress=False)
    with pytest.raises(hone.InputError, match="expected a Stan program"):
        hone.fit("model.txt", progress=False)
    with pytest.raises(hone.InputError, match="not a BridgeStan library"):
        hone.fit(FAKES / "libfake_none.so", progress=False)
    with pytest.raises(ValueError, match="dim: the Stan model says that itself"):
        hone.fit("model.stan", dim=2)
    with pytest.raises(ValueError, match=r"data\['x'\]: has masked values; a Stan program has no missing data"):
        hone.fit("model.so", data={"x": np.ma.array([1, 2], mask=[0, 1])})
    with pytest.raises(TypeError, match=r"data\['x'\]: expected numbers"):
        hone.fit("model.so", data={"x": [None]})
    with pytest.raises(TypeError, match="model: expected a callable"):
        hone.fit(3)


def test_a_bridgestan_model_is_taken_as_it_is(monkeypatch):
    import sys
    import types

    class StanModel:  # what BridgeStan's has
        lib_path, data = str(FAKES / "libfake_threads.so"), '{"N": 1}'

    monkeypatch.setitem(sys.modules, "bridgestan", types.SimpleNamespace(StanModel=StanModel))
    r = hone.fit(StanModel(), seed=2, **QUICK)
    assert np.array_equal(r.draws, hone.fit(StanModel.lib_path, data={"N": 1}, seed=2, **QUICK).draws)
    assert r.data == {"N": 1}
    with pytest.raises(ValueError, match="data: the BridgeStan model says that itself"):
        hone.fit(StanModel(), data={})


def test_q(result):
    z = result.q.sample(50_000, seed=1)
    assert z.shape == (50_000, 2)
    again = np.array(result.summary["parameters"]["z.1"]["q_sd"])
    assert abs(z[:, 0].std() / again - 1) < 0.05
    assert np.allclose(result.q.log_prob(result.draws_unconstrained), result._parts["log_q"], rtol=0, atol=1e-10)
    assert result.q.log_prob(z[0]).shape == ()
    with pytest.raises(ValueError, match=r"z: expected shape \(n, 2\)"):
        result.q.log_prob(np.zeros(3))
    with pytest.raises(ValueError, match="seed: expected a whole number, at least 0, found -1"):
        result.q.sample(3, seed=-1)


@pytest.mark.parametrize("family, dim", [("gaussian", 3), ("gaussian-low-rank", 4), ("gaussian-curvature", 3)])
def test_q_of_every_family(family, dim):
    r = hone.fit(lambda z: (-0.5 * (z * z).sum(-1), -z), dim=dim, family=family, progress=False, budget=400_000)
    assert r.q.family == family
    assert np.allclose(r.q.log_prob(r.draws_unconstrained), r._parts["log_q"], atol=1e-9)


@pytest.mark.parametrize("scipy", [True, False])
def test_q_of_each_form(scipy, monkeypatch):
    """log q and draws, of components by their sds, by a Cholesky factor and by the other factor, against NumPy."""
    import json
    import sys

    from hone._result import Q

    if not scipy:
        monkeypatch.setitem(sys.modules, "scipy.linalg", None)
    cholesky = np.array([[2.0, 0, 0], [0.5, 1.0, 0], [-0.3, 0.2, 0.7]])
    a, b, u, r = np.array([1.0, 2, 3]), np.array([0.5, 1, 2]), np.array([0.6, 0.8, 0]), 3.0
    other = np.diag(a) @ (np.eye(3) + (r - 1) * np.outer(u, u)) @ np.diag(b)
    sds = [0.5, 1.0, 2.0]
    forms = [({}, np.diag(sds)), ({"cholesky": [list(row[: i + 1]) for i, row in enumerate(cholesky)]}, cholesky),
             ({"factor": {"a": list(a), "b": list(b), "u": list(u), "r": [r]}}, other)]
    z = np.random.default_rng(0).standard_normal((5, 3))
    for more, factor in forms:
        part = {"weight": 1.0, "mean": [1.0, 2.0, 3.0], "sd": sds, **more}
        q = Q(json.dumps({"family": "any", "coordinates": ["a", "b", "c"], "components": [part]}))
        covariance, off = factor @ factor.T, z - [1.0, 2.0, 3.0]
        wanted = -0.5 * (np.einsum("ni,ij,nj->n", off, np.linalg.inv(covariance), off)
                         + np.linalg.slogdet(2 * np.pi * covariance)[1])
        assert np.allclose(q.log_prob(z), wanted, rtol=1e-12)
        noise = np.random.default_rng(4)
        noise.choice(1, size=7, p=[1.0])
        assert np.allclose(q.sample(7, seed=4), [1.0, 2.0, 3.0] + noise.standard_normal((7, 3)) @ factor.T)


def test_q_of_many_coordinates_keeps_no_matrix():
    import json

    from hone._result import Q

    d = 200_000  # a matrix would have 320 GB
    part = {"weight": 1.0, "mean": [0.0] * d, "sd": [2.0] * d}
    q = Q(json.dumps({"family": "gaussian-diagonal", "coordinates": [f"z.{i}" for i in range(d)], "components": [part]}))
    assert np.isclose(q.log_prob(np.zeros(d)), -0.5 * d * np.log(2 * np.pi * 4)) and q.sample(2).shape == (2, d)


def test_q_of_two_modes():
    def two(z):
        a, b = -0.5 * ((z - 4) ** 2).sum(-1), -0.5 * ((z + 4) ** 2).sum(-1)
        top = np.logaddexp(a, b)
        return top, np.exp(a - top)[..., None] * (4 - z) + np.exp(b - top)[..., None] * (-4 - z)

    r = hone.fit(two, dim=2, seed=2, starts=16, progress=False)
    assert len(r.q.weights) == 2 and abs(r.q.weights.sum() - 1) < 1e-9
    assert np.allclose(r.q.log_prob(r.draws_unconstrained), r._parts["log_q"], atol=1e-9)
    assert abs((r.q.sample(20_000, seed=1)[:, 0] > 0).mean() - r.q.weights[r.q.means[:, 0] > 0].sum()) < 0.02
