"""hone.check: a second opinion on draws of every kind."""

import html
import importlib.util
import time
import types

import numpy as np
import pytest
from conftest import COVARIANCE, FAKES, gaussians, run

import hone
from hone._draws import given

FAKE = FAKES / "libfake_threads.so"  # mu ~ N(0, 1), tau ~ Exponential(1)
QUICK = dict(progress=False, budget=1, steps=2)


@pytest.fixture(scope="module")
def draws():
    random = np.random.default_rng(3)
    return {"mu": random.standard_normal((2, 200)), "tau": random.exponential(size=(2, 200))}


def test_check():
    random = np.random.default_rng(1)
    good = random.multivariate_normal([0, 0], COVARIANCE, 6000)
    told = hone.check(good, gaussians, progress=False)
    assert told.verdict == "use-draws" and np.abs(told.shift).max() < 0.1
    assert told.refined.shape[1] == 2 and 1000 <= len(told.refined) <= 3000  # of the 6,000 draws, 3,000 are compared
    shifted = hone.check(good + [0.5, 0], gaussians, progress=False)
    assert shifted.verdict == "use-refined" and "the draws' mean of z.1" in shifted.reasons[0]
    assert abs(shifted.shift[0] - 0.5) < 0.1 and shifted.p_value < 0.01
    narrow = hone.check(good * 0.7, gaussians, progress=False)
    assert narrow.verdict == "use-refined" and (np.abs(narrow.sd_ratio - 0.7) < 0.05).all()
    stuck = hone.check(good, lambda z: (-1e8 * (z * z).sum(-1), -2e8 * z), progress=False, budget=20_000)
    assert stuck.verdict != "use-draws" and "verdict:" in repr(stuck)
    timed = hone.check(good[:200], lambda z: (time.sleep(0.01), gaussians(z))[1], progress=False, budget="0.5s", steps=2)
    assert timed.gradients > 0 and timed.refined.shape == (200, 2) and "a larger budget" in timed.notes[-1]
    with pytest.raises(ValueError, match="budget 'soon'"):
        hone.check(good, gaussians, progress=False, budget="soon")
    for bad, message in ((good[:50], "draws: 50 are too few"), (good * np.nan, "draws: draw 1: z.1 is nan"),
                         (good[:, :1] * 0, "draws: coordinate 1 is the same")):
        with pytest.raises(ValueError, match=message):
            hone.check(bad, gaussians if bad.shape[1] == 2 else lambda z: (-0.5 * (z * z).sum(-1), -z), progress=False)
    with pytest.raises(ValueError, match="draws: 3 coordinates, expected the 2 unconstrained"):
        hone.check(random.standard_normal((200, 3)), FAKES / "libfake_threads.so", progress=False)


def test_named_draws_are_on_the_natural_scale(draws):
    told = hone.check(draws, FAKE, progress=False)
    assert told.verdict == "use-draws" and told.names == ["mu", "tau", "twice_tau", "noise"] and told.vcd is None
    assert np.allclose(told["twice_tau"], 2 * told["tau"]) and (told["tau"] > 0).all() and np.isnan(told.k_hat)
    assert np.allclose(np.log(told["tau"]), told.refined[:, 1])
    mean, sd, refined, *_ = told.table["tau"]
    assert np.isclose(mean, draws["tau"].mean()) and np.isclose(sd, draws["tau"].std(ddof=1))
    assert abs(refined - 1) < 4 / np.sqrt(400) and "draws mean" in repr(told)
    wrong = hone.check({**draws, "tau": 2 * draws["tau"], "more": 1}, FAKE, progress=False)
    assert wrong.verdict == "use-refined" and abs(wrong.table["tau"][2] - 1) < 4 / np.sqrt(400)
    with pytest.raises(KeyError, match="'nu' is not one of mu, tau"):
        told["nu"]


class Columns:
    """What CmdStanPy's fits have."""

    def __init__(self, names, values, **more):
        self.column_names, self._values = names, values
        vars(self).update(more)

    def draws(self, **_):
        return self._values


