"""Results: the program's numbers to the bit, ArviZ, files, pickles, pictures."""

import copy
import html
import json
import pickle
import shutil
from pathlib import Path

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


def test_a_variable_that_is_called_as_a_dimension_of_arviz(tmp_path):
    """No check refuses names of a Stan program before the fit: their draws come back, and a message says what does not."""
    pytest.importorskip("xarray")
    r = hone.fit(FAKES / "libfake_threads.so", progress=False, budget=1, draws=100)
    named = hone.Result({**r._parts, "names": ["chain", *r.names[1:]]})
    with pytest.raises(ValueError, match="'chain' is the name of a variable, and ArviZ has a dimension of that name: rename it"):
        named.to_datatree() if hasattr(pytest.importorskip("xarray"), "DataTree") else named._groups(None)
    with pytest.warns(UserWarning, match="inference_data.nc is left out: 'chain' is the name of a variable"):
        named.save(tmp_path / "run")
    assert np.array_equal(hone.load(tmp_path / "run")["chain"], r["mu"]) and not (tmp_path / "run" / "inference_data.nc").exists()


def test_arguments_of_tables_are_named(result):
    for arguments, message in ((dict(width="a"), "width: expected a whole number, at least 1, found 'a'"),
                               (dict(width=0), "width: expected a whole number, at least 1, found 0"),
                               (dict(show=0), "show: expected a name or a list of names, found 0"),
                               (dict(show=["z", 1]), r"show: expected a name or a list of names, found \['z', 1\]")):
        with pytest.raises((TypeError, ValueError), match=message):
            result.table(**arguments)
    assert result.table(np.array(["z"])) == result.table(("z",)) == result.table("z")


def test_the_program_gives_the_same_bits(tmp_path, schools):
    r, model, data = schools
    run("fit", model, "--data", data, "--seed", 3, "--out", tmp_path / "program", "--quiet")
    loaded = hone.load(tmp_path / "program")
    same(r, loaded)
    for result, folder in ((r, "python"), (loaded, "loaded")):
        result.save(tmp_path / folder)
        for name in ("draws.csv", "draws_q.csv", "draws_unconstrained.csv", "q.json"):
            assert (tmp_path / "program" / name).read_bytes() == (tmp_path / folder / name).read_bytes(), name
    r.warm_start(folder=tmp_path / "warm")
    run("fit", model, "--data", data, "--seed", 3, "--out", tmp_path / "again", "--quiet", "--warm-start-out",
        tmp_path / "program-warm")
    for name in ("inits_1.json", "inits_4.json", "metric.json"):
        assert (tmp_path / "warm" / name).read_bytes() == (tmp_path / "program-warm" / name).read_bytes(), name


def test_wrong_data_in_memory_are_called_data(schools):
    _, model, data = schools
    given = {**json.loads(data.read_text()), "sigma": [-1.0] * 8}
    with pytest.raises(hone.InputError, match=r"^data: variable 'sigma' of the data block is -1 at \[1\]; expected at least 0"):
        hone.fit(model, data=given, progress=False)


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
    columns = "q mean q sd | mean sd mcse 5% 50% 95% ESS R-hat"
    assert r.table(width=120).splitlines()[0].split() == columns.split()
    assert all(len(line) <= 80 for line in text.splitlines())
    assert f"verdict: {r.verdict}" in text and all(reason[:50] in text for reason in r.reasons)
    assert r.verdict in page and page.count("<tr>") == 1 + len(r.names) and "theta.8" in page
    assert len(r.table("theta").splitlines()) == 9 and len(r.table(["mu", "theta[2]"]).splitlines()) == 4
    with pytest.raises(hone.InputError, match="'mu'"):
        r.table("mew")
    from html.parser import HTMLParser

    HTMLParser().feed(page)
    many = hone.fit(lambda z: (-0.5 * (z * z).sum(-1), -z), dim=60, budget=1, draws=200, progress=False)
    count = 'z[1..60]: 60 values, table("z")'
    assert count in repr(many) and html.escape(count) in many._repr_html_()
    assert len(many.table("z").splitlines()) == 61


