"""Validation data, early stopping, the best model, convolutions: parameters of the estimators, with the program's bits."""

import pickle

import numpy as np
import pytest
from conftest import SMALL, run, stripes
from test_models import checkpoint_tensors

import hone

X, TEST = stripes(300, 1), stripes(60, 2)
WATCHED = dict(hidden=(16,), iterations=120, test_every=0, validation_every=20, validation_points=30,
               validation_samples=40, **SMALL)
TRAINING = 'rate_mean = 5e-3\nrate_scale = 5e-3\nrate_model = 5e-3\nreport_every = 50\nsteps = 4\nthreads = 2\n'
VALIDATION = "every = 20\npoints = 30\nsamples = 40\n"


def program(folder, settings, tables, **arrays):
    """hone train on arrays, as a user of the program does it."""
    folder.mkdir()
    for name, array in arrays.items():
        np.save(folder / f"{name}.npy", array)
    (folder / "c.toml").write_text(f'model = "vae"\ndata = "x.npy"\nlatent = 3\nencoder_hidden = [16]\n{TRAINING}{settings}{tables}')
    run("train", folder / "c.toml", "--out", folder / "run", "--quiet")
    return folder / "run"


def same_run(a, b, *names):
    for name in ("checkpoint.safetensors", *names):
        if name.endswith(".csv"):
            assert (a / name).read_text() == (b / name).read_text(), name
        else:
            assert checkpoint_tensors(a / name) == checkpoint_tensors(b / name), name


BOTH = ("best.safetensors", "validation_log_likelihood.csv")


def test_validation_data_have_the_programs_bits(tmp_path):
    table = f"[validation]\n{VALIDATION}data = \"v.npy\"\n[test]\nevery = 0\n"
    wanted = program(tmp_path / "p", "hidden = [16]\niterations = 120\n", table, x=X, v=TEST)
    model = hone.VAE(**WATCHED).fit(X, X_validation=TEST)
    same_run(wanted, model.save(tmp_path / "python"), *BOTH)
    assert model.validation_["iteration"].tolist() == [20, 40, 60, 80, 100, 120]
    best = model.summary_["best"]
    assert best["validation_log_likelihood"] == pytest.approx(model.validation_["mixture"].max(), rel=1e-7)
    assert np.load(tmp_path / "python" / "validation.npy").shape == TEST.shape


def test_shares_of_the_data_have_the_programs_bits(tmp_path):
    wanted = program(tmp_path / "p", "hidden = [16]\niterations = 120\nsplit = 0.2\ndata_seed = 4\n",
                     f"[validation]\n{VALIDATION}split = 0.25\n[test]\nevery = 60\npoints = 20\nsamples = 50\n", x=X)
    model = hone.VAE(split=0.2, data_seed=4, validation_split=0.25,
                     **{**WATCHED, "test_every": 60, "test_points": 20, "test_samples": 50}).fit(X)
    same_run(wanted, model.save(tmp_path / "python"), *BOTH, "test_log_likelihood.csv")
    assert model.summary_["training_data"] == 180
    loaded = hone.load(wanted)
    assert loaded.get_params()["split"] == 0.2 and loaded.get_params()["validation_split"] == 0.25


def test_the_best_model_is_used_where_it_is_asked_for(tmp_path):
    # a few data, learnt by heart: the newest model is not the best
    model = hone.VAE(**{**WATCHED, "iterations": 300, "rate_model": 0.02}).fit(X[:20], X_validation=TEST)
    assert model.summary_["best"]["iteration"] < 300
    folder = model.save(tmp_path / "run")
    np.save(tmp_path / "t.npy", TEST)
    for words, ours in ((["encode"], dict(best=True)), (["encode", "--refine", 3, "--seed", 2], dict(refine=3, seed=2, best=True))):
        run(words[0], folder, tmp_path / "t.npy", *words[1:], "--best", "--out", tmp_path / "z.npy")
        assert np.array_equal(np.load(tmp_path / "z.npy"), model.transform(TEST, **ours))
    assert not np.array_equal(model.transform(TEST, best=True), model.transform(TEST))
    run("sample", folder, "-n", 5, "--seed", 3, "--best", "--out", tmp_path / "s.npy")
    assert np.array_equal(np.load(tmp_path / "s.npy"), model.sample(5, seed=3, best=True).astype(np.float32))
    rows = np.loadtxt(run("score", folder, tmp_path / "t.npy", "--best", "--points", 9, "--samples", 50).stdout.splitlines(),
                      delimiter=",", skiprows=1)
    assert np.array_equal(rows[:, 1], model.score_samples(TEST[:9], samples=50, best=True))
    z = np.zeros((2, 3))
    for other in (pickle.loads(pickle.dumps(model)), hone.load(folder)):
        assert np.array_equal(other.inverse_transform(z, best=True), model.inverse_transform(z, best=True))
        assert np.array_equal(other.decision_logits(z, best=True), model.decision_logits(z, best=True))