def test_every_kind_of_draws_is_the_same(draws, tmp_path):
    xarray = pytest.importorskip("xarray")
    flat = {name: value.reshape(-1) for name, value in draws.items()}
    table = np.stack([np.zeros(400), flat["tau"], flat["mu"]], axis=1)
    dataset = xarray.Dataset({name: (("chain", "draw"), value) for name, value in draws.items()})
    header, lines = "lp__,tau,mu", [",".join(map(repr, row)) for row in table.tolist()]
    (tmp_path / "draws.csv").write_text("\n".join([header, *lines]))
    dataset.to_netcdf(tmp_path / "draws.nc", group="posterior")
    kinds = [draws, flat, dataset, dataset.stack(sample=["chain", "draw"]), Columns(["lp__", "tau", "mu"], table),
             Columns(["lp__", "tau", "mu"], None, variational_sample=table), tmp_path / "draws.csv", tmp_path / "draws.nc"]
    if hasattr(xarray, "DataTree"):
        kinds += [xarray.DataTree.from_dict({"posterior": dataset}), xarray.DataTree(dataset)]
    try:
        import arviz

        kinds.append(arviz.from_dict(posterior=draws) if hasattr(arviz, "InferenceData") else arviz.from_dict({"posterior": draws}))
    except ImportError:
        pass
    try:
        import pandas

        kinds.append(pandas.DataFrame({**flat, "word": "x"}))
    except ImportError:
        pass
    shapes = {"mu": (), "tau": ()}
    for kind in kinds:
        arrays = given(kind, shapes).arrays()
        assert all(np.array_equal(arrays[name], flat[name]) for name in shapes), type(kind)
    unnamed = np.stack([draws["mu"], np.log(draws["tau"])], axis=2)  # chains, draws, D
    assert np.array_equal(given(unnamed, shapes).values, given(unnamed.reshape(-1, 2), shapes).values)
    expected = hone.check(unnamed, FAKE, **QUICK).refined
    assert np.allclose(hone.check(kinds[-1], FAKE, **QUICK).refined, expected, rtol=1e-9)
    natural = np.stack([flat["mu"], flat["tau"]], axis=1)
    assert np.allclose(hone.check(natural, FAKE, scale="natural", **QUICK).refined, expected, rtol=1e-9)
    named = {"mu": flat["mu"], "tau": np.log(flat["tau"])}
    assert np.array_equal(hone.check(named, FAKE, scale="unconstrained", **QUICK).refined, expected)


def test_the_program_says_the_same(draws, tmp_path):
    lines = [f"{mu!r},{tau!r}" for mu, tau in zip(draws["mu"].ravel().tolist(), 2 * draws["tau"].ravel(), strict=True)]
    (tmp_path / "draws.csv").write_text("\n".join(["mu,tau", *lines]).replace("np.float64(", "").replace(")", ""))
    done = run("check", "--model", FAKE, "--draws", tmp_path / "draws.csv", "--out", tmp_path / "out", check=False)
    assert done.returncode == 10, done.stderr
    told = hone.check(tmp_path / "draws.csv", FAKE, progress=False)
    table = np.loadtxt(tmp_path / "out" / "draws.csv", delimiter=",", skiprows=0, comments="#", dtype=str)
    assert np.array_equal(table[1:, 3:].astype(float), told.draws)
    unwrapped = " ".join(done.stdout.split())
    assert all(reason in unwrapped for reason in told.reasons)


def test_log_q_gives_vcd_and_k_hat():
    random = np.random.default_rng(4)
    noise = random.standard_normal((1000, 2))
    z = noise @ np.linalg.cholesky(COVARIANCE).T * 0.8
    log_q = -0.5 * (noise**2).sum(axis=1)
    table = Columns(["log_q__", "z[1]", "z[2]"], np.column_stack([log_q, z]))
    told = hone.check(table, gaussians, names={"z": 2}, progress=False)
    # KL(q ‖ p) + KL(p ‖ q) of N(0, s² C) and N(0, C): D (s² + 1 / s²) / 2 − D
    exact = 0.64 + 1 / 0.64 - 2
    assert abs(told.vcd[0] - exact) < 4 * told.vcd[1] and told.verdict == "use-refined" and np.isfinite(told.k_hat)
    assert any("k-hat" in note for note in told.notes)
    resampled = Columns(table.column_names, table.draws(), is_resampled=True)
    assert hone.check(resampled, gaussians, names={"z": 2}, **QUICK).vcd is None