def test_one_variable_or_one_element(schools):
    r = schools[0]
    assert r["theta"].shape == (len(r.draws), 8) and r["mu"].shape == (len(r.draws),)
    assert np.array_equal(r["theta.2"], r["theta"][:, 1]) and np.array_equal(r["theta[2]"], r["theta"][:, 1])
    with pytest.raises(KeyError, match="'nu' is not one of mu"):
        r["nu"]


def test_wrong_arguments_are_named(result):
    for call, message in ((lambda: result.q.sample(-1), "n: expected a whole number, at least 0, found -1"),
                          (lambda: result.to_datatree(chains="4"), "chains: expected a whole number"),
                          (lambda: result.warm_start(chains=1.5), "chains: expected a whole number"),
                          (lambda: result.judge(sd="a"), "sd: expected a number above 0, found 'a'")):
        with pytest.raises(ValueError, match=message):
            call()
    with pytest.raises(TypeError, match="z: expected real numbers, found dtype"):
        result.q.log_prob("a")


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
    assert data.observed_data["y"].shape == (8,) and list(data.observed_data) == ["y"]
    assert set(data.constant_data) == {"J", "sigma"}
    for name, kind in {"acceptance_rate": "f", "energy": "f", "diverging": "b", "lp": "f"}.items():
        assert data.sample_stats[name].shape == data.posterior["mu"].shape and data.sample_stats[name].dtype.kind == kind
    assert 0.7 < float(data.sample_stats["acceptance_rate"].mean()) < 1
    # Energy is −log p before the step plus a momentum's ½|p|², which is a χ² of 10 degrees of freedom over 2.
    kinetic = float((data.sample_stats["energy"] + data.sample_stats["lp"]).mean())
    assert abs(kinetic - 5) < 4 * np.sqrt((5 + 2 * r.log_p.var()) / len(r.log_p))
    assert az.plot_energy(data) is not None
    table = az.summary(data, var_names=["mu", "tau", "theta"], round_to="none")
    assert abs(table.loc["mu", "mean"] - r["mu"].mean()) < 1e-3 and (table["r_hat"].astype(float) < 1.01).all()
    for name in ("mu", "tau"):  # the file has half of the states
        assert 0.4 < float(table.loc[name, "ess_bulk"]) / r.summary["parameters"][name]["ess"] < 2
    axes = az.plot_trace(data, var_names=["mu"])
    assert axes.shape == (1, 2) if az.__version__ < "1" else axes is not None  # 1.x has a class of its own for plots


def test_long_chains_are_made_of_short_ones(result, tmp_path):
    pytest.importorskip("xarray")
    long, short = result.to_datatree(), result.to_datatree(chains=result.summary["short_chains"])
    of, alone = long["sample_stats"]["short_chain"].values, short["sample_stats"]["short_chain"].values
    assert result.summary["chains"] == 8 == of.shape[0] and of.dtype.kind == "i"
    assert (alone == alone[:, :1]).all() and len(set(alone[:, 0])) == result.summary["short_chains"]
    assert np.array_equal(of.ravel(), alone.ravel())
    result.save(tmp_path / "new")
    assert np.array_equal(hone.load(tmp_path / "new").to_datatree()["sample_stats"]["short_chain"].values, of)
    # A folder of a version that wrote the short chains as they were.
    shutil.copytree(tmp_path / "new", tmp_path / "old")
    lines = (tmp_path / "old" / "draws.csv").read_text().splitlines()
    at = next(line for line in lines if line.startswith("lp__")).split(",").index("short_chain__")
    (tmp_path / "old" / "draws.csv").write_text("".join(
        line + "\n" if line.startswith("#") else ",".join(cell for k, cell in enumerate(line.split(",")) if k != at) + "\n"
        for line in lines))
    summary = json.loads((tmp_path / "old" / "summary.json").read_text())
    summary["chains"] = summary.pop("short_chains")
    (tmp_path / "old" / "summary.json").write_text(json.dumps(summary))
    old = hone.load(tmp_path / "old")
    assert np.array_equal(old.draws, result.draws) and "short_chain" not in old.to_datatree()["sample_stats"]
    assert old.to_datatree()["posterior"].sizes["chain"] == result.summary["short_chains"]
    assert hone.load(old.save(tmp_path / "again")).verdict == result.verdict
    for folder in ("old", "again"):
        run("check", tmp_path / folder)  # exit code 0: use-q


