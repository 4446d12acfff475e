"""VAE and MatrixFactorization: the program's bits, runs continued by either, data of every kind, parameters."""

import pickle
import subprocess
import sys
import warnings

import numpy as np
import pytest
from conftest import NO_TORCH, SMALL, run, stripes

import hone
from hone._parameters import KEYS

X, TEST = stripes(400, 1), stripes(60, 2)
VAE = dict(hidden=(16,), iterations=200, test_every=100, test_points=20, test_samples=50, **SMALL)


def config(folder, model="vae", data=X, **settings):
    """A configuration file and its data, as a user of the program writes them."""
    folder.mkdir(parents=True)
    np.save(folder / "x.npy", data)
    np.save(folder / "t.npy", TEST if data is X else data[:20])
    text = f'model = "{model}"\ndata = "{folder / "x.npy"}"\n'
    given = {**{k: v for k, v in SMALL.items() if k != "progress"}, "iterations": 200, **settings}
    for key, value in given.items():
        text += f"{key} = {list(value) if isinstance(value, tuple) else repr(value)}\n".replace("'", '"')
    text += f'[test]\ndata = "{folder / "t.npy"}"\nevery = 100\npoints = 20\nsamples = 50\n'
    (folder / "config.toml").write_text(text)
    return folder / "config.toml"


def checkpoint_tensors(path):
    """Everything in a checkpoint but its notes."""
    import json
    import struct

    content = path.read_bytes()
    (size,) = struct.unpack("<Q", content[:8])
    header = json.loads(content[8 : 8 + size])
    header.pop("__metadata__")
    return header, content[8 + size :]


def test_training_has_the_programs_bits(tmp_path, trained):
    run("train", config(tmp_path / "c", hidden=(16,)), "--out", tmp_path / "run", "--quiet")
    trained.save(tmp_path / "python")
    assert checkpoint_tensors(tmp_path / "run" / "checkpoint.safetensors") == checkpoint_tensors(
        tmp_path / "python" / "checkpoint.safetensors")
    assert (tmp_path / "run" / "test_log_likelihood.csv").read_text() == (
        tmp_path / "python" / "test_log_likelihood.csv").read_text()
    program = hone.load(tmp_path / "run")
    assert np.array_equal(program.transform(TEST), trained.transform(TEST))
    assert program.summary_["elbo"] == trained.summary_["elbo"] and program.n_iter_ == 200
    assert program.get_params()["hidden"] == [16] and program.get_params()["test_points"] == 20


def test_evaluation_has_the_programs_bits(tmp_path, trained):
    import json

    trained.save(tmp_path / "run")
    told = json.loads(run("eval", tmp_path / "run", "--samples", 200, "--ais", "--ais-steps", 50, "--json", "--quiet").stdout)
    for estimate, key in (("mixture", "mixture"), ("best", "value"), ("pilot", "pilot")):
        ours = trained.score_samples(TEST, samples=200, estimate=estimate)
        mean = 0.0
        for k, value in enumerate(ours):  # summed as the program sums
            mean += (value - mean) / (k + 1)
        assert mean == told[key], estimate
    ais = trained.score_samples(TEST, method="ais", steps=50)
    mean = 0.0
    for k, value in enumerate(ais):
        mean += (value - mean) / (k + 1)
    assert mean == told["ais"]["log_likelihood"]


def test_runs_are_continued_both_ways(tmp_path):
    whole = hone.VAE(**VAE).fit(X, TEST)
    # Python, then the program
    hone.VAE(**{**VAE, "iterations": 80}).fit(X, TEST).save(tmp_path / "a")
    run("train", tmp_path / "a" / "config.toml", "--out", tmp_path / "a", "--resume", "--iterations", 200, "--quiet")
    # the program, then Python
    file = config(tmp_path / "c", hidden=(16,))
    run("train", file, "--out", tmp_path / "b", "--iterations", 80, "--quiet")
    continued = hone.load(tmp_path / "b").set_params(iterations=200, warm_start=True, folder=tmp_path / "b", progress=False)
    continued.fit(X, TEST)
    # Python, in a folder, and in memory
    first = hone.VAE(**{**VAE, "iterations": 80}, folder=tmp_path / "d").fit(X, TEST)
    first.set_params(iterations=200, warm_start=True).fit(X, TEST)
    memory = hone.VAE(**{**VAE, "iterations": 80}, warm_start=True).fit(X, TEST)
    memory.set_params(iterations=200).fit(X, TEST).save(tmp_path / "e")
    whole.save(tmp_path / "w")
    wanted = checkpoint_tensors(tmp_path / "w" / "checkpoint.safetensors")
    for name in "abde":
        assert checkpoint_tensors(tmp_path / name / "checkpoint.safetensors") == wanted, name
    run("report", tmp_path / "d")