def test_training_stops_early_and_goes_on_with_more_patience(tmp_path):
    still = dict(rate_mean=0.0, rate_scale=0.0, rate_model=0.0, objective="kl")  # never better than at first
    model = hone.VAE(early_stopping=3, folder=tmp_path / "run", **{**WATCHED, "iterations": 400, **still})
    model.fit(X, X_validation=TEST)
    assert model.finished_ and model.summary_["stopped_early"] and model.n_iter_ == 80
    model.set_params(early_stopping=5, warm_start=True).fit(X, X_validation=TEST)
    assert model.n_iter_ == 120
    run("train", tmp_path / "run" / "config.toml", "--out", tmp_path / "run", "--resume", "--set", "early_stopping=6", "--quiet")
    assert hone.load(tmp_path / "run").n_iter_ == 140
    # stopping and going on has the bits of one run
    whole = hone.VAE(early_stopping=4, **WATCHED).fit(X, X_validation=TEST).save(tmp_path / "whole")
    part = hone.VAE(early_stopping=4, **{**WATCHED, "iterations": 50}, warm_start=True).fit(X, X_validation=TEST)
    same_run(whole, part.set_params(iterations=120).fit(X, X_validation=TEST).save(tmp_path / "part"), *BOTH)


def test_schedules_have_the_programs_bits(tmp_path):
    keys = "hidden = [16]\niterations = 60\nrate_decay = 0.5\ndecay_every = 20\n"
    wanted = program(tmp_path / "p", keys, "[schedule]\nwarmup = 15\nalpha_from = 10\nalpha_until = 40\n", x=X)
    model = hone.VAE(hidden=(16,), iterations=60, rate_decay=0.5, decay_every=20, warmup=15, alpha_from=10, alpha_until=40, **SMALL)
    same_run(wanted, model.fit(X).save(tmp_path / "python"))


def test_what_contradicts_is_refused():
    for settings, given, message in [
        (dict(), dict(X_validation=TEST), "X_validation: nothing would use it; set validation_every"),
        (dict(early_stopping=2, test_every=0), dict(X_validation=TEST), "early_stopping: needs evaluations"),
        (dict(early_stopping=2), dict(), "early_stopping: there are no validation data; name them by X_validation"),
        (dict(early_stopping=2, validation_split=0.1), dict(X_validation=TEST), "X_validation names the validation data"),
        (dict(split=0.1), dict(X_test=TEST), "X_test names the test data"),
        (dict(early_stopping=2), dict(X_validation=TEST[:, :5]), "X_validation has 5 features, X has 64"),
        (dict(early_stopping=2), dict(X_validation=np.where(TEST > 0, np.nan, 0.0)), "X_validation contains NaN"),
        (dict(early_stopping=2), dict(X_validation=TEST * 0.5), "X_validation: .* needs binary data"),
        (dict(), dict(X_test=TEST * 0.5), "X_test: .* needs binary data"),
    ]:
        with pytest.raises(ValueError, match=message):
            hone.VAE(hidden=(8,), iterations=20, **SMALL, **settings).fit(X, **given)
    model = hone.VAE(hidden=(8,), iterations=20, **SMALL).fit(X)
    with pytest.raises(ValueError, match="best: there is none; a model with validation_every or early_stopping keeps it"):
        model.transform(X, best=True)
    assert model.validation_ == {}