def split_rhat(values):
    """Of (chains, draws): Gelman et al., Bayesian Data Analysis, 11.4."""
    halves = values.reshape(2 * len(values), -1)
    n = halves.shape[1]
    within = halves.var(axis=1, ddof=1).mean()
    return np.sqrt((n - 1) / n + halves.mean(axis=1).var(ddof=1) / within)


def banana(z):
    off = z[..., 1] - 5 * z[..., 0] ** 2
    return -0.5 * z[..., 0] ** 2 - 50 * off**2, np.stack([1000 * off * z[..., 0] - z[..., 0], -100 * off], -1)


def modes(z):
    a, b = -0.5 * ((z - 4) ** 2).sum(-1), -0.5 * ((z + 4) ** 2).sum(-1)
    top = np.logaddexp(a, b)
    return top, np.exp(a - top)[..., None] * (4 - z) + np.exp(b - top)[..., None] * (-4 - z)


@pytest.mark.parametrize("density, settings, verdict", [
    (banana, dict(budget=5_000, chain_coordinates="affine"), "trust-neither"),  # chains that have not arrived
    (modes, dict(starts=16), "use-q")])  # chains that stay in their modes, whose masses q knows
def test_long_chains_show_that_short_ones_disagree(density, settings, verdict):
    pytest.importorskip("xarray")
    largest = []
    for seed in range(1, 6):  # how far apart few chains happen to be differs from seed to seed
        r = hone.fit(density, dim=2, seed=seed, progress=False, **settings)
        assert r.verdict == verdict
        largest.append(max(split_rhat(values.values) for values in r.to_datatree()["posterior"].values()))
    assert np.mean(largest) > 1.1


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
    if az.__version__ < "1":
        assert az.bfmi(data).shape == (data.posterior.sizes["chain"],)
    within = data.log_likelihood["log_lik"].values.reshape(-1, 30)
    elpd, effective = (loo.elpd_loo, loo.p_loo) if az.__version__ < "1" else (loo.elpd, loo.p)
    assert float(elpd) < np.log(np.exp(within).mean(axis=0)).sum() and float(effective) < 3


def line(x, y, power, rep):
    """A regression y = b x^power with log_lik and predictions, fitted."""
    curve = x**power

    def density(z):
        off = y - z[0] * curve
        return -0.5 * off @ off - 0.5 * z @ z / 100, np.array([off @ curve]) - z / 100

    def values(z):
        return {"b": z[0], "log_lik": -0.5 * (y - z[0] * curve) ** 2 - 0.5 * np.log(2 * np.pi), "y_rep": z[0] * curve + rep}

    return hone.fit(density, names=["b"], constrain=values, progress=False, draws=400, budget=50_000)


def test_compare_agrees_with_arviz(tmp_path):
    az = pytest.importorskip("arviz")
    random = np.random.default_rng(7)
    x, rep = random.standard_normal(25), random.standard_normal(25)
    y = 1.5 * x + random.standard_normal(25)
    fits = {"straight": line(x, y, 1, rep), "bent": line(x, y, 2, rep)}
    loos = {}
    for name, r in fits.items():
        r.save(tmp_path / name)
        loos[name] = az.loo(r.to_inference_data(), reff=1.0, pointwise=True)
    found = json.loads(run("compare", tmp_path / "bent", tmp_path / "straight", "--json").stdout)
    assert [Path(row["run"]).name for row in found] == ["straight", "bent"]
    spread = np.sqrt(25 / 24) if az.__version__ < "1" else 1  # ArviZ 1.x and R's loo divide by N - 1
    for row in found:
        theirs = loos[Path(row["run"]).name]
        elpd, p = (theirs.elpd_loo, theirs.p_loo) if az.__version__ < "1" else (theirs.elpd, theirs.p)
        assert abs(row["elpd_loo"] - float(elpd)) < 1e-6 and abs(row["se"] - spread * float(theirs.se)) < 1e-6
        assert abs(row["p_loo"] - float(p)) < 1e-6 and row["data"] == 25
    table = az.compare(loos, **({} if az.__version__ < "1" else {"round_to": "none"}))
    assert abs(found[1]["elpd_diff"] - abs(table.loc["bent", "elpd_diff"])) < 1e-6  # 1.x changed the sign
    assert abs(found[1]["dse"] - np.sqrt(25 / 24) * table.loc["bent", "dse"]) < 1e-6  # here 1.x divides by N, too