def test_resuming_checks_settings_and_data(tmp_path):
    vae = hone.VAE(**VAE, folder=tmp_path / "run").fit(X)
    with pytest.raises(hone.InputError, match="there is a run in this folder already"):
        vae.fit(X)
    with pytest.raises(hone.InputError, match="latent.*defines the model and cannot change"):
        vae.set_params(warm_start=True, latent=2).fit(X)
    with pytest.raises(hone.InputError, match="sha256"):
        vae.set_params(latent=3, iterations=300).fit(X[:300])


def test_pickle_and_load(tmp_path, trained):
    z = trained.transform(TEST)
    again = pickle.loads(pickle.dumps(trained))
    loaded = hone.load(trained.save(tmp_path / "run"))
    for other in (again, loaded):
        assert np.array_equal(other.transform(TEST), z)
        assert np.array_equal(other.inverse_transform(z), trained.inverse_transform(z))
        assert np.array_equal(other.sample(5, seed=3), trained.sample(5, seed=3))
        assert other.history_["elbo"].tolist() == trained.history_["elbo"].tolist()
    with pytest.raises(ValueError, match="not empty"):
        trained.save(tmp_path / "run")
    (tmp_path / "run" / "checkpoint.safetensors").unlink()
    with pytest.raises(hone.InputError, match="no checkpoint"):
        hone.load(tmp_path / "run")


def test_what_a_trained_model_gives(trained):
    mean, sd = trained.transform(TEST, sd=True)
    assert mean.shape == sd.shape == (60, 3) and (sd > 0).all() and np.array_equal(mean, trained.transform(TEST))
    refined = trained.transform(TEST, refine=8)
    assert np.array_equal(refined, trained.transform(TEST, refine=8)) and not np.array_equal(refined, mean)
    assert not np.array_equal(refined, trained.transform(TEST, refine=8, seed=2))
    centre, spread = trained.transform(TEST, refine=8, sd=True, draws=8)
    assert centre.shape == (60, 3) and (spread > 0).all()
    image = trained.inverse_transform(mean)
    assert image.shape == (60, 64) and (image > 0).all() and (image < 1).all()
    assert np.allclose(image, 1 / (1 + np.exp(-trained.decision_logits(mean))), atol=1e-6)
    data = trained.sample(64)
    assert data.shape == (64, 64) and set(np.unique(data)) <= {0.0, 1.0}
    assert trained.score_samples(TEST, samples=100).shape == (60,)
    assert trained.score(TEST) == pytest.approx(trained.score_samples(TEST, samples=500).mean())


def test_refined_draws_lie_where_the_posterior_is(trained):
    """log p(x, z) computed here is on average higher at the refined draws than at draws of q."""
    def log_joint(z):
        logits = trained.decision_logits(z)
        return (TEST * logits - np.logaddexp(0, logits)).sum(axis=1) - 0.5 * (z * z).sum(axis=1)

    mean, sd = trained.transform(TEST, sd=True)
    draws = mean + sd * np.random.default_rng(0).standard_normal(mean.shape)
    assert log_joint(trained.transform(TEST, refine=16)).mean() > log_joint(draws).mean()


def test_exact_evidence_of_the_gaussian_model(tmp_path):
    random = np.random.default_rng(3)
    data = random.standard_normal((300, 2)) @ random.standard_normal((2, 5)) + 0.1 * random.standard_normal((300, 5)) + 7
    model = hone.MatrixFactorization(2, "gaussian", encoder_hidden=(8,), iterations=300, rate_model=5e-3, seed=2,
                                     progress=False).fit(data)
    # x ~ N(mean, WᵀW + 0.01 I), by NumPy
    weight = model.parameters_["decoder.weight[0]"].astype(float)
    covariance = weight.T @ weight + 0.01 * np.eye(5)
    off = data - data.mean(axis=0)
    wanted = -0.5 * (np.einsum("ni,ij,nj->n", off, np.linalg.inv(covariance), off) + np.linalg.slogdet(2 * np.pi * covariance)[1])
    assert np.allclose(model.score_samples(data, samples=10, estimate="exact"), wanted, rtol=1e-4, atol=1e-3)
    for other in (pickle.loads(pickle.dumps(model)), hone.load(model.save(tmp_path / "run"))):
        assert np.array_equal(other.inverse_transform(np.zeros((1, 2))), model.inverse_transform(np.zeros((1, 2))))
    assert np.allclose(model.inverse_transform(np.zeros((1, 2))), data.mean(axis=0), atol=1e-5)
    with pytest.raises(ValueError, match="estimate: 'median' is not known here; expected one of mixture"):
        model.score_samples(data, samples=10, estimate="median")