@pytest.mark.parametrize("wrong, message", [
    (lambda d: {"mu": d["mu"]}, "draws: 'tau' is missing; expected every parameter"),
    (lambda d: {**d, "tau": d["tau"][:1]}, "draws: 'mu' has 400 draws and 'tau' 200"),
    (lambda d: {**d, "tau": -d["tau"]}, "draws: draw 1: tau is not positive"),
    (lambda d: {**d, "tau": np.full((2, 200), np.inf)}, "draws: draw 1: tau is inf"),
    (lambda d: {**d, "mu": np.zeros((2, 2, 2))}, r"draws\['mu'\]: expected shape \(n,\) or \(chains, draws\)"),
    (lambda d: {**d, "mu": "abc"}, r"draws\['mu'\]: expected real numbers"),
    (lambda d: {"nu": d["mu"]}, "draws: none of the model's variables mu, tau is there, found nu"),
    (lambda d: {k: v[:, :20] for k, v in d.items()}, "draws: 40 are too few"),
    (lambda d: np.zeros((3, 2, 2, 2)), r"draws: expected \(n, D\) or \(chains, draws, D\)"),
    (lambda d: "nowhere.csv", "draws: there is no file nowhere.csv"),
    (lambda d: {"mu": d["mu"] + 50, "tau": d["tau"]}, "the model has a density at only 0 of 400"),
])
def test_bad_draws_are_named(draws, wrong, message):
    with pytest.raises((ValueError, TypeError), match=message):
        hone.check(wrong(draws), FAKE, progress=False)


def test_bad_arguments_are_named(draws):
    with pytest.raises(ValueError, match="scale: 'log' is not known"):
        hone.check(draws, FAKE, scale="log")
    with pytest.raises(ValueError, match="scale: draws for a callable are over its own"):
        hone.check(np.zeros((200, 2)), gaussians, scale="natural")
    with pytest.raises(ValueError, match="no function bs_param_unconstrain"):
        hone.check(draws, FAKES / "libfake_no_threads.so", progress=False)


def test_a_result_is_draws_too(result, schools):
    told = hone.check(result, gaussians, progress=False)
    assert told.verdict == "use-draws" and told.coordinates == result.coordinates
    unnamed = hone.check(result.draws_unconstrained, gaussians, names=result.coordinates, progress=False)
    assert np.array_equal(told.refined, unnamed.refined)
    r, model, data = schools
    told = hone.check(r, model, data, progress=False)
    by_name = {name: r[name] for name in r}
    assert np.array_equal(told.refined, hone.check(by_name, model, data, progress=False).refined)
    assert hone.check(r, model, data, scale="unconstrained", **QUICK).coordinates == r.coordinates


def test_draws_by_name_need_names_of_coordinates(draws, tmp_path):
    (tmp_path / "x.csv").write_text("a,b\n" + "0.5,1\n" * 200)
    named = [draws, tmp_path / "x.csv", str(tmp_path / "x.csv"), Columns(["z[1]", "z[2]"], np.zeros((200, 2)))]
    if importlib.util.find_spec("xarray"):
        import xarray

        named.append(xarray.Dataset({name: (("chain", "draw"), value) for name, value in draws.items()}))
        named += [xarray.DataTree.from_dict({"posterior": named[-1]})] if hasattr(xarray, "DataTree") else []
    for given_by_name in named:
        with pytest.raises(ValueError, match="^names: give those of the coordinates, in the order of log_density's argument, as names="):
            hone.check(given_by_name, gaussians, progress=False)
    assert hone.check(draws, gaussians, names=["mu", "tau"], **QUICK).coordinates == ["mu", "tau"]