def test_every_key_is_a_parameter():
    """But for the model, which the class says, and the data, which fit is given."""
    from hone._parameters import KEYS

    shown = set(hone.VAE().get_params())
    assert set(KEYS) - shown == {"model", "data", "test_data", "validation_data", "labels", "header"}
    assert shown - set(KEYS) == {"folder", "warm_start", "progress"}
    assert set(hone.MatrixFactorization().get_params()) == shown - {"hidden", "channels"}
    with pytest.raises(TypeError, match="VAE: got an unexpected keyword argument 'layers'"):
        hone.VAE(layers=3)


def test_steps_per_dimension_have_the_programs_bits(tmp_path):
    settings, small = dict(hidden=(16,), iterations=60, test_every=0, engine="cpu"), "hidden = [16]\niterations = 60\n"
    wanted = program(tmp_path / "p", f'{small}engine = "cpu"\nstep_scale = "q"\n', "[test]\nevery = 0\n", x=X)
    model = hone.VAE(step_scale="q", **settings, **SMALL).fit(X)
    same_run(wanted, model.save(tmp_path / "python"))
    plain = hone.VAE(**settings, **SMALL).fit(X).save(tmp_path / "plain")
    assert checkpoint_tensors(plain / "checkpoint.safetensors") != checkpoint_tensors(wanted / "checkpoint.safetensors")
    with pytest.raises(ValueError, match="step_scale: 'both' is not allowed; expected one of same, q"):
        hone.VAE(step_scale="both", **SMALL).fit(X)


# Images

COLOUR = np.random.default_rng(2).random((80, 8, 4, 3)) * np.random.default_rng(3).random((80, 1, 1, 3))
DEEP = dict(hidden=(9,), channels=(6, 16), likelihood="gaussian", batch=20, iterations=40, engine="cpu", **SMALL)
DEEP_TEXT = 'likelihood = "gaussian"\nhidden = [9]\nchannels = [6, 16]\nbatch = 20\niterations = 40\nengine = "cpu"\n'


def test_convolutions_have_the_programs_bits(tmp_path):
    clone = pytest.importorskip("sklearn.base").clone
    wanted = program(tmp_path / "p", DEEP_TEXT, "", x=COLOUR)
    rows = COLOUR.reshape(80, -1)
    loaded = hone.load(wanted)
    assert loaded.shape_ == (8, 4, 3) and loaded.get_params()["channels"] == [6, 16]
    for made in (hone.VAE(**DEEP).fit(COLOUR), hone.VAE(shape=(8, 4, 3), **DEEP).fit(rows),
                 clone(loaded).set_params(progress=False).fit(rows), clone(loaded).set_params(progress=False).fit(COLOUR)):
        assert np.array_equal(made.transform(rows), loaded.transform(COLOUR)) and made.shape_ == (8, 4, 3)
        for name, value in loaded.parameters_.items():
            assert np.array_equal(made.parameters_[name], value), name
    assert loaded.sample(3).shape == (3, 96) and len(loaded.parameters_["mean.weight[0]"]) == 48  # windows of 4 × 4 × 3


def test_convolutions_go_on_both_ways(tmp_path):
    whole = program(tmp_path / "p", DEEP_TEXT, "", x=COLOUR)
    short = {**DEEP, "iterations": 15}
    # Python, then the program: images, or rows and their shape
    hone.VAE(folder=tmp_path / "a", **short).fit(COLOUR)
    hone.VAE(shape=(8, 4, 3), **short).fit(COLOUR.reshape(80, -1)).save(tmp_path / "b")
    for name in "ab":
        run("train", tmp_path / name / "config.toml", "--out", tmp_path / name, "--resume", "--iterations", 40, "--quiet")
    # the program, then Python
    run("train", tmp_path / "p" / "c.toml", "--out", tmp_path / "c", "--iterations", 15, "--quiet")
    loaded = hone.load(tmp_path / "c").set_params(iterations=40, warm_start=True, folder=tmp_path / "c", progress=False)
    loaded.fit(COLOUR.reshape(80, -1))
    # in memory, and by way of a pickle
    memory = pickle.loads(pickle.dumps(hone.VAE(warm_start=True, **short).fit(COLOUR)))
    memory.set_params(iterations=40).fit(COLOUR.reshape(80, -1)).save(tmp_path / "d")
    for name in "abcd":
        same_run(whole, tmp_path / name)
        assert np.array_equal(hone.load(tmp_path / name).transform(COLOUR), memory.transform(COLOUR)), name