@pytest.mark.parametrize("likelihood", ["gaussian", "poisson", "logistic"])
def test_matrix_factorization_has_the_programs_bits(tmp_path, likelihood):
    random = np.random.default_rng(1)
    data = {"gaussian": random.standard_normal((200, 6)), "poisson": random.poisson(2, (200, 6)).astype(np.uint8),
            "logistic": (random.random((200, 6)) < 0.4).astype(np.uint8)}[likelihood]
    model = hone.MatrixFactorization(likelihood=likelihood, iterations=60, test_every=0, **SMALL).fit(data)
    file = config(tmp_path / "c", f"{likelihood}-mf", data, iterations=60)
    file.write_text(file.read_text().replace("every = 100\npoints = 20\nsamples = 50\n", "every = 0\n"))
    run("train", file, "--out", tmp_path / "run", "--quiet")
    program = hone.load(tmp_path / "run")
    for name, value in model.parameters_.items():
        assert np.array_equal(value, program.parameters_[name]), name
    assert np.array_equal(program.transform(data), model.transform(data))
    assert program.sample(3).shape == (3, 6)


@pytest.mark.parametrize("model", ["vae", "mf"])
@pytest.mark.parametrize("likelihood", ["gaussian-learned", "categorical", "negative-binomial"])
def test_every_likelihood_has_the_programs_bits(tmp_path, model, likelihood):
    random = np.random.default_rng(1)
    data = {"gaussian-learned": random.standard_normal((200, 6)), "negative-binomial": random.poisson(2, (200, 6)).astype(np.uint8),
            "categorical": np.eye(3, dtype=np.uint8)[random.integers(0, 3, (200, 2))].reshape(200, 6)}[likelihood]
    keys = dict(likelihood=likelihood, iterations=60, **({"categories": 3} if likelihood == "categorical" else {}))
    if model == "vae":
        ours = hone.VAE(hidden=(7,), test_every=0, **keys, **SMALL).fit(data)
        keys["hidden"] = (7,)
    else:
        ours = hone.MatrixFactorization(test_every=0, **keys, **SMALL).fit(data)
    file = config(tmp_path / "c", model, data, **keys)
    file.write_text(file.read_text().replace("every = 100\npoints = 20\nsamples = 50\n", "every = 0\n"))
    run("train", file, "--out", tmp_path / "run", "--quiet")
    program = hone.load(tmp_path / "run")
    assert type(program) is type(ours) and program.likelihood == likelihood
    for name, value in ours.parameters_.items():
        assert np.array_equal(value, program.parameters_[name]), name
    assert np.array_equal(program.score_samples(data[:5], samples=50), ours.score_samples(data[:5], samples=50))
    program.iterations, program.warm_start, program.folder = 70, True, tmp_path / "run"
    assert program.fit(data).n_iter_ == 70


def test_kinds_of_data(tmp_path):
    sparse = pytest.importorskip("scipy.sparse")
    counts = np.random.default_rng(1).poisson(0.7, (200, 12))
    wanted = hone.MatrixFactorization(likelihood="poisson", iterations=30, **SMALL).fit(counts.astype(np.float64))
    np.save(tmp_path / "counts.npy", counts.astype(np.float32))
    mapped = np.load(tmp_path / "counts.npy", mmap_mode="r")
    kinds = [counts, counts.astype(np.uint8), counts.astype(np.float32), np.asfortranarray(counts.astype(float)), mapped,
             counts.tolist(), sparse.csr_matrix(counts), sparse.csc_array(counts.astype(float)), sparse.coo_matrix(counts)]
    for data in kinds:
        model = hone.MatrixFactorization(likelihood="poisson", iterations=30, **SMALL).fit(data)
        assert np.array_equal(model.transform(data), wanted.transform(counts.astype(float))), type(data)
    own = hone.MatrixFactorization(likelihood="poisson", iterations=30, folder=tmp_path / "run", **SMALL).fit(mapped)
    assert own.summary_["data"] == str(tmp_path / "counts.npy") and not (tmp_path / "run" / "data.npy").exists()
    bits = stripes(200, 3)
    a, b, c, d = (hone.VAE(hidden=(8,), iterations=20, **SMALL).fit(data).transform(bits)
                  for data in (bits, bits.astype(bool), sparse.csr_matrix(bits), bits.astype(np.float64)))
    assert np.array_equal(a, b) and np.array_equal(a, c) and np.array_equal(a, d)


