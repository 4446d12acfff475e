"""hone encode, reconstruct, sample, score and export: the package's numbers, and those of onnxruntime and PyTorch."""

import importlib.util

import numpy as np
import onnxruntime
import pytest
from conftest import NO_TORCH, SMALL, run, stripes

import hone

TEST = stripes(60, 2)
MODELS = ["vae", "gaussian", "poisson", "logistic", "categorical", "negative-binomial", "vae gaussian",
          "vae gaussian-learned", "vae categorical"]


@pytest.fixture(scope="module", params=MODELS)
def used(request, tmp_path_factory):
    """An estimator, its run folder and data for it."""
    random = np.random.default_rng(4)
    numbers, counts = random.standard_normal((200, 2)) @ random.standard_normal((2, 6)) + 7, random.poisson(3, (200, 6))
    codes = np.eye(3, dtype=np.uint8)[random.integers(0, 3, (200, 2))].reshape(200, 6)  # two groups of three
    kind = request.param.split()[-1]
    data = {"vae": stripes(300, 1), "gaussian": numbers, "gaussian-learned": numbers, "poisson": counts,
            "negative-binomial": counts, "categorical": codes,
            "logistic": (random.random((200, 9)) < 0.4).astype(np.uint8)}[kind]
    settings = dict(iterations=150, activation=random.choice(["relu", "tanh", "softplus"]).item(), **SMALL)
    if kind == "categorical":
        settings["categories"] = 3
    if request.param.startswith("vae"):
        model = hone.VAE(hidden=(16, 12), likelihood=None if kind == "vae" else kind, **settings).fit(data)
    else:
        model = hone.MatrixFactorization(likelihood=kind, **settings).fit(data)
    folder = tmp_path_factory.mktemp(request.param.replace(" ", "-"))
    model.save(folder / "run")
    np.save(folder / "new.npy", data[:70].astype(np.uint8 if data.dtype.kind in "iu" else np.float64))
    return model, folder / "run", folder / "new.npy", data[:70]


def test_the_program_has_the_packages_numbers(used, tmp_path):
    model, folder, file, data = used
    run("encode", folder, file, "--out", tmp_path / "z.npy", "--sd", tmp_path / "sd.csv")
    mean, sd = model.transform(data, sd=True)
    z = np.load(tmp_path / "z.npy")
    assert np.array_equal(z, mean)
    assert np.array_equal(np.loadtxt(tmp_path / "sd.csv", delimiter=",", skiprows=1), sd)
    run("encode", folder, file, "--refine", 5, "--seed", 3, "--out", tmp_path / "r.npy")
    assert np.array_equal(np.load(tmp_path / "r.npy"), model.transform(data, refine=5, seed=3))
    run("refine", folder, file, "--steps", 5, "--seed", 3, "--out", tmp_path / "same.npy")
    assert np.array_equal(np.load(tmp_path / "same.npy"), np.load(tmp_path / "r.npy"))
    run("encode", folder, file, "--refine", 5, "--seed", 3, "--draws", 4, "--out", tmp_path / "d.npy")
    draws = np.load(tmp_path / "d.npy")
    mean, sd = model.transform(data, refine=5, seed=3, draws=4, sd=True)
    assert draws.shape == (70, 4, 3) and np.allclose(draws.mean(axis=1), mean) and np.allclose(draws.std(axis=1, ddof=1), sd)
    run("reconstruct", folder, file, "--out", tmp_path / "x.npy")
    assert np.array_equal(np.load(tmp_path / "x.npy"), model.inverse_transform(z).astype(np.float32))
    run("sample", folder, "-n", 20, "--seed", 5, "--out", tmp_path / "s.npy")
    assert np.array_equal(np.load(tmp_path / "s.npy"), model.sample(20, seed=5).astype(np.float32))
    run("sample", folder, file, "--between", "3,9", "-n", 5, "--mean", "--out", tmp_path / "line.npy")
    line = z[3] + np.linspace(0, 1, 5)[:, None] * (z[9] - z[3])
    assert np.allclose(np.load(tmp_path / "line.npy"), model.inverse_transform(line), atol=1e-6)
    for method, ours in (([], dict(samples=100)), (["--method", "ais", "--ais-steps", 20], dict(method="ais", steps=20))):
        extra = ["--samples", 100] if not method else method
        rows = np.loadtxt(run("score", folder, file, "--points", 9, *extra).stdout.splitlines(), delimiter=",", skiprows=1)
        assert np.array_equal(rows[:, 1], model.score_samples(data[:9], **ours)) and (rows[:, 2] > 0).all()


def test_the_errors_of_scores_are_true(tmp_path):
    """Against the exact evidence of the Gaussian model: deviations in units of the errors are of the order of one."""
    random = np.random.default_rng(8)
    data = random.standard_normal((200, 2)) @ random.standard_normal((2, 6))
    model = hone.MatrixFactorization(2, "gaussian", iterations=300, encoder_hidden=(8,), progress=False, seed=3).fit(data)
    model.save(tmp_path / "run")
    exact = model.score_samples(data, samples=10, estimate="exact")

    def deviations(*words):
        """The rows that the program writes, and the root mean square of (estimate − exact) / error."""
        rows = np.loadtxt(run("score", tmp_path / "run", "train", *words).stdout.splitlines(), delimiter=",", skiprows=1)
        off = (rows[:, 1] - exact[rows[:, 0].astype(int)]) / rows[:, 2]
        return rows, np.sqrt((off**2).mean())

    rows, off = deviations("--samples", 300, "--sort")
    assert (np.diff(rows[:, 1]) >= 0).all() and sorted(rows[:, 0]) == list(range(200))
    assert np.allclose(rows[:, 4], exact[rows[:, 0].astype(int)])
    assert 0.4 < off < 1.1  # as many draws of each proposal: better than draws of their mixture, which the error is for
    _, off = deviations("--method", "ais", "--ais-steps", 400, "--ais-chains", 64)
    assert 0.8 < off < 1.25  # 200 data: ± 5 % where they are normal


