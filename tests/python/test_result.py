"""Results: the program's numbers to the bit, ArviZ, files, pickles, pictures."""

import copy
import json
import pickle

import numpy as np
import pytest
from conftest import FAKES, gaussians, run

import hone

ARRAYS = ["draws", "draws_q", "draws_unconstrained", "log_p", "log_q", "log_p_q", "log_q_q"]
TIMES = {"seconds", "fit_seconds", "data", "model"}  # the program says where its files are


def same(a, b):
    assert all(np.array_equal(a._parts[key], b._parts[key], equal_nan=True) for key in ARRAYS)
    assert a.names == b.names and a.coordinates == b.coordinates and a._parts["q"] == b._parts["q"]
    assert {k: v for k, v in a.summary.items() if k not in TIMES} == {k: v for k, v in b.summary.items() if k not in TIMES}


def test_the_program_gives_the_same_bits(tmp_path, schools):
    r, model, data = schools
    run("fit", model, "--data", data, "--seed", 3, "--out", tmp_path / "program", "--quiet")
    same(r, hone.load(tmp_path / "program"))
    r.save(tmp_path / "python")
    for name in ("draws.csv", "draws_q.csv", "draws_unconstrained.csv", "q.json"):
        assert (tmp_path / "program" / name).read_bytes() == (tmp_path / "python" / name).read_bytes(), name
    r.warm_start(folder=tmp_path / "warm")
    run("fit", model, "--data", data, "--seed", 3, "--out", tmp_path / "again", "--quiet", "--warm-start-out",
        tmp_path / "program-warm")
    for name in ("inits_1.json", "inits_4.json", "metric.json"):
        assert (tmp_path / "warm" / name).read_bytes() == (tmp_path / "program-warm" / name).read_bytes(), name


def test_the_program_reads_what_python_saved(tmp_path, schools):
    schools[0].save(tmp_path / "run")
    assert run("check", tmp_path / "run", check=False).returncode == 10  # use-refined
    run("report", tmp_path / "run")
    assert "eight_schools" in (tmp_path / "run" / "report.html").read_text()
    with pytest.raises(hone.InputError, match="not empty"):
        schools[0].save(tmp_path / "run")


def test_load_and_pickle_give_the_same_object(tmp_path, schools, result):
    for k, r in enumerate((schools[0], result)):
        r.save(tmp_path / f"run{k}")
        for other in (hone.load(tmp_path / f"run{k}"), pickle.loads(pickle.dumps(r)), copy.deepcopy(r)):
            same(r, other)
            assert repr(other) == repr(r) and other.warm_start() == r.warm_start()
            assert other.to_datatree().identical(r.to_datatree())


def test_load_says_what_is_wrong(tmp_path, result):
    with pytest.raises(hone.InputError, match="there is no such folder"):
        hone.load(tmp_path / "none")
    with pytest.raises(hone.InputError, match="no config.toml there"):
        hone.load(tmp_path)
    result.save(tmp_path / "run")
    text = (tmp_path / "run" / "draws.csv").read_text()
    (tmp_path / "run" / "draws.csv").write_text(text.replace("\n0", "\nx", 1).replace("\n-", "\nx", 1))
    with pytest.raises(hone.InputError, match="draws.csv: damaged"):
        hone.load(tmp_path / "run")
    (tmp_path / "run" / "draws.csv").unlink()
    with pytest.raises(hone.InputError, match="draws.csv: missing"):
        hone.load(tmp_path / "run")
    (tmp_path / "run" / "summary.json").unlink()
    with pytest.raises(hone.InputError, match="summary.json: missing"):
        hone.load(tmp_path / "run")
    (tmp_path / "run" / "q.json").unlink()  # now it looks like a training run
    with pytest.raises(hone.InputError, match="summary.json: missing"):
        hone.load(tmp_path / "run")


def test_table(schools):
    r = schools[0]
    text, page = repr(r), r._repr_html_()
    assert text.splitlines()[0].split() == ["q", "mean", "q", "sd", "|", "mean", "sd", "mcse", "5%", "50%", "95%"]
    assert f"verdict: {r.verdict}" in text and all(reason in text for reason in r.reasons)
    assert r.verdict in page and page.count("<tr>") == 1 + len(r.names) and "theta.8" in page
    from html.parser import HTMLParser

    HTMLParser().feed(page)
    many = hone.fit(lambda z: (-0.5 * (z * z).sum(-1), -z), dim=60, budget=1, draws=200, progress=False)
    assert "… 20 more" in repr(many) and "… 20 more" in many._repr_html_()


def test_judge_again(result):
    assert result.judge()["verdict"] == result.verdict
    assert result.judge(mean=1e-6, sd=1e-6)["verdict"] == "use-refined"