def test_data_are_not_copied():
    from hone._data import data_of

    bits = np.ones((1000, 640), np.uint8)
    assert data_of(bits).binary and data_of(bits).memory == 1000 * 640 / 8  # one bit each
    for kind in (np.float64, np.float32, np.uint8):
        numbers = np.full((1000, 640), 3, kind)
        data = data_of(numbers)
        assert not data.binary and data.memory == 0  # a view


LIMITED = """
import resource, sys
import numpy as np, hone
hone.VAE
kind, path = sys.argv[1:]
if kind == "sparse":
    from scipy import sparse
    X = sparse.csr_matrix((np.full(80_000, 2.0), np.tile(np.arange(4, dtype=np.int32), 20_000), np.arange(20_001, dtype=np.int32) * 4), (20_000, 500))
else:
    X = np.load(path, mmap_mode="r")
with open("/proc/self/status") as status:
    used = next(int(line.split()[1]) for line in status if line.startswith("VmData"))
resource.setrlimit(resource.RLIMIT_DATA, ((used + 30_000) * 1024, resource.RLIM_INFINITY))
v = hone.MatrixFactorization(2, "poisson", encoder_hidden=(4,), iterations=2, batch=10, threads=1, progress=False).fit(X)
print(v.transform(X).shape)
"""


@pytest.mark.parametrize("kind", ["float32", "sparse"])
def test_there_is_no_second_copy_in_memory(tmp_path, kind):
    """40 MB of data if they are dense, mapped or sparse, and an allowance of 30 MB for everything else."""
    pytest.importorskip("scipy.sparse")
    if kind != "sparse":
        counts = np.lib.format.open_memmap(tmp_path / "x.npy", mode="w+", dtype=kind, shape=(20_000, 500))
        counts[:, ::7] = 3
        counts.flush()
    done = subprocess.run([sys.executable, "-c", LIMITED, kind, tmp_path / "x.npy"], capture_output=True, text=True)
    assert done.stdout == "(20000, 2)\n", done.stderr


def test_missing_values_are_left_out(tmp_path):
    sparse = pytest.importorskip("scipy.sparse")
    data = np.random.default_rng(2).standard_normal((60, 6))
    data[::3, 1] = data[5, 5] = np.nan
    settings = dict(latent=2, likelihood="gaussian-learned", encoder_hidden=(4,), iterations=20, batch=20, progress=False)
    with pytest.raises(ValueError, match='X contains NaN; missing="ignore" leaves missing values out of the likelihood'):
        hone.MatrixFactorization(**settings).fit(data)
    for place, bad in [((0, 1), data), ((7, 2), np.where(np.arange(360).reshape(60, 6) == 44, np.inf, 0.0))]:
        for given in (bad, sparse.csr_matrix(bad)):
            with pytest.raises(ValueError, match=rf"row {place[0]}, column {place[1]} \(both count from 0\)"):
                hone.MatrixFactorization(**settings).fit(given)
    model = hone.MatrixFactorization(missing="ignore", folder=tmp_path / "run", **settings).fit(data)
    assert np.isfinite(model.transform(data)).all() and np.isfinite(model.score_samples(data, samples=50)).all()
    alone = hone.MatrixFactorization(missing="ignore", **settings).fit(np.nan_to_num(data))  # zeros are not the same as nothing
    assert not np.array_equal(alone.transform(data), model.transform(data))
    config = tmp_path / "run" / "config.toml"
    run("train", config, "--out", tmp_path / "program", "--quiet")
    for name, value in model.parameters_.items():
        assert np.array_equal(value, hone.load(tmp_path / "program").parameters_[name]), name
    with pytest.raises(ValueError, match="infinity"):
        model.transform(np.where(np.isnan(data), np.inf, data))


