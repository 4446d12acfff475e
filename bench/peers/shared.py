"""The posteriors that peers are compared on: Stan programs, data and references of examples/posteriors."""
import json
import math
import pathlib

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
FOLDER = ROOT / "examples" / "posteriors"
# The Stan program, and the folder that holds its data and reference.
POSTERIORS = {"eight_schools_noncentered": "eight_schools", "eight_schools_centered": "eight_schools", "arK": "arK",
              "garch": "garch", "kidiq": "kidiq",
              "mesquite": "mesquite", "sblrc": "sblrc", "low_dim_gauss_mix": "low_dim_gauss_mix", "gp_regr": "gp_regr"}


def program(name):
    return FOLDER / f"{name}.stan"


def data(name):
    return FOLDER / POSTERIORS[name] / "data.json"


def dotted(name):
    """theta[1,2] as in Stan's CSV files: theta.1.2"""
    return name.replace("[", ".").replace(",", ".").replace("]", "")


def reference(name):
    """Mean and sd of every value, by its dotted name."""
    with open(FOLDER / POSTERIORS[name] / "reference.json", encoding="utf-8") as file:
        return {dotted(key): (entry["mean"], entry["sd"]) for key, entry in json.load(file)["parameters"].items()}


def score(name, parameters):
    """The worst mean in reference sds, and the smallest and largest ratio of sds, over the values that the reference
    and `parameters` (dotted name: mean and sd) have in common."""
    known = reference(name)
    shared = known.keys() & parameters.keys()
    if not shared:
        raise SystemExit(f"{name}: no value of the reference is among the draws' {sorted(parameters)}")
    mean, low, high = 0.0, math.inf, 0.0
    for key in shared:
        mean = max(mean, abs(parameters[key][0] - known[key][0]) / known[key][1])
        ratio = parameters[key][1] / known[key][1]
        low, high = min(low, ratio), max(high, ratio)
    return {"mean_error": mean, "sd_low": low, "sd_high": high, "values_compared": len(shared)}


def append(path, line):
    """One JSON object per line."""
    with open(path, "a", encoding="utf-8") as file:
        file.write(json.dumps(line) + "\n")
    print(json.dumps(line), flush=True)


def done(path):
    """What a file already has, as (posterior, peer, seed)."""
    if not pathlib.Path(path).exists():
        return set()
    with open(path, encoding="utf-8") as file:
        return {(line["posterior"], line["peer"], line["seed"]) for line in map(json.loads, file)}