def test_a_check_in_a_notebook_and_beside_another(result):
    told = hone.check(result.draws, gaussians, **QUICK)
    shown = told._repr_html_()
    assert f"verdict: {told.verdict}" in shown and "draws mean" in shown and shown.count("<tr>") == 3
    assert all(html.escape(reason) in shown for reason in told.reasons) and "nan" not in shown
    assert told == told and told != hone.check(result.draws, gaussians, **QUICK) and told in [told]
    many = hone.check(np.random.default_rng(0).standard_normal((200, 60)), lambda z: (-0.5 * (z * z).sum(-1), -z), **QUICK)
    assert "… 20 more in table" in many._repr_html_() and "… 20 more in table" in repr(many)


def test_draws_of_one_coordinate():
    draws = np.random.default_rng(0).standard_normal(200)
    assert hone.check(draws, lambda z: (-0.5 * (z * z).sum(-1), -z), progress=False).verdict == "use-draws"


def test_shapes_of_arrays():
    found = given({"a": np.arange(12.0).reshape(2, 3, 2), "b": np.zeros((2, 3))}, {"a": (2,), "b": ()})
    assert found.names == ["a.1", "a.2", "b"] and found.values.shape == (6, 3)
    assert np.array_equal(found.arrays()["a"][4], [8, 9])
    whole = given(types.SimpleNamespace(columns=["a[1,2]", "b"], to_numpy=lambda: np.ones((4, 2))), {})
    assert whole.names == ["a.1.2", "b"]


def test_pymc():
    pymc = pytest.importorskip("pymc", reason="pymc is not installed")
    with pymc.Model() as model:
        low = pymc.Normal("low", 0, 1)
        pymc.Uniform("x", low, low + 2)  # its transform depends on another variable
        pymc.HalfNormal("s", 1, shape=3)
        pymc.Deterministic("twice", 2 * low)
    random = np.random.default_rng(0)
    low = random.standard_normal((2, 300))
    draws = {"low": low, "x": low + 2 * random.random((2, 300)), "s": np.abs(random.standard_normal((2, 300, 3)))}
    told = hone.check(draws, model, progress=False)
    assert told.verdict == "use-draws" and np.allclose(told["twice"], 2 * told["low"])
    assert ((told["x"] > told["low"]) & (told["x"] < told["low"] + 2)).all() and told["s"].shape == (600, 3)
    shifted = hone.check({**draws, "s": 1.5 * draws["s"]}, model, progress=False)
    assert shifted.verdict == "use-refined" and abs(shifted.table["s.1"][2] - np.sqrt(2 / np.pi)) < 4 * 0.6 / np.sqrt(600)
    with pytest.raises(ValueError, match="draws: 'x' of shape .* is missing; expected every free variable"):
        hone.check({"low": low, "s": draws["s"]}, model)
    with pytest.raises(ValueError, match="draws: give them by name"):
        hone.check(np.zeros((200, 5)), model, scale="natural")


def test_stan(schools):
    pytest.importorskip("xarray")
    r, model, data = schools
    try:
        told = hone.check(r.to_datatree(), model, data, progress=False)
    except ValueError as error:
        if "bs_param_unconstrain" in str(error):
            pytest.skip("the compiled Stan model lacks bs_param_unconstrain")
        raise
    assert told.verdict == "use-draws" and told.names == r.names


def test_bridgestan(schools):
    bridgestan = pytest.importorskip("bridgestan", reason="bridgestan is not installed")
    from pathlib import Path

    r, model, data = schools
    libraries = sorted(Path(hone_cache()).glob("**/*.so"), key=lambda path: path.stat().st_mtime)
    for library in libraries:
        try:
            stan = bridgestan.StanModel(str(library), data=str(data), warn=False)
        except (AttributeError, RuntimeError):  # a library without the whole interface, or another model
            continue
        again = hone.fit(stan, seed=3, progress=False)
        assert np.array_equal(again.draws, r.draws)
        return
    pytest.skip("the compiled Stan model lacks parts of BridgeStan's interface")


def hone_cache():
    import os

    return os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "hone", "stan")