def test_grey_levels(tmp_path):
    grey = np.random.default_rng(5).integers(0, 256, (200, 16), dtype=np.uint8)
    for binarization in ("threshold", "stochastic"):
        model = hone.VAE(hidden=(8,), iterations=20, binarization=binarization, **SMALL).fit(grey)
        file = config(tmp_path / binarization, data=grey, hidden=(8,), iterations=20, binarization=binarization)
        run("train", file, "--out", tmp_path / f"{binarization}-run", "--quiet")
        program = hone.load(tmp_path / f"{binarization}-run")
        assert np.array_equal(model.parameters_["mean.weight[0]"], program.parameters_["mean.weight[0]"])
    assert np.array_equal(hone.load(tmp_path / "threshold-run").transform(grey),
                          hone.load(tmp_path / "threshold-run").transform(grey > 127))


def test_data_are_binarized_as_in_training(tmp_path):
    levels = np.random.default_rng(5).integers(0, 256, (200, 16))
    grey = levels.astype(np.uint8)
    dark = np.tile(np.array([0, 1], np.uint8), 8)[None, :]
    settings = dict(hidden=(8,), iterations=20, binarization="threshold", **SMALL)
    models = [hone.VAE(**settings).fit(levels), hone.VAE(**settings).fit(grey)]
    models += [pickle.loads(pickle.dumps(models[1])), hone.load(models[1].save(tmp_path / "grey"))]
    wanted = models[1].transform(grey > 127)
    for model in models:
        assert model.threshold_ == 127.5
        for X_grey in (levels, grey, levels.astype(float)):
            assert np.array_equal(model.transform(X_grey), wanted)
        alone, among = model.transform(dark), model.transform(np.vstack([dark, grey]))[:1]
        assert np.array_equal(alone, among) and np.array_equal(alone, model.transform(np.zeros((1, 16), bool)))
        with pytest.raises(ValueError, match="X: expected values from 0 to 255, as in the training data"):
            model.transform(levels + 1)
    shares = hone.VAE(**settings).fit(levels / 255)
    assert shares.threshold_ == 0.5 and np.array_equal(shares.transform(levels / 255), wanted)
    with pytest.raises(ValueError, match="X: expected values from 0 to 1"):
        shares.score_samples(levels)
    (tmp_path / "grey" / "data.npy").unlink()  # the checkpoint knows the threshold
    alone = hone.load(tmp_path / "grey")
    assert alone.threshold_ == 127.5 and np.array_equal(alone.transform(grey), wanted)
    random = hone.VAE(**{**settings, "binarization": "stochastic"}).fit(grey)
    assert random.threshold_ is None and random.transform(grey > 127).shape == (200, 3)
    for model in (random, pickle.loads(pickle.dumps(random)), hone.load(random.save(tmp_path / "random"))):
        with pytest.raises(ValueError, match="X: give bits: the training data were binarized at random"):
            model.transform(grey)


@pytest.mark.parametrize("binarization", ["threshold", "stochastic"])
def test_sparse_whole_numbers_are_binarized_as_dense_ones(tmp_path, binarization):
    scipy = pytest.importorskip("scipy.sparse")
    levels = np.where(np.random.default_rng(5).random((200, 16)) < 0.3, 200, 0)
    settings = dict(hidden=(8,), iterations=20, binarization=binarization, **SMALL)
    dense = hone.VAE(**settings).fit(levels)
    for kind in (np.int64, np.uint8, np.int16):
        sparse = hone.VAE(**settings).fit(scipy.csr_matrix(levels.astype(kind)), scipy.csr_matrix(levels[:20].astype(kind)))
        assert sparse.threshold_ == dense.threshold_
        assert np.array_equal(sparse.parameters_["mean.weight[0]"], dense.parameters_["mean.weight[0]"])
    if binarization == "threshold":
        assert np.array_equal(sparse.transform(scipy.csr_matrix(levels)), dense.transform(levels))
    again = hone.load(sparse.save(tmp_path / "run")).set_params(warm_start=True, iterations=30)
    assert again.fit(scipy.csr_matrix(levels), scipy.csr_matrix(levels[:20])).n_iter_ == 30


