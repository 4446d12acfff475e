#!/usr/bin/env python3
"""Trains random small configurations by KL and by VCD with the defaults of hone train, and says which VCD trainings failed.

    bench/any_start.py HONE [--first 0] [--last 60] [--jobs 2] [--out any_start.jsonl] [--data-dir DIR] [--set KEY=VALUE] [--summary]

Four models, zero to three hidden layers of 8 to 300 units, 2 to 60 latent dimensions, minibatches of 10 to 500, RMSProp or Adam at
rates from 1e-4 to 3e-3, images, bits, counts and real numbers, one seed each, 5,000 iterations on one CPU thread. From index 60 on
the models are `vae` and `mf` with the likelihoods gaussian, gaussian-learned, categorical, poisson and negative-binomial. From index
100 to 123 they are not random: a list of awkward data (AWKWARD below), minibatches of 30, the default rates and 4,000 iterations.

A VCD training failed if its ELBO ends below that of KL from the same seed by more than the data's entropy, if its VCD grows, or if
hone stops or says that it went wrong. By the stricter rule a quarter of the entropy (and 20 nats) is enough. A VCD grows if the last
1,000 iterations have twice that of the 1,000 after the handover, and 20 nats more.

The entropy of bits, counts and categories is the size of KL's ELBO, the length of a code for a datum. A density of real numbers has no
zero to count from: the differential entropy of 0.1 times a number is less by log 10. So the scale is the entropy above that of the
model's noise, with independent Gaussian values: the sum over values of log(1 + variance / 0.01) / 2, the most that a code can tell of a
datum through that noise. It is 803 nats for Fashion-MNIST in grey, 181 and 675 for the numbers made here. Needs NumPy. --summary
only reads the file.
"""
import argparse
import csv
import json
import math
import pathlib
import random
import subprocess
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor

ITERATIONS = 5000
HANDOVER = 2000  # schedule.alpha_until
LATER = 60  # from this index on: the likelihoods that came later
CATEGORIES = 4
GREY_FASHION = 803  # the entropy of its 60,000 images: see above
AWKWARD_FROM = 100
RULES = {  # how a failure is called in a row → what it is, in the last lines
    "the rule": "the rule: more than the entropy below kl, a VCD that grows, or hone says that it went wrong or stops",
    "the stricter rule": "the stricter rule: the same with a quarter of the entropy, and 20 nats",
}
SHAPES = [(2000, 60, 3), (1000, 200, 8)]  # of made-up data: count, width, rank


def made_up(kind, seed, count, width, rank):
    """Data of low rank: counts, one-hot groups, or real numbers with noise."""
    import numpy as np

    rng = np.random.default_rng(seed)
    a = rng.normal(size=(count, rank)) @ rng.normal(size=(rank, width)) / math.sqrt(rank)
    if kind == "poisson":
        return rng.poisson(np.exp(0.7 * a + rng.normal(size=width) + 1)).astype(np.float64)
    if kind == "negative-binomial":
        return rng.poisson(np.exp(0.7 * a + rng.normal(size=width) + 1) * rng.gamma(2, 0.5, size=a.shape)).astype(np.float64)
    if kind == "categorical":
        noisy = 2 * a + rng.gumbel(size=a.shape)
        return np.eye(CATEGORIES, dtype=np.uint8)[noisy.reshape(count, -1, CATEGORIES).argmax(axis=2)].reshape(count, width)
    return 3 * a + 2 * rng.normal(size=width) + 0.1 * rng.normal(size=(count, width))


def low_rank(rng, count, width, rank):
    return rng.normal(size=(count, rank)) @ rng.normal(size=(rank, width)) / math.sqrt(rank)


