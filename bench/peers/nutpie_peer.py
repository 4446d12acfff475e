#!/usr/bin/env python3
"""nutpie's NUTS on the shared posteriors, in the libraries that hone compiles from the Stan programs.

    python3 -m pip install nutpie arviz stanio
    python3 bench/peers/nutpie_peer.py --hone build/release/bin/hone --out peers.jsonl

Needs `hone stan install` once. Gradients are the leapfrog steps of warm-up and sampling; seconds are processor time."""
import argparse
import json
import subprocess
import time

import arviz
import numpy
import nutpie
from nutpie.compile_stan import CompiledStanModel

import shared

PEER = "nutpie NUTS"
TUNE, DRAWS, CHAINS = 400, 1000, 4


def opened(hone, name):
    """nutpie's model of one posterior."""
    compiled = subprocess.run([hone, "stan", "compile", shared.program(name), "--quiet"], check=True,
                              capture_output=True, text=True)
    library = nutpie._lib.StanLibrary(compiled.stdout.strip())
    data = json.loads(shared.data(name).read_text(encoding="utf-8"))
    model = CompiledStanModel(code="", library=library, dims={}, _coords={}, model=None, data=None)
    return model.with_data(seed=1, **data)


def elements(posterior):
    """Name in Stan's CSV form and draws of every value."""
    for name, values in posterior.items():
        flat = values.values.reshape(-1, *values.shape[2:])
        if flat.ndim == 1:
            yield name, flat
        else:
            for k, column in enumerate(flat.reshape(len(flat), -1).T):
                index = ".".join(str(i + 1) for i in numpy.unravel_index(k, flat.shape[1:]))
                yield f"{name}.{index}", column


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hone", default=shared.ROOT / "build" / "release" / "bin" / "hone", help="the program")
    parser.add_argument("--out", default="peers.jsonl", help="one JSON object per run; runs that it has are left out")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    there = shared.done(given.out)
    for name in shared.POSTERIORS:
        if (name, PEER, given.seed) in there:
            continue
        model = opened(given.hone, name)
        begun = time.process_time()
        trace = nutpie.sample(model, tune=TUNE, draws=DRAWS, chains=CHAINS, cores=1, seed=given.seed,
                              save_warmup=True, progress_bar=False)
        seconds = time.process_time() - begun
        rhat = max(float(values.max()) for values in arviz.rhat(trace.posterior).values())
        divergent = int(trace.sample_stats["diverging"].values.sum())
        steps = sum(int(group["n_steps"].values.sum()) for group in (trace.warmup_sample_stats, trace.sample_stats))
        moments = {key: (draws.mean(), draws.std(ddof=1)) for key, draws in elements(trace.posterior)}
        line = {"posterior": name, "peer": PEER, "seed": given.seed, "gradients": steps, "values": 0,
                "seconds": seconds, "claim": f"R-hat {rhat:.3f}, {divergent} divergences", "draws": CHAINS * DRAWS}
        shared.append(given.out, line | shared.score(name, moments))


if __name__ == "__main__":
    main()