def test_masked_values_are_missing_values():
    values = X[:100].astype(np.float64)
    mask = np.random.default_rng(2).random(values.shape) < 0.1
    settings = {**VAE, "iterations": 20, "test_every": 0, "test_points": None, "test_samples": None, "missing": "ignore"}
    expected = hone.VAE(**settings).fit(np.where(mask, np.nan, values))
    for given in (values, values.astype(np.uint8), values.astype(np.float32), values.astype(bool)):
        model = hone.VAE(**settings).fit(np.ma.array(given, mask=mask))
        assert np.array_equal(model.parameters_["mean.weight[0]"], expected.parameters_["mean.weight[0]"])
    assert np.array_equal(model.transform(np.ma.array(values, mask=mask)), expected.transform(np.where(mask, np.nan, values)))
    images = hone.VAE(**settings).fit(np.ma.array(values, mask=mask).reshape(-1, 8, 8))
    assert np.array_equal(images.parameters_["mean.weight[0]"], expected.parameters_["mean.weight[0]"])
    whole = hone.VAE(**{**settings, "missing": None})
    with pytest.raises(ValueError, match='X: has masked values; missing="ignore" leaves missing values out'):
        whole.fit(np.ma.array(values, mask=mask))
    with pytest.raises(ValueError, match="X_test: has masked values"):
        whole.fit(values, np.ma.array(values, mask=mask))
    whole.fit(np.ma.array(values))  # nothing is masked


def test_a_matrix_as_second_argument_is_test_data():
    settings = {**VAE, "iterations": 20, "test_every": 20}
    assert hone.VAE(**settings).fit(X, TEST.tolist())._parts["test.data"].shape == TEST.shape
    column = X[:, :1]
    narrow = hone.VAE(**settings).fit(column, column[:30])
    assert narrow._parts["test.data"].shape == (30, 1)
    assert set(hone.VAE(**settings).fit(X, np.arange(len(X)))._parts) == {"data"}
    message = "X_test has 3 features, X has 64; pass targets as a 1-D y"
    for given, named in ((X[:, :3], {}), (X[:, :3].tolist(), {}), (None, {"X_test": X[:, :3]})):
        with pytest.raises(ValueError, match=message):
            hone.VAE(**settings).fit(X, given, **named)
    with pytest.raises(ValueError, match="X_test is given twice"):
        hone.VAE(**settings).fit(X, TEST, X_test=TEST)


def test_a_training_that_goes_wrong_warns(tmp_path):
    """From the authors' start, without a bound, q is left behind; after 60 iterations the VCD is six of its errors above 0."""
    wrong = dict(hidden=(4,), init="paper", score_bound=0, batch=8, iterations=60, report_every=20, seed=4)
    with pytest.warns(UserWarning, match="^this training went wrong: q was left behind since iteration") as caught:
        model = hone.VAE(**{**SMALL, **wrong}, alpha_from=0, alpha_until=0).fit(X)
    assert len(caught) == 1 and caught[0].filename == __file__ and model.transform(TEST).shape == (60, 3)
    file = config(tmp_path / "c", **wrong, **{"schedule.alpha_from": 0, "schedule.alpha_until": 0})
    told = hone._hone.in_python(" ".join(run("train", file, "--out", tmp_path / "run").stdout.split()))
    assert str(caught[0].message).removeprefix("this training went wrong: ") in told
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        hone.VAE(**{**VAE, "iterations": 20}, alpha_from=0, alpha_until=0).fit(X)


def test_a_fit_that_fails_leaves_the_estimator_as_it_was():
    from hone._estimators import NotFittedError

    fresh = hone.VAE(**{**VAE, "latent": -1})
    with pytest.raises(hone.InputError, match="latent"):
        fresh.fit(X)
    with pytest.raises(NotFittedError):
        fresh.transform(X)
    model = hone.VAE(**{**VAE, "iterations": 20, "test_every": 20}).fit(X)
    wanted = model.transform(TEST)
    with pytest.raises(hone.InputError, match="latent"):
        model.set_params(latent=-1).fit(X[:, :10])
    assert model.n_features_in_ == 64 and model.latent == -1 and np.array_equal(model.transform(TEST), wanted)


def test_save_without_the_data(tmp_path):
    whole = hone.VAE(**VAE).fit(X, TEST).save(tmp_path / "whole")
    again = pickle.loads(pickle.dumps(hone.VAE(**{**VAE, "iterations": 80}).fit(X, TEST)))
    again.save(tmp_path / "run")
    assert not (tmp_path / "run" / "data.npy").exists() and "<memory>" in (tmp_path / "run" / "config.toml").read_text()
    done = run("train", tmp_path / "run" / "config.toml", "--out", tmp_path / "run", "--resume", "--iterations", 200,
               "--quiet", check=False)
    assert done.returncode == 2 and "<memory>" in done.stderr
    loaded = hone.load(tmp_path / "run")
    assert np.array_equal(loaded.transform(TEST), again.transform(TEST))
    loaded.set_params(warm_start=True, iterations=200, progress=False).fit(X, TEST).save(tmp_path / "on")
    assert checkpoint_tensors(tmp_path / "on" / "checkpoint.safetensors") == checkpoint_tensors(
        whole / "checkpoint.safetensors")
    assert (tmp_path / "on" / "data.npy").exists()


