"""Data of one's own, as NumPy, pandas, SciPy and Pillow write them: one matrix, one model, whatever the file."""

import gzip
import zipfile

import numpy as np
import pytest
from conftest import run

COUNTS = np.random.default_rng(1).poisson(2, (60, 6))
SETTINGS = "latent = 2\nencoder_hidden = [4]\nbatch = 10\nsteps = 2\niterations = 30\nthreads = 1\n"


def checksum(folder, name, model="poisson-mf", **keys):
    """Trains on a file beside the configuration, from elsewhere; the checksum of what hone read."""
    import json
    import struct

    lines = "".join(f"{key} = {value}\n" for key, value in keys.items())
    (folder / "c.toml").write_text(f'model = "{model}"\ndata = "{name}"\n{lines}{SETTINGS}')
    out = folder / f"run-{len(list(folder.iterdir()))}"
    run("train", folder / "c.toml", "--out", out, "--quiet")
    content = (out / "checkpoint.safetensors").read_bytes()
    (size,) = struct.unpack("<Q", content[:8])
    return json.loads(content[8 : 8 + size])["__metadata__"]["config.data.sha256"]


def test_counts_in_every_format(tmp_path):
    pandas = pytest.importorskip("pandas")
    scipy_io = pytest.importorskip("scipy.io")
    sparse = pytest.importorskip("scipy.sparse")
    np.save(tmp_path / "u8.npy", COUNTS.astype(np.uint8))
    names = []
    for dtype in ("int8", "int16", "int32", "int64", "uint16", "uint32", "uint64", "float32", "float64"):
        np.save(tmp_path / f"{dtype}.npy", COUNTS.astype(dtype))
        names.append(f"{dtype}.npy")
    np.save(tmp_path / "fortran.npy", np.asfortranarray(COUNTS))
    np.savez(tmp_path / "one.npz", COUNTS)
    np.savez_compressed(tmp_path / "two.npz", counts=COUNTS, other=COUNTS + 1)
    frame = pandas.DataFrame(COUNTS, columns=[f"word {i}" for i in range(6)])
    frame.to_csv(tmp_path / "header.csv", index=False)
    frame.to_csv(tmp_path / "quoted.csv", index=False, quoting=1, lineterminator="\r\n")
    frame.to_csv(tmp_path / "plain.csv", index=False, header=False)
    frame.astype(float).to_csv(tmp_path / "tabs.tsv", index=False, sep="\t")
    frame.to_csv(tmp_path / "semicolons.csv", index=False, sep=";")
    frame.to_csv(tmp_path / "small.csv.gz", index=False)
    scipy_io.mmwrite(tmp_path / "sparse.mtx", sparse.coo_matrix(COUNTS))
    (tmp_path / "sparse.mtx.gz").write_bytes(gzip.compress((tmp_path / "sparse.mtx").read_bytes()))
    names += ["fortran.npy", "one.npz", "two.npz:counts", "header.csv", "quoted.csv", "plain.csv", "tabs.tsv",
              "semicolons.csv", "small.csv.gz", "sparse.mtx", "sparse.mtx.gz"]
    wanted = checksum(tmp_path, "u8.npy")
    for name in names:
        assert checksum(tmp_path, name) == wanted, name