def test_predictive_checks(tmp_path):
    az = pytest.importorskip("arviz")
    random = np.random.default_rng(8)
    x, rep = random.standard_normal(20), random.standard_normal(20)
    y = x + random.standard_normal(20)
    r = line(x, y, 1, rep)
    r.data = {"y": y.tolist(), "x": x.tolist()}  # as a Stan model's
    r.summary["groups"]["observed_data"] = ["y"]
    data = r.to_inference_data()
    assert "y_rep" not in data.posterior and data.posterior_predictive["y_rep"].shape[2] == 20
    assert list(data.observed_data) == ["y"] and list(data.constant_data) == ["x"]
    if az.__version__ < "1":
        assert az.plot_ppc(data, data_pairs={"y": "y_rep"}, num_pp_samples=10) is not None
    assert 'y_rep[1..20]: 20 values, table("y_rep")' in r.table()


def test_messages_have_no_flags():
    with pytest.raises(hone.InputError) as error:
        hone.fit(lambda z: (-0.5 * (z * z).sum(-1), -z), dim=2, budget="much", progress=False)
    assert "--" not in str(error.value) and "budget" in str(error.value)
    from hone import _hone

    assert _hone.in_python("Try --target-accept 0.95, or --effort thorough") == "Try target_accept=0.95, or effort thorough"
    assert _hone.in_python("'--steps', (--draws 5)\n--seed\n") == "'steps', (draws=5)\nseed\n"


def test_commands_to_paste_keep_their_flags():
    from hone import _hone

    for text in ("apt-get install --no-install-recommends r-cran-rstan g++ (R's package)", "  pip install --user hone-vi",
                 "pip cannot download it. pip says:\n\nerror: --only-binary=:all: hone stan install\n", "runs/a--b/x", "a --"):
        assert _hone.in_python(text) == text
    told = _hone.in_python("to install it:\n  hone stan install\nor apt-get install --no-install-recommends g++\nor give --data FILE. pip says --no")
    assert told == "to install it:\n  hone.install_stan()\nor apt-get install --no-install-recommends g++\nor give data FILE. pip says --no"


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
    other = r.warm_start("blackjax", chains=3)
    assert np.array_equal(other["position"], r.draws_unconstrained[:: len(r.draws) // 3][:3])
    assert np.array_equal(other["inverse_mass_matrix"], metric) and other["step_size"] == start["step_size"]
    for bad, message in ((dict(sampler="nuts"), "sampler: 'nuts' is not known; expected one of cmdstan, pymc, blackjax"),
                         (dict(sampler="pymc", folder="here"), "folder: pymc takes no files"), (dict(chains=0), "chains: expected a whole number, at least 1")):
        with pytest.raises(ValueError, match=message):
            r.warm_start(**bad)


def test_plot(tmp_path, schools):
    pytest.importorskip("matplotlib")
    figure = schools[0].plot()
    assert len([axis for axis in figure.axes if axis.get_visible()]) == 10  # the parameters proper
    figure.savefig(tmp_path / "fit.png")
    assert (tmp_path / "fit.png").stat().st_size > 10_000
    assert len(schools[0].plot(["mu"]).axes) == 1
    assert [axis.get_title() for axis in schools[0].plot("mu").axes] == ["mu"]
    assert [axis.get_title() for axis in schools[0].plot(["theta[2]", "mu", "tau"]).axes if axis.get_visible()] == ["theta.2", "mu", "tau"]
    assert len(schools[0].plot("theta").axes) == 8
    with pytest.raises(KeyError, match="'nu' is not one of mu"):
        schools[0].plot(["nu"])
    with pytest.raises(ValueError, match="names: expected at least one name"):
        schools[0].plot([])


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