def test_onnxruntime_gives_the_same_numbers(used, tmp_path):
    model, folder, _, data = used
    written = run("export", folder, "--format", "onnx", "--out", tmp_path).stdout.split()
    assert [name.rsplit("/", 1)[1] for name in written] == ["encoder.onnx", "decoder.onnx"]
    encoder, decoder = (onnxruntime.InferenceSession(name) for name in written)
    assert encoder.get_modelmeta().custom_metadata_map["activation"] == model.activation
    mean, sd = encoder.run(["mean", "sd"], {"x": data.astype(np.float32)})
    for found, wanted in zip((mean, sd), model.transform(data, sd=True)):
        assert np.abs(found - wanted).max() < 1e-5 * max(1, np.abs(wanted).max())
    z = np.random.default_rng(0).standard_normal((33, 3)) * 3
    outputs, x = decoder.run(["outputs", "mean"], {"z": z.astype(np.float32)})
    for found, wanted in ((outputs, model.decision_logits(z)), (x, model.inverse_transform(z))):
        assert np.abs(found - wanted).max() < 1e-5 * max(1, np.abs(wanted).max())


def test_torch_gives_the_same_numbers(used, tmp_path):
    torch = pytest.importorskip("torch", reason=NO_TORCH)
    model, folder, _, data = used
    run("export", folder, "--format", "torch", "--out", tmp_path)
    spec = importlib.util.spec_from_file_location("hone_model", tmp_path / "hone_model.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    loaded = module.load()
    z = np.random.default_rng(0).standard_normal((33, 3)) * 3
    with torch.no_grad():
        mean, sd = loaded.encode(torch.from_numpy(data.astype(np.float32)))
        x = loaded.decode(torch.from_numpy(z.astype(np.float32)))
    for found, wanted in ((mean, model.transform(data)), (sd, model.transform(data, sd=True)[1]), (x, model.inverse_transform(z))):
        assert np.abs(found.numpy() - wanted).max() < 1e-5 * max(1, np.abs(wanted).max())


def test_torchs_file_is_read_without_torch(used, tmp_path):
    from safetensors.numpy import load_file

    model, folder, _, _ = used
    run("export", folder, "--format", "torch", "--out", tmp_path)
    state = load_file(tmp_path / "model.safetensors")
    assert np.array_equal(state["mean.0.weight"], model.parameters_["mean.weight[0]"].T)


def test_rebuilt_by_hand_as_the_documentation_says(used, tmp_path):
    """docs/checkpoint.md, in NumPy, from the .npz file."""
    model, folder, _, data = used
    run("export", folder, "--format", "npz", "--out", tmp_path)
    file = np.load(tmp_path / "model.npz")
    text = {key: file[key].item().decode() for key in ("model", "density", "activation")}
    softplus = lambda a: np.logaddexp(0, a)
    act = {"relu": lambda a: np.maximum(a, 0), "tanh": np.tanh, "softplus": softplus}[text["activation"]]
    positive = lambda a: 1e-4 + softplus(a - 1e-4)

    def network(name, h):
        layers = sum(key.startswith(f"{name}.weight") for key in file.files)
        for layer in range(layers):
            h = h @ file[f"{name}.weight[{layer}]"].astype(float)
            h = h + file[f"{name}.bias[{layer}]"] if f"{name}.bias[{layer}]" in file.files else h
            h = act(h) if layer + 1 < layers else h
        return h

    centre = file["data.mean"] if "data.mean" in file.files else 0
    wanted = model.transform(data, sd=True)
    assert np.abs(network("mean", data - centre) - wanted[0]).max() < 1e-5 * np.abs(wanted[0]).max() + 1e-6
    assert np.abs(positive(network("sd", data - centre)) - wanted[1]).max() < 1e-5
    z = np.random.default_rng(0).standard_normal((33, 3))
    a = network("decoder", z)
    assert np.abs(a - model.decision_logits(z)).max() < 1e-5 * np.abs(a).max()
    a = a[:, :data.shape[1]]  # then come standard deviations or dispersions
    if text["density"] == "categorical":
        e = np.exp(a).reshape(33, -1, int(file["categories"].item()))
        x = (e / e.sum(axis=2, keepdims=True)).reshape(33, -1)
    else:
        x = {"bernoulli": 1 / (1 + np.exp(-a)), "gaussian": a + centre, "gaussian-learned": a + centre,
             "poisson": positive(a), "negative-binomial": positive(a)}[text["density"]]
    assert np.abs(x - model.inverse_transform(z)).max() < 1e-5 * np.abs(x).max() and file["data.shape"].prod() == x.shape[1]