@pytest.mark.parametrize("arguments, message", [
    (dict(latent=0), "latent: '0' is not allowed; expected an integer"),
    (dict(objective="vdc"), "did you mean 'vcd'"),
    (dict(hidden=()), "hidden: a vae needs at least one hidden layer"),
    (dict(batch=1000), "batch: 1000 is more than the 400 training data"),
    (dict(iterations=True), "iterations: expected a number or a text"),
    (dict(iterations=2.5), "iterations: '2.5' is not allowed; expected an integer"),
    (dict(hidden=(8.9,)), "hidden: expected whole numbers, found 8.9"),
    (dict(hidden=(True,)), "hidden: expected whole numbers, found True"),
    (dict(alpha=0.5, objective="kl"), "alpha"),
    (dict(score_bound=5.0, objective="kl"), "score_bound"),
    (dict(alpha_from=90, alpha_until=80), "^alpha_from: 90 is above alpha_until, which is 80; set both$"),
    (dict(alpha_from=-3), "^alpha_from: '-3' is not allowed"),
    (dict(test_every=10, test_points=None, test_samples=True), "^test_samples: expected a number or a text"),
    (dict(validation_points=10), "^validation_points: does nothing where validation_every is 0"),
    (dict(init="xavier"), "init"),
    (dict(hidden=("a",)), "hidden: "),
])
def test_bad_parameters_are_named(arguments, message):
    with pytest.raises((ValueError, TypeError), match=message):
        hone.VAE(**{**VAE, "test_every": 0, "test_points": None, "test_samples": None, **arguments}).fit(X)


@pytest.mark.parametrize("name", sorted(name for name, key in KEYS.items() if "." in key and not key.endswith(".data")))
def test_parameters_have_pythons_names(name):
    """In messages too: not the names of the program's keys."""
    with pytest.raises(ValueError, match=f"^{name}: '-3' is not allowed; expected") as caught:
        hone.VAE(**{**VAE, name: -3}).fit(X, TEST)
    assert KEYS[name] not in str(caught.value)
    with pytest.raises(TypeError, match=f"^{name}: expected a number or a text, found True"):
        hone.VAE(**{**VAE, name: True}).fit(X, TEST)


def test_warnings_and_files_names_know_pythons_names():
    with pytest.warns(UserWarning, match=r"the VCD has no part in this run, .* \(alpha_from\)"):
        hone.VAE(**{**VAE, "iterations": 20}, alpha_from=100, alpha_until=200).fit(X)
    for text in ("a/checkpoint.every.npy", "checkpoint.everything", "my-test.every", "/x/test.every"):
        assert hone._hone.in_python(text) == text
    assert hone._hone.in_python("set 'test.every', (schedule.warmup) or validation.split.") == (
        "set 'test_every', (warmup) or validation_split.")


def test_fewer_iterations_than_were_made():
    model = hone.VAE(**{**VAE, "iterations": 40}, warm_start=True).fit(X)
    with pytest.raises(ValueError, match="^iterations: the fit of before has already made 40 iterations, more than the 10 requested$"):
        model.set_params(iterations=10).fit(X)


def test_a_tilde_is_the_users_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    model = hone.VAE(**{**VAE, "iterations": 20}, folder="~/run", warm_start=True).fit(X)
    assert (tmp_path / "run" / "data.npy").exists()
    model.set_params(iterations=30).fit(X)
    assert model.n_iter_ == 30 and hone.load("~/run").n_iter_ == 30
    assert model.save("~/copy") == tmp_path / "copy" and hone.load("~/copy").n_iter_ == 30


