"""A convolutional VAE by hone train: its numbers by the program, by onnxruntime, by PyTorch, and by NumPy from the formulas of
docs/checkpoint.md."""

import importlib.util

import numpy as np
import onnxruntime
import pytest
from conftest import NO_TORCH, run


@pytest.fixture(scope="module", params=["gaussian", "bernoulli"])
def trained(request, tmp_path_factory):
    """A run folder, its data as rows, and z, sd, x by the program."""
    folder = tmp_path_factory.mktemp(request.param)
    random = np.random.default_rng(2)
    x = random.random((80, 8, 4, 3)) * random.random((80, 1, 1, 3))
    if request.param == "bernoulli":
        x = (x > 0.3).astype(np.uint8)
    np.save(folder / "x.npy", x)
    (folder / "c.toml").write_text(
        f'model = "vae"\nlikelihood = "{request.param}"\ndata = "x.npy"\nlatent = 3\nhidden = [9]\nencoder_hidden = [8]\n'
        'channels = [6, 16]\nactivation = "tanh"\nbatch = 20\nsteps = 2\niterations = 60\nthreads = 2\nengine = "cpu"\n')
    run("train", folder / "c.toml", "--out", folder / "run", "--quiet")
    run("encode", folder / "run", folder / "x.npy", "--out", folder / "z.npy", "--sd", folder / "sd.npy")
    run("sample", folder / "run", "--z", folder / "z.npy", "--mean", "--out", folder / "m.npy")
    run("sample", folder / "run", "-n", 4, "--mean", "--out", folder / "x.png")
    assert (folder / "x.png").stat().st_size > 0
    load = [np.load(folder / f"{name}.npy") for name in ("z", "sd", "m")]
    assert load[2].shape == (80, 8, 4, 3)
    return folder / "run", x.reshape(80, -1).astype(np.float32), *load


def close(found, wanted):
    wanted = wanted.reshape(len(wanted), -1)
    assert np.abs(found - wanted).max() < 1e-5 * max(1, np.abs(wanted).max())


def test_onnxruntime(trained, tmp_path):
    folder, x, z, sd, mean = trained
    run("export", folder, "--format", "onnx", "--out", tmp_path)
    encoder, decoder = (onnxruntime.InferenceSession(tmp_path / f"{name}.onnx") for name in ("encoder", "decoder"))
    for found, wanted in zip(encoder.run(["mean", "sd"], {"x": x}), (z, sd)):
        close(found, wanted)
    close(decoder.run(["mean"], {"z": z.astype(np.float32)})[0], mean)


def test_torch(trained, tmp_path):
    torch = pytest.importorskip("torch", reason=NO_TORCH)
    folder, x, z, sd, mean = trained
    run("export", folder, "--format", "torch", "--out", tmp_path)
    spec = importlib.util.spec_from_file_location("hone_model", tmp_path / "hone_model.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    model = module.load()
    with torch.no_grad():
        found = model.encode(torch.from_numpy(x))
        close(found[0].numpy(), z)
        close(found[1].numpy(), sd)
        close(model.decode(torch.from_numpy(z.astype(np.float32))).numpy(), mean)


def test_by_hand(trained, tmp_path):
    """The formulas of docs/checkpoint.md."""
    folder, x, z, _, mean = trained
    run("export", folder, "--format", "npz", "--out", tmp_path)
    file = np.load(tmp_path / "model.npz")
    shape = tuple(file["data.shape"])
    centre = file["data.mean"] if "data.mean" in file else 0

    def windows(image):  # (data, rows, columns, 16 · channels) of the small image
        n, rows, cols, channels = image.shape
        padded = np.pad(image, ((0, 0), (1, 1), (1, 1), (0, 0)))
        parts = [padded[:, i:i + rows:2, j:j + cols:2] for i in range(4) for j in range(4)]
        return np.concatenate(parts, axis=-1)

    def spread(parts, channels):  # the transpose
        n, rows, cols, _ = parts.shape
        image = np.zeros((n, 2 * rows + 2, 2 * cols + 2, channels))
        for at in range(16):
            i, j = divmod(at, 4)
            image[:, i:i + 2 * rows:2, j:j + 2 * cols:2] += parts[..., at * channels:(at + 1) * channels]
        return image[:, 1:-1, 1:-1]

    h = (x - centre).reshape(-1, *shape)
    for layer in range(2):
        h = np.tanh(windows(h) @ file[f"mean.weight[{layer}]"] + file[f"mean.bias[{layer}]"])
    h = np.tanh(h.reshape(len(x), -1) @ file["mean.weight[2]"] + file["mean.bias[2]"])
    close(h @ file["mean.weight[3]"] + file["mean.bias[3]"], z)
    h = np.tanh(z @ file["decoder.weight[0]"] + file["decoder.bias[0]"])
    h = np.tanh(h @ file["decoder.weight[1]"] + file["decoder.bias[1]"]).reshape(-1, shape[0] // 4, shape[1] // 4, 16)
    h = np.tanh(spread(h @ file["decoder.weight[2]"], 6) + file["decoder.bias[2]"])
    a = spread(h @ file["decoder.weight[3]"], 3)
    a = a + file["decoder.bias[3]"] if "decoder.bias[3]" in file else a
    a = a.reshape(len(z), -1)
    close(1 / (1 + np.exp(-a)) if file["mean"] == b"sigmoid" else a + centre, mean)


def test_other_threads_and_a_stop_have_the_same_bits(trained, tmp_path):
    folder, _, z, _, _ = trained
    run("train", folder.parent / "c.toml", "--threads", 1, "--iterations", 25, "--out", tmp_path / "run", "--quiet")
    run("train", folder.parent / "c.toml", "--threads", 1, "--out", tmp_path / "run", "--resume", "--quiet")
    run("encode", tmp_path / "run", folder.parent / "x.npy", "--out", tmp_path / "z.npy")
    assert np.array_equal(np.load(tmp_path / "z.npy"), z)


@pytest.mark.parametrize("setting, key", [("channels=8,8,8", "channels"), ("channels=0", "channels"), ("init=paper", "init"),
                                          ("likelihood=negative-binomial", "channels"), ("model=mf", "hidden"),
                                          ("precision=bf16-trajectory", "precision")])
def test_what_is_refused_names_the_key(trained, tmp_path, setting, key):
    done = run("train", trained[0].parent / "c.toml", "--set", setting, "--out", tmp_path / "run", check=False)
    assert done.returncode == 2 and key in done.stderr and not (tmp_path / "run").exists(), done.stderr
