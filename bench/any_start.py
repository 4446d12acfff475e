#!/usr/bin/env python3
"""Trains random small configurations by KL and by VCD with the defaults of hone train, and says which VCD trainings failed.

    bench/any_start.py HONE [--first 0] [--last 60] [--jobs 2] [--out any_start.jsonl] [--data-dir DIR] [--summary]

Four models, zero to three hidden layers of 8 to 300 units, 2 to 60 latent dimensions, minibatches of 10 to 500, RMSProp or Adam at
rates from 1e-4 to 3e-3, images, bits, counts and real numbers, one seed each, 5,000 iterations on one CPU thread. A VCD training
failed if hone says that it went wrong, or if its ELBO ends more than a quarter of the data's entropy (and 20 nats) below that of KL
from the same seed. The entropy of bits and counts is the ELBO's size, a code length. A density of real numbers has no such zero:
there it is how far the pixels' deviations stand above the model's noise, the sum of log(sd / 0.1). Needs NumPy. --summary only
reads the file.
"""
import argparse
import json
import math
import pathlib
import random
import subprocess
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor

ITERATIONS = 5000
SHAPES = [(2000, 60, 3), (1000, 200, 8)]  # of made-up data: count, width, rank


def made_up(kind, seed, count, width, rank):
    """Data of low rank: counts, or real numbers with noise."""
    import numpy as np

    rng = np.random.default_rng(seed)
    a = rng.normal(size=(count, rank)) @ rng.normal(size=(rank, width)) / math.sqrt(rank)
    if kind == "poisson":
        return rng.poisson(np.exp(0.7 * a + rng.normal(size=width) + 1)).astype(np.float64)
    return 3 * a + 2 * rng.normal(size=width) + 0.1 * rng.normal(size=(count, width))


def entropy(data, elbo):
    """Nats per datum: see above."""
    import numpy as np

    if not data.startswith("gaussian"):
        return abs(elbo)
    which = int(data[len("gaussian")])
    return float(np.sum(np.log(made_up("gaussian", which + 1, *SHAPES[which]).std(axis=0) / 0.1)))


def configuration(index, folder):
    r = random.Random(1000 + index)

    def between(low, high):
        return int(round(math.exp(r.uniform(math.log(low), math.log(high)))))

    model = r.choice(["vae", "logistic-mf", "gaussian-mf", "poisson-mf"])
    config = {"model": model, "latent": between(2, 60), "batch": between(10, 500)}
    if model == "vae":
        config["hidden"] = [between(8, 300) for _ in range(r.randint(1, 3))]
    config["encoder_hidden"] = [between(8, 300) for _ in range(r.randint(0, 3))]
    config["activation"] = r.choice(["relu", "tanh", "softplus"])
    data = r.choice({"gaussian-mf": ["gaussian0", "gaussian1", "grey"], "poisson-mf": ["poisson0", "poisson1"]}.get(
        model, ["synthetic", "fashion-mnist"]))
    if data == "fashion-mnist":
        config["binarization"] = "threshold"
    if data == "grey":
        data, config["binarization"] = "fashion-mnist", "none"
    config["data"] = str(folder / f"{data}.npy") if data[-1].isdigit() else data
    config["optimizer"] = r.choice(["rmsprop", "adam"])
    rate = float(f"{math.exp(r.uniform(math.log(1e-4), math.log(3e-3))):.2g}")
    config.update(rate_mean=rate, rate_scale=rate, rate_model=rate, seed=index + 1, iterations=ITERATIONS, report_every=500, threads=1)
    config.update({"engine": "cpu", "test.every": 0, "checkpoint.every": 0, "checkpoint.minutes": 0})
    return config


def trained(hone, index, objective, folder, data_dir):
    config = dict(configuration(index, folder), objective=objective)
    name = f"{index}-{objective}"
    file = folder / f"{name}.toml"
    file.write_text("".join(f"{key} = {json.dumps(value)}\n" for key, value in config.items()))
    begin = time.time()
    done = subprocess.run([hone, "train", file, "--out", folder / name, "--quiet", *(["--data-dir", data_dir] if data_dir else [])],
                          capture_output=True, text=True, check=False)
    config["data"] = pathlib.Path(config["data"]).name
    row = {"index": index, "objective": objective, "exit_code": done.returncode, "seconds": round(time.time() - begin, 1), "config": config}
    if done.returncode == 0:
        summary = json.loads((folder / name / "summary.json").read_text())
        row.update(elbo=summary["elbo"]["mean"], vcd=summary["vcd"]["mean"] if summary["vcd"] else None, trouble=summary.get("trouble"))
    else:
        row["error"] = done.stderr[-300:]
    return row


def summarize(path):
    rows = {}
    for line in path.read_text().splitlines():
        row = json.loads(line)
        rows.setdefault(row["index"], {})[row["objective"]] = row
    pairs = [(index, pair["kl"], pair["vcd"]) for index, pair in sorted(rows.items()) if len(pair) == 2 and pair["kl"]["exit_code"] == 0]
    failed = 0
    for index, kl, vcd in pairs:
        bad = vcd["exit_code"] != 0 or vcd["trouble"] or vcd["elbo"] < kl["elbo"] - max(20, entropy(kl["config"]["data"], kl["elbo"]) / 4)
        failed += bool(bad)
        c = vcd["config"]
        print(f"{index:3} {c['model']:12} {c['data']:14} latent {c['latent']:2} batch {c['batch']:3} hidden {c.get('hidden', [])} encoder "
              f"{c['encoder_hidden']} {c['activation']} {c['optimizer']} {c['rate_mean']:g}: ELBO by kl {kl['elbo']:.1f}, by vcd "
              f"{vcd.get('elbo', math.nan):.1f}, VCD {vcd.get('vcd') or math.nan:.1f}{'  FAILED' if bad else ''}")
    print(f"{failed} of {len(pairs)} failed")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("hone", nargs="?")
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--last", type=int, default=60)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("any_start.jsonl"))
    parser.add_argument("--data-dir")
    parser.add_argument("--summary", action="store_true")
    given = parser.parse_args()
    if given.summary:
        return summarize(given.out)
    if not given.hone:
        parser.error("which program? expected the path of hone")
    import numpy as np

    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for kind in ("poisson", "gaussian"):
            for i, shape in enumerate(SHAPES):
                np.save(folder / f"{kind}{i}.npy", made_up(kind, i + 1, *shape))
        jobs = [(index, objective) for index in range(given.first, given.last) for objective in ("kl", "vcd")]
        with ThreadPoolExecutor(given.jobs) as pool, given.out.open("a") as out:
            for row in pool.map(lambda job: trained(given.hone, *job, folder, given.data_dir), jobs):
                out.write(json.dumps(row) + "\n")
                out.flush()
    summarize(given.out)


if __name__ == "__main__":
    main()