def test_bad_data_are_named(trained):
    with pytest.raises(ValueError, match="binary data"):
        hone.VAE(**VAE).fit(X * 0.5)
    with pytest.raises(ValueError, match="counts"):
        hone.MatrixFactorization(likelihood="poisson", iterations=10, **SMALL).fit(X * 0.5)
    with pytest.raises(ValueError, match="likelihood: 'normal' is not known"):
        hone.MatrixFactorization(likelihood="normal").fit(X)
    with pytest.raises(ValueError, match="NaN"):
        hone.VAE(**VAE).fit(np.where(X > 0, np.nan, 0.0))
    for bad in (np.full((9, 2), "a"), np.full((9, 2), "2020-01-01", "datetime64[D]"), X[0], X[:0], np.zeros((2, 2, 2, 2, 2))):
        with pytest.raises((TypeError, ValueError), match="^X: "):
            hone.VAE(**VAE).fit(bad)
    with pytest.raises(ValueError, match="X has 3 features, but VAE is expecting 64"):
        trained.transform(X[:, :3])
    with pytest.raises(ValueError, match="X: a Bernoulli likelihood needs binary data"):
        trained.transform(X * 0.5)
    with pytest.raises(ValueError, match=r"Z: expected shape \(n, 3\)"):
        trained.inverse_transform(np.zeros((2, 4)))
    with pytest.raises(ValueError, match="Z: contains a number that is not finite"):
        trained.inverse_transform(np.full((2, 3), np.nan))
    with pytest.raises(TypeError, match="Z: expected real numbers, found dtype"):
        trained.inverse_transform([["a", "b", "c"]])
    with pytest.raises(ValueError, match="n: expected a whole number, at least 1, found 1.5"):
        trained.sample(1.5)
    with pytest.raises(ValueError, match="method: 'exactly' is not known"):
        trained.score_samples(TEST, method="exactly")
    for arguments, message in ((dict(estimate="exact"), "estimate: 'exact' is not known here; expected one of mixture"),
                               (dict(method="ais", steps=-5), "steps: expected a whole number, at least 1, found -5"),
                               (dict(method="ais", chains=0), "chains: expected a whole number"),
                               (dict(samples=2.5), "samples: expected a whole number")):
        with pytest.raises(ValueError, match=message):
            trained.score_samples(None, **arguments)  # found out before the data are looked at
    with pytest.raises(ValueError, match="refine: expected a whole number, at least 0, found 1.5"):
        trained.transform(TEST, refine=1.5)
    with pytest.raises(ValueError, match="n: expected a whole number, at least 1, found 0"):
        trained.sample(0)
    for call in (lambda: trained.sample(1, seed=2**70), lambda: trained.transform(TEST, refine=1, seed=2**70)):
        with pytest.raises(ValueError, match="seed: expected at most 18446744073709551615, found 1180591620717411303424"):
            call()
    with pytest.raises(ValueError, match="refine: expected at most 2147483647, found 10000000000"):
        trained.transform(TEST, refine=10**10)
    assert trained.sample(1, seed=2**64 - 1).shape == (1, 64)


def test_save_does_not_take_a_file_for_a_folder(tmp_path, trained):
    (tmp_path / "file").write_text("mine")
    with pytest.raises(ValueError, match="folder: .*file is a file; expected a new or empty folder"):
        trained.save(tmp_path / "file")
    assert (tmp_path / "file").read_text() == "mine"


def test_parameters_for_other_tools(trained):
    state = trained._model().torch_arrays()
    z = np.random.default_rng(0).standard_normal((20, 3))
    hidden = np.maximum(0, z @ state["decoder.0.weight"].T + state["decoder.0.bias"])  # as torch.nn.Linear computes
    logits = hidden @ state["decoder.2.weight"].T + state["decoder.2.bias"]
    assert np.abs(logits - trained.decision_logits(z)).max() < 1e-5


@pytest.mark.parametrize("activation", ["relu", "tanh", "softplus"])
def test_torch_gives_the_same_logits(activation):
    torch = pytest.importorskip("torch", reason=NO_TORCH)
    model = hone.VAE(hidden=(16, 12), activation=activation, iterations=50, **SMALL).fit(X)
    module = model.torch_module("decoder")
    assert set(module.state_dict()) == {key.removeprefix("decoder.") for key in model.state_dict() if key.startswith("decoder.")}
    z = np.random.default_rng(0).standard_normal((20, 3))
    with torch.no_grad():
        logits = module(torch.from_numpy(z).float()).numpy()
        mean = model.torch_module("mean")(torch.from_numpy(TEST).float()).numpy()
    assert np.abs(logits - model.decision_logits(z)).max() < 1e-5
    assert np.abs(mean - model.transform(TEST)).max() < 1e-5