def test_grey_images_and_the_pictures_of_their_report(tmp_path):
    images = X.reshape(-1, 8, 8)
    flat = hone.VAE(hidden=(16,), iterations=20, **SMALL).fit(X)
    model = hone.VAE(hidden=(16,), iterations=20, folder=tmp_path / "run", **SMALL).fit(images)
    assert model.shape_ == (8, 8) and flat.shape_ == (64,)
    assert np.array_equal(model.transform(images), flat.transform(X)) and np.array_equal(model.transform(X), flat.transform(X))
    assert model.inverse_transform(model.transform(images)).reshape(-1, *model.shape_).shape == images.shape
    assert (tmp_path / "run" / "figures" / "images_samples.png").exists()
    assert np.load(tmp_path / "run" / "data.npy").shape == images.shape
    small = hone.VAE(hidden=(16,), iterations=5, channels=[4], **SMALL).fit(images[..., None], images[:20].tolist())
    assert small.transform(images).shape == (300, 3) and small.shape_ == (8, 8, 1)


def test_images_and_search():
    search = pytest.importorskip("sklearn.model_selection").GridSearchCV
    model = hone.VAE(hidden=(8,), shape=(8, 8), iterations=10, early_stopping=2, validation_split=0.2, **SMALL)
    found = search(model, {"channels": [[], [4], [4, 8]]}, cv=2).fit(X)
    assert np.isfinite(found.cv_results_["mean_test_score"]).all()
    assert found.best_estimator_.channels == found.best_params_["channels"]


def test_bad_shapes_are_named():
    images = X.reshape(-1, 8, 8)
    for settings, data, message in [
        (dict(shape=(7, 8)), X, r"shape: expected \(rows, columns\).* that make up the 64 values of a datum; found \(7, 8\)"),
        (dict(shape=(64,)), X, r"shape: expected \(rows, columns\)"), (dict(shape=(8.0, 8.0)), X, r"shape: expected"),
        (dict(shape=(-8, -8)), X, "shape: expected"), (dict(shape="8x8"), X, "shape: expected"),
        (dict(shape=(4, 16)), images, r"shape: \(4, 16\), but X has images of shape \(8, 8\)"),
        (dict(channels=[4]), X, "channels: X has rows of 64 values; give images"), (dict(channels=[4] * 4), images, "channels"),
        (dict(), X.reshape(-1, 2, 2, 2, 8), "^X: "),
    ]:
        with pytest.raises((ValueError, TypeError), match=message):
            hone.VAE(hidden=(8,), iterations=5, **SMALL, **settings).fit(data)
    model = hone.VAE(hidden=(8,), iterations=5, **SMALL).fit(images)
    with pytest.raises(ValueError, match=r"X: images of shape \(4, 16\); the training data have \(8, 8\)"):
        model.transform(X.reshape(-1, 4, 16))


def test_a_low_rank_q_has_the_programs_bits(tmp_path):
    settings, small = dict(hidden=(16,), iterations=60, test_every=0, engine="cpu"), "hidden = [16]\niterations = 60\n"
    wanted = program(tmp_path / "p", f'{small}engine = "cpu"\nfamily = "low-rank"\n', "[test]\nevery = 0\n", x=X)
    model = hone.VAE(family="low-rank", **settings, **SMALL).fit(X)
    same_run(wanted, model.save(tmp_path / "python"))
    assert model.summary_["family"] == "low-rank, rank 2"
    mean, sd = model.transform(X, sd=True)
    assert mean.shape == sd.shape and (sd > 0).all()
    last = [value for name, value in model.parameters_.items() if name.startswith("low-rank.bias")][-1]
    assert last.size == 3 * mean.shape[1]  # deviations and two factors
    with pytest.raises(ValueError, match="rank: only family low-rank uses it"):
        hone.VAE(rank=2, **settings, **SMALL).fit(X)