def awkward(name):
    """Data as they come: few, wide, sparse, constant, of unequal scales, in clusters, with tails."""
    import numpy as np

    rng = np.random.default_rng(sum(map(ord, name)))
    if name == "sparse-counts":
        return rng.poisson(np.exp(low_rank(rng, 1500, 120, 4) - 3 + rng.normal(size=120))).astype(float)
    if name in ("unequal", "unequal-small"):  # columns' standard deviations from 0.01 to 100, or to 3
        scales = np.geomspace(0.01, 100 if name == "unequal" else 3, 40)
        return (low_rank(rng, 1500, 40, 4) + 0.3 * rng.normal(size=(1500, 40))) * scales
    if name == "few":
        return low_rank(rng, 50, 30, 3) + 0.1 * rng.normal(size=(50, 30))
    if name == "few-bits":
        return (2 * low_rank(rng, 50, 100, 3) + rng.logistic(size=(50, 100)) > 0).astype(np.uint8)
    if name.startswith("wide"):  # twelve columns say something
        kinds = {"wide": rng.normal(size=(600, 800)), "wide-bits": rng.integers(2, size=(600, 3000)), "wide-counts": rng.poisson(0.02, size=(600, 3000))}
        data, told = kinds[name], low_rank(rng, 600, 12, 2)
        values = {"wide": 3 * told, "wide-bits": told > 0, "wide-counts": rng.poisson(np.exp(2 + told))}[name]
        data[:, :: data.shape[1] // 12][:, :12] = values
        return data.astype(np.uint8 if name == "wide-bits" else float)
    if name == "constant":  # half of the columns
        data = low_rank(rng, 1200, 60, 3) + 0.2 * rng.normal(size=(1200, 60))
        data[:, 30:] = 5
        return data
    if name == "constant-counts":
        data = rng.poisson(np.exp(low_rank(rng, 1200, 60, 3) + 0.5)).astype(float)
        data[:, 30:50], data[:, 50:] = 0, 40
        return data
    if name == "rare-bits":  # about 1 % ones
        return (rng.random((2000, 200)) < np.minimum(0.5, 0.01 * np.exp(low_rank(rng, 2000, 200, 3) - 0.5))).astype(np.uint8)
    if name == "clusters":
        return 4 * rng.normal(size=(6, 25))[rng.integers(6, size=1500)] + 0.3 * rng.normal(size=(1500, 25))
    if name == "clusters-bits":
        return (rng.random((1500, 80)) < rng.integers(2, size=(8, 80))[rng.integers(8, size=1500)] * 0.9 + 0.05).astype(np.uint8)
    if name == "tails":  # Student's t with two degrees of freedom
        return low_rank(rng, 1500, 30, 3) + 0.3 * rng.standard_t(2, size=(1500, 30))
    if name == "groups":  # of five, with rare categories
        scores = 2 * low_rank(rng, 1500, 100, 4) + rng.gumbel(size=(1500, 100)) + np.tile([2, 1, 0, -2, -4], 20)
        return np.eye(5, dtype=np.uint8)[scores.reshape(1500, 20, 5).argmax(axis=2)].reshape(1500, 100)
    bursts = (rng.random((1500, 50)) < 0.05) * np.exp(3 * rng.normal(size=(1500, 50)) + 2)  # mostly 0, now and then thousands
    return np.round(rng.poisson(1, size=(1500, 50)) * bursts)


# data, model, likelihood, latent, hidden layers of the decoder and of the encoder, and more
AWKWARD = [
    ("sparse-counts", "mf", "poisson", 20, [], [50], {}),
    ("sparse-counts", "vae", "negative-binomial", 8, [60], [60], {}),
    ("unequal", "vae", "gaussian-learned", 6, [40, 40], [40, 40], {}),
    ("unequal-small", "mf", "gaussian", 10, [], [50], {}),
    ("unequal-small", "vae", "gaussian-learned", 12, [40], [], {}),
    ("few", "vae", "gaussian", 5, [30], [30], {}),
    ("few-bits", "mf", "bernoulli", 40, [], [50, 50], {}),
    ("few", "vae", "gaussian-learned", 10, [50, 50], [50, 50], {"batch": 10}),
    ("wide", "mf", "gaussian-learned", 5, [], [30], {}),
    ("wide-bits", "vae", "bernoulli", 5, [40], [40], {}),
    ("wide-counts", "mf", "poisson", 10, [], [40], {"optimizer": "rmsprop"}),
    ("constant", "vae", "gaussian-learned", 5, [50, 50], [50], {}),
    ("constant", "mf", "gaussian", 30, [], [50], {}),
    ("constant-counts", "vae", "poisson", 5, [50], [50], {}),
    ("constant-counts", "mf", "negative-binomial", 15, [], [], {"optimizer": "rmsprop"}),
    ("rare-bits", "mf", "bernoulli", 20, [], [60], {}),
    ("rare-bits", "vae", "bernoulli", 2, [30, 30, 30], [30, 30, 30], {"activation": "tanh"}),
    ("clusters", "vae", "gaussian", 10, [60, 60], [60, 60], {}),
    ("clusters-bits", "vae", "bernoulli", 2, [40], [40], {"optimizer": "rmsprop"}),
    ("clusters", "vae", "gaussian-learned", 60, [60], [60], {}),
    ("tails", "vae", "gaussian-learned", 6, [50], [50], {"activation": "softplus"}),
    ("groups", "vae", "categorical", 8, [50], [50], {"categories": 5}),
    ("bursts", "vae", "negative-binomial", 5, [40], [40], {}),
    ("bursts", "mf", "poisson", 5, [], [40], {}),
]


def awkward_configuration(index, folder):
    data, model, likelihood, latent, hidden, encoder, more = AWKWARD[index - AWKWARD_FROM]
    layers = {"hidden": hidden} if model == "vae" else {}
    return {"model": model, "likelihood": likelihood, "data": str(folder / f"{data}.npy"), "latent": latent, **layers, "encoder_hidden": encoder,
            "batch": 30, "activation": "relu", "optimizer": "adam", "rate_mean": 1e-3, **more, "seed": index + 1, "iterations": 4000}


def entropy(index, config, elbo):
    """Nats per datum: see above."""
    import numpy as np

    if index >= AWKWARD_FROM:
        numbers = config["likelihood"].startswith("gaussian")
        return 0.5 * float(np.sum(np.log1p(awkward(config["data"].removesuffix(".npy")).var(axis=0) / 0.01))) if numbers else abs(elbo)
    if config["data"].startswith("gaussian"):
        which = int(config["data"][len("gaussian")])
        return 0.5 * float(np.sum(np.log1p(made_up("gaussian", which + 1, *SHAPES[which]).var(axis=0) / 0.01)))
    return GREY_FASHION if config.get("binarization") == "none" else abs(elbo)


def grows(vcds):
    """Whether the VCDs of report intervals after the handover grow: see above."""
    first, last = (sum(part) / len(part) for part in (vcds[:2], vcds[-2:]))
    return last > 2 * first and last > first + 20


def configuration(index, folder):
    r = random.Random(1000 + index)

    def between(low, high):
        return int(round(math.exp(r.uniform(math.log(low), math.log(high)))))

    model = r.choice(["vae", "logistic-mf", "gaussian-mf", "poisson-mf"] if index < LATER else ["vae", "mf"])
    config = {"model": model, "latent": between(2, 60), "batch": between(10, 500)}
    if model == "vae":
        config["hidden"] = [between(8, 300) for _ in range(r.randint(1, 3))]
    config["encoder_hidden"] = [between(8, 300) for _ in range(r.randint(0, 3))]
    config["activation"] = r.choice(["relu", "tanh", "softplus"])
    config.update(data_of(model, index, r))
    if config["data"][-1].isdigit():
        config["data"] = str(folder / f"{config['data']}.npy")
    config["optimizer"] = r.choice(["rmsprop", "adam"])
    rate = float(f"{math.exp(r.uniform(math.log(1e-4), math.log(3e-3))):.2g}")
    config.update(rate_mean=rate, rate_scale=rate, rate_model=rate, seed=index + 1, iterations=ITERATIONS)
    return config


def data_of(model, index, r):
    """The settings of the data, and of the likelihood from LATER on."""
    if index >= LATER:
        likelihood = r.choice(["gaussian", "gaussian-learned", "categorical", "poisson", "negative-binomial"])
        groups = {"categories": CATEGORIES} if likelihood == "categorical" else {}
        return {"likelihood": likelihood, "data": f"{likelihood.removesuffix('-learned')}{r.randrange(len(SHAPES))}", **groups}
    data = r.choice({"gaussian-mf": ["gaussian0", "gaussian1", "grey"], "poisson-mf": ["poisson0", "poisson1"]}.get(
        model, ["synthetic", "fashion-mnist"]))
    if data == "grey":
        return {"data": "fashion-mnist", "binarization": "none"}
    return {"data": data, **({"binarization": "threshold"} if data == "fashion-mnist" else {})}


def setting(text):
    """KEY=VALUE → the key, and the value as TOML has it."""
    key, value = text.split("=", 1)
    try:
        return key, json.loads(value)
    except json.JSONDecodeError:
        return key, value


def trained(given, index, objective, folder):
    make = awkward_configuration if index >= AWKWARD_FROM else configuration
    config = dict(make(index, folder), objective=objective, report_every=500, threads=1, engine="cpu", **dict(given.set))
    config.update({"test.every": 0, "checkpoint.every": 0, "checkpoint.minutes": 0})
    name = f"{index}-{objective}"
    file = folder / f"{name}.toml"
    file.write_text("".join(f"{key} = {json.dumps(value)}\n" for key, value in config.items()))
    begin = time.time()
    place = ["--data-dir", given.data_dir] if given.data_dir else []
    done = subprocess.run([given.hone, "train", file, "--out", folder / name, "--quiet", *place],
                          capture_output=True, text=True, check=False)
    config["data"] = pathlib.Path(config["data"]).name
    row = {"index": index, "objective": objective, "exit_code": done.returncode, "seconds": round(time.time() - begin, 1), "config": config}
    if done.returncode == 0:
        summary = json.loads((folder / name / "summary.json").read_text())
        row.update(elbo=summary["elbo"]["mean"], vcd=summary["vcd"]["mean"] if summary["vcd"] else None, trouble=summary.get("trouble"))
        if objective == "vcd":
            with (folder / name / "metrics.csv").open() as metrics:
                row["vcds"] = [float(line["vcd"]) for line in csv.DictReader(metrics) if int(line["iteration"]) > HANDOVER]
    else:
        row["error"] = done.stderr[-300:]
    return row


def summarize(path):
    rows = {}
    for line in path.read_text().splitlines():
        row = json.loads(line)
        rows.setdefault(row["index"], {})[row["objective"]] = row
    pairs = [(index, pair["kl"], pair["vcd"]) for index, pair in sorted(rows.items()) if len(pair) == 2 and pair["kl"]["exit_code"] == 0]
    failed = dict.fromkeys(RULES, 0)
    for index, kl, vcd in pairs:
        wrong = vcd["exit_code"] != 0 or bool(vcd["trouble"]) or grows(vcd["vcds"])
        below = math.inf if wrong else kl["elbo"] - vcd["elbo"]
        scale = entropy(index, kl["config"], kl["elbo"])
        by = [rule for rule, most in zip(failed, (scale, max(20, scale / 4)), strict=True) if below > most]
        for rule in by:
            failed[rule] += 1
        c = vcd["config"]
        kind = f"{c['model']} {c.get('likelihood', '')}"
        print(f"{index:3} {kind:21} {c['data']:22} latent {c['latent']:2} batch {c['batch']:3} hidden "
              f"{c.get('hidden', [])} encoder {c['encoder_hidden']} {c['activation']} {c['optimizer']} {c['rate_mean']:g}: ELBO by kl "
              f"{kl['elbo']:.1f}, by vcd {vcd.get('elbo', math.nan):.1f}, VCD {vcd.get('vcd') or math.nan:.1f}, entropy {scale:.0f}"
              f"{'  FAILED by ' + ' and '.join(by) if by else ''}")
    for rule, count in failed.items():
        print(f"{count} of {len(pairs)} failed by {RULES[rule]}")
    if left_out := len(rows) - len(pairs):
        print(f"{left_out} left out: KL failed, or one of the two was not run")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("hone", nargs="?")
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--last", type=int, default=60)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("any_start.jsonl"))
    parser.add_argument("--data-dir")
    parser.add_argument("--set", action="append", type=setting, default=[], metavar="KEY=VALUE", help="a key of hone train, for all trainings")
    parser.add_argument("--summary", action="store_true")
    given = parser.parse_args()
    if given.summary:
        return summarize(given.out)
    if not given.hone:
        parser.error("which program? expected the path of hone")
    import numpy as np

    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for kind in ("poisson", "gaussian", "categorical", "negative-binomial"):
            for i, shape in enumerate(SHAPES):
                np.save(folder / f"{kind}{i}.npy", made_up(kind, i + 1, *shape))
        for data in {row[0] for row in AWKWARD[max(0, given.first - AWKWARD_FROM):max(0, given.last - AWKWARD_FROM)]}:
            np.save(folder / f"{data}.npy", awkward(data))
        jobs = [(index, objective) for index in range(given.first, given.last) for objective in ("kl", "vcd")]
        with ThreadPoolExecutor(given.jobs) as pool, given.out.open("a") as out:
            for row in pool.map(lambda job: trained(given, *job, folder), jobs):
                out.write(json.dumps(row) + "\n")
                out.flush()
    summarize(given.out)


if __name__ == "__main__":
    main()
