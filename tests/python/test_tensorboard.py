"""Event files of hone train --tensorboard, read by TensorBoard's own reader."""

import csv

import numpy as np
import pytest
from conftest import run, stripes

SETTINGS = """model = "vae"
data = "x.npy"
latent = 2
hidden = [6]
encoder_hidden = [6]
batch = 20
steps = 2
report_every = 10
threads = 1
split = 0.2
[test]
every = 20
points = 10
samples = 10
[validation]
split = 0.2
every = 20
points = 10
samples = 10
[checkpoint]
every = 20
"""


def scalars(folder):
    accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    events = accumulator.EventAccumulator(str(folder), purge_orphaned_data=True)
    events.Reload()
    return {tag: [(e.step, e.value) for e in events.Scalars(tag)] for tag in events.Tags()["scalars"]}


def rows(file, column):
    with open(file) as lines:
        return [(int(row["iteration"]), float(row[column])) for row in csv.DictReader(lines)]


def expect_same(found, wanted):
    assert [step for step, _ in found] == [step for step, _ in wanted]
    assert np.allclose([value for _, value in found], [value for _, value in wanted], rtol=1e-4)


def test_what_tensorboard_reads(tmp_path):
    np.save(tmp_path / "x.npy", stripes(100, 1))
    (tmp_path / "c.toml").write_text(SETTINGS)
    for iterations in (40, 60):  # resumed: a second file in the same folder
        run("train", tmp_path / "c.toml", "--iterations", iterations, "--resume", "--out", tmp_path / "run",
            "--tensorboard", tmp_path / "events", "--quiet")
    read = scalars(tmp_path / "events")
    assert set(read) == {"train/elbo", "train/vcd", "train/acceptance", "train/step_size", "test/log_likelihood",
                         "validation/log_likelihood"}
    for tag, column in (("elbo", "elbo"), ("vcd", "vcd"), ("acceptance", "acceptance"), ("step_size", "step_size")):
        expect_same(read[f"train/{tag}"], rows(tmp_path / "run/metrics.csv", column))
    for part in ("test", "validation"):
        expect_same(read[f"{part}/log_likelihood"], rows(tmp_path / f"run/{part}_log_likelihood.csv", "mixture"))


def test_one_folder_per_seed(tmp_path):
    np.save(tmp_path / "x.npy", stripes(100, 1))
    (tmp_path / "c.toml").write_text(SETTINGS)
    run("train", tmp_path / "c.toml", "--iterations", 20, "--seeds", 2, "--out", tmp_path / "runs", "--tensorboard",
        tmp_path / "events", "--quiet")
    for seed in (1, 2):
        expect_same(scalars(tmp_path / f"events/seed-{seed}")["train/elbo"], rows(tmp_path / f"runs/seed-{seed}/metrics.csv", "elbo"))