def test_images_in_every_format(tmp_path):
    image = pytest.importorskip("PIL.Image")
    pixels = np.random.default_rng(2).integers(0, 256, (20, 5, 7)).astype(np.uint8)
    np.save(tmp_path / "cube.npy", pixels)
    np.save(tmp_path / "flat.npy", pixels.reshape(20, 35))
    (tmp_path / "photos" / "b").mkdir(parents=True)
    with zipfile.ZipFile(tmp_path / "photos.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for i, picture in enumerate(pixels):
            path = tmp_path / "photos" / ("b" if i >= 10 else "") / f"{i:02}.png"
            image.fromarray(picture).save(path)
            archive.write(path, f"{i:02}.png")
    keys = dict(model="vae", hidden="[4]", binarization='"threshold"')
    wanted = checksum(tmp_path, "cube.npy", **keys)
    assert checksum(tmp_path, "flat.npy", shape="[5, 7]", **keys) == wanted != checksum(tmp_path, "flat.npy", **keys)
    for name in ("./photos", "photos.zip"):
        assert checksum(tmp_path, name, **keys) == wanted
    assert len(list(tmp_path.glob("run-*/figures/images_samples.png"))) == 4  # but for the flat one
    image.fromarray(np.zeros((5, 7, 3), np.uint8)).save(tmp_path / "photos" / "red.png")
    (tmp_path / "c.toml").write_text(f'model = "vae"\ndata = "./photos"\n{SETTINGS}')
    done = run("train", tmp_path / "c.toml", "--out", tmp_path / "bad", check=False)
    assert done.returncode == 2 and "red.png is a colour image, but" in done.stderr


def test_colour_images(tmp_path):
    image = pytest.importorskip("PIL.Image")
    pixels = np.random.default_rng(3).integers(0, 256, (20, 6, 5, 3)).astype(np.uint8)
    np.save(tmp_path / "four.npy", pixels)
    np.save(tmp_path / "flat.npy", pixels.reshape(20, 90))
    for name in ("png", "jpg", "decoded"):
        (tmp_path / name).mkdir()
    for i, picture in enumerate(pixels):
        image.fromarray(picture).save(tmp_path / "png" / f"{i:02}.png")
        image.fromarray(picture).save(tmp_path / "jpg" / f"{i:02}.JPG", quality=95)
    decoded = np.stack([np.asarray(image.open(tmp_path / "jpg" / f"{i:02}.JPG")) for i in range(20)])
    np.save(tmp_path / "decoded.npy", decoded)
    keys = dict(model="vae", hidden="[4]", binarization='"threshold"')
    wanted = checksum(tmp_path, "four.npy", **keys)
    assert checksum(tmp_path, "flat.npy", shape="[6, 5, 3]", **keys) == wanted == checksum(tmp_path, "./png", **keys)
    assert checksum(tmp_path, "./jpg", **keys) == checksum(tmp_path, "decoded.npy", **keys)  # libjpeg, as Pillow has it
    folder = sorted(tmp_path.glob("run-*"))[0]
    assert image.open(folder / "figures/images_samples.png").mode == "RGB"
    (tmp_path / "four.npy").unlink()  # the checkpoint knows the shape
    run("sample", folder, "-n", 4, "--mean", "--out", tmp_path / "s.png")
    run("sample", folder, "-n", 4, "--mean", "--out", tmp_path / "s.npy")
    grid, values = np.asarray(image.open(tmp_path / "s.png")), np.load(tmp_path / "s.npy")
    assert values.shape == (4, 6, 5, 3) and grid.shape == (13, 11, 3)
    assert np.abs(grid[:6, :5] / 255 - values[0]).max() < 0.003


def test_missing_values_and_labels(tmp_path):
    pandas = pytest.importorskip("pandas")
    random = np.random.default_rng(4)
    kind = random.choice(["cat", "dog"], 60)
    values = np.where(kind == "cat", 1.0, -1.0)[:, None] + 0.3 * random.standard_normal((60, 5))
    values[random.random(values.shape) < 0.1] = np.nan
    np.save(tmp_path / "x.npy", values)
    frame = pandas.DataFrame(values, columns=list("abcde"))
    frame.insert(2, "kind", kind)
    frame.to_csv(tmp_path / "x.csv", index=False)
    done = None
    for name, where in (("x.npy", "datum"), ("x.csv", "column")):
        (tmp_path / "c.toml").write_text(f'model = "gaussian-mf"\ndata = "{name}"\nlabels = "kind"\n{SETTINGS}')
        done = run("train", tmp_path / "c.toml", "--out", tmp_path / "no", check=False)
        assert done.returncode == 2 and where in done.stderr and 'missing = "ignore"' in done.stderr
    keys = dict(model="gaussian-mf", missing='"ignore"')
    assert checksum(tmp_path, "x.npy", **keys) == checksum(tmp_path, "x.csv", labels='"kind"', **keys)
    np.save(tmp_path / "kind.npy", (kind == "cat").astype(int))
    checksum(tmp_path, "x.npy", labels='"kind.npy"', **keys)
    labels = [pandas.read_csv(f)["label"].tolist() for f in sorted(tmp_path.glob("run-*/figures/latent.csv"))]
    assert list(kind) in labels and list((kind == "cat").astype(int)) in labels


def test_a_share_is_held_out(tmp_path):
    np.save(tmp_path / "x.npy", COUNTS)
    keys = dict(split=0.25)
    first = checksum(tmp_path, "x.npy", **keys)
    assert first == checksum(tmp_path, "x.npy", **keys) != checksum(tmp_path, "x.npy", split=0.25, data_seed=2)
    folder = sorted(tmp_path.glob("run-*"))[0]
    test, train = (np.loadtxt(run("encode", folder, part).stdout.splitlines(), delimiter=",", skiprows=1) for part in ("test", "train"))
    assert len(test) == 15 and len(train) == 45
    whole = np.loadtxt(run("encode", folder, tmp_path / "x.npy").stdout.splitlines(), delimiter=",", skiprows=1)
    assert sorted(map(tuple, np.vstack([test, train]))) == sorted(map(tuple, whole))