def test_arviz(schools):
    az = pytest.importorskip("arviz")
    r = schools[0]
    data = r.to_inference_data()
    assert data.posterior["theta"].dims == ("chain", "draw", "theta_dim_0")
    assert data.posterior["theta"].shape == (r.summary["chains"], len(r.draws) // r.summary["chains"], 8)
    assert np.array_equal(data.posterior["theta"].values.reshape(-1, 8), r["theta"])
    assert np.array_equal(data.q["mu"].values.ravel(), r.draws_q[:, r.names.index("mu")])
    assert np.array_equal(data.sample_stats["lp"].values.ravel(), r.log_p)
    assert data.observed_data["y"].shape == (8,)
    table = az.summary(r.to_inference_data(chains=4), var_names=["mu", "tau"])  # R-hat of many short chains says little
    assert abs(table.loc["mu", "mean"] - r["mu"].mean()) < 1e-3 and table.loc["mu", "r_hat"] < 1.01
    axes = az.plot_trace(data, var_names=["mu"])
    assert axes.shape == (1, 2) if az.__version__ < "1" else axes is not None  # 1.x has a class of its own for plots


def test_dims_and_coordinates():
    pytest.importorskip("xarray")
    schools = ["a", "b", "c"]
    r = hone.fit(lambda z: (-0.5 * (z * z).sum(-1), -z), names={"mu": (), "theta": (3,)}, dims={"theta": ["school"]},
                 coords={"school": schools}, progress=False)
    tree = r.to_datatree(chains=2)
    assert tree["posterior"]["theta"].dims == ("chain", "draw", "school")
    assert list(tree["posterior"]["school"].values) == schools
    assert tree["posterior"].attrs["verdict"] == r.verdict and tree["posterior"].sizes["chain"] == 2
    with pytest.raises(ValueError, match=r"chains: \d+ draws do not divide into 7919"):
        r.to_datatree(chains=7919)


def test_loo():
    az = pytest.importorskip("arviz")
    random = np.random.default_rng(4)
    x = random.standard_normal(30)
    y = 1.5 * x + random.standard_normal(30)

    def density(z):
        off = y - z[0] * x
        return -0.5 * off @ off - 0.5 * z @ z / 100, np.array([off @ x]) - z / 100

    r = hone.fit(density, names=["b"], progress=False, draws=800, budget=100_000,
                 constrain=lambda z: {"b": z[0], "log_lik": -0.5 * (y - z[0] * x) ** 2 - 0.5 * np.log(2 * np.pi)})
    data = r.to_inference_data()
    assert data.log_likelihood["log_lik"].shape[2] == 30 and "log_lik" not in data.posterior
    assert data.log_likelihood["log_lik"].shape[:2] == data.posterior["b"].shape
    loo = az.loo(data)
    within = data.log_likelihood["log_lik"].values.reshape(-1, 30)
    elpd, effective = (loo.elpd_loo, loo.p_loo) if az.__version__ < "1" else (loo.elpd, loo.p)
    assert float(elpd) < np.log(np.exp(within).mean(axis=0)).sum() and float(effective) < 3


def test_netcdf_of_both_doors(tmp_path):
    xarray = pytest.importorskip("xarray")
    r = hone.fit(FAKES / "libfake_threads.so", seed=1, budget=1, draws=200, progress=False)
    r.save(tmp_path / "python")
    run("fit", FAKES / "libfake_threads.so", "--seed", 1, "--budget", 1, "--draws", 200, "--out", tmp_path / "program", "--quiet")
    ours, theirs = (xarray.open_datatree(tmp_path / door / "inference_data.nc") for door in ("python", "program"))
    assert set(ours.groups) == set(theirs.groups)
    for group in ("posterior", "q", "sample_stats"):
        assert set(ours[group].data_vars) == set(theirs[group].data_vars), group
        for name in ours[group].data_vars:
            assert ours[group][name].dims == theirs[group][name].dims
            assert np.array_equal(ours[group][name], theirs[group][name], equal_nan=True)


def test_warm_start(schools):
    r = schools[0]
    start = r.warm_start("cmdstan", chains=3)
    assert start["chains"] == 3 and set(start["inits"][0]) == {"mu", "tau", "theta_trans"}
    assert np.array_equal(start["inits"][2]["theta_trans"], r["theta_trans"][2 * (len(r.draws) // 3)])
    metric = np.array(start["metric"]["inv_metric"])
    assert np.allclose(metric, np.cov(r.draws_unconstrained.T), rtol=1e-9)
    json.dumps(start)
    for bad, message in ((dict(sampler="nuts"), "sampler: 'nuts' is not known"), (dict(chains=0), "chains: expected 1")):
        with pytest.raises(ValueError, match=message):
            r.warm_start(**bad)


def test_plot(tmp_path, schools):
    pytest.importorskip("matplotlib")
    figure = schools[0].plot()
    assert len([axis for axis in figure.axes if axis.get_visible()]) == 10  # the parameters proper
    figure.savefig(tmp_path / "fit.png")
    assert (tmp_path / "fit.png").stat().st_size > 10_000
    assert len(schools[0].plot(["mu"]).axes) == 1
    with pytest.raises(KeyError, match="names: 'nu' is not one of"):
        schools[0].plot(["nu"])
    with pytest.raises(ValueError, match="names: expected at least one name"):
        schools[0].plot([])
    with pytest.raises(TypeError, match="names: expected a list of names, found the text 'mu'"):
        schools[0].plot("mu")


def test_results_outlive_their_model():
    def make():
        matrix = np.eye(2)
        return hone.fit(lambda z: (-0.5 * z @ matrix @ z, -matrix @ z), dim=2, draws=200, budget=1, progress=False)

    r = make()
    import gc

    gc.collect()
    assert np.isfinite(r.draws).all() and np.isfinite(r.q.log_prob(r.draws_unconstrained)).all()
    draws = r.draws
    del r
    gc.collect()
    assert np.isfinite(draws).all()


def test_same_draws_as_data_frames(result):
    n = len(result.draws)
    assert result.draws.flags.c_contiguous and result.draws.shape == (n, 2)
    assert gaussians(result.draws)[0].shape == (n,)
