#!/usr/bin/env python3
"""nutpie's NUTS on the shared posteriors, by the C++ densities in tests/support/posteriors.cpp.

    python3 -m pip install nutpie arviz
    cmake --preset release -DHONE_BUILD_BENCH=ON && cmake --build --preset release --target peer_posteriors
    python3 bench/peers/nutpie_peer.py --out peers.jsonl

Each gradient passes through Python, which costs some microseconds; gradients are what to compare."""
import argparse
import ctypes
import time

import arviz
import numpy
import nutpie
from nutpie import compiled_pyfunc

import shared

PEER = "nutpie NUTS"
TUNE, DRAWS, CHAINS = 400, 1000, 4


def load(path):
    library = ctypes.CDLL(str(path))
    numbers = ctypes.c_void_p
    library.peer_open.restype = ctypes.c_void_p
    library.peer_open.argtypes = [ctypes.c_char_p]
    library.peer_dimension.argtypes = [ctypes.c_void_p]
    library.peer_names.restype = ctypes.c_char_p
    library.peer_names.argtypes = [ctypes.c_void_p]
    library.peer_log_density.restype = ctypes.c_double
    library.peer_log_density.argtypes = [ctypes.c_void_p, numbers, numbers]
    library.peer_constrain.restype = None
    library.peer_constrain.argtypes = [ctypes.c_void_p, numbers, numbers]
    return library


def compiled(library, peer, calls):
    """A nutpie model of one posterior; `calls` counts gradients."""
    names = library.peer_names(peer).decode().split(",")

    def make_logp():
        def logp(z):
            calls[0] += 1
            z = numpy.ascontiguousarray(z, dtype=float)
            gradient = numpy.empty_like(z)
            value = library.peer_log_density(peer, z.ctypes.data, gradient.ctypes.data)
            return value, gradient
        return logp

    def make_expand(*_):
        def expand(z):
            z = numpy.ascontiguousarray(z, dtype=float)
            natural = numpy.empty(len(names))
            library.peer_constrain(peer, z.ctypes.data, natural.ctypes.data)
            return {"natural": natural}
        return expand

    model = compiled_pyfunc.from_pyfunc(library.peer_dimension(peer), make_logp, make_expand, [numpy.dtype(float)],
                                        [(len(names),)], ["natural"])
    return model, names


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--library", default=shared.ROOT / "build" / "release" / "bench" / "libpeer_posteriors.so")
    parser.add_argument("--out", default="peers.jsonl", help="one JSON object per run; runs that it has are left out")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    library = load(given.library)
    there = shared.done(given.out)
    for name in shared.POSTERIORS:
        if (name, PEER, given.seed) in there:
            continue
        peer = library.peer_open(name.encode())
        if not peer:
            parser.error(f"{given.library} does not know the posterior '{name}'")
        calls = [0]
        model, names = compiled(library, peer, calls)
        begun = time.process_time()
        trace = nutpie.sample(model, tune=TUNE, draws=DRAWS, chains=CHAINS, cores=1, seed=given.seed, progress_bar=False)
        seconds = time.process_time() - begun
        natural = trace.posterior["natural"].values
        draws = natural.reshape(-1, len(names))
        rhat = float(arviz.rhat(trace.posterior)["natural"].max())
        divergent = int(trace.sample_stats["diverging"].values.sum())
        moments = {key: (draws[:, k].mean(), draws[:, k].std(ddof=1)) for k, key in enumerate(names)}
        line = {"posterior": name, "peer": PEER, "seed": given.seed, "gradients": calls[0], "values": 0,
                "seconds": seconds, "claim": f"R-hat {rhat:.3f}, {divergent} divergences", "draws": len(draws)}
        shared.append(given.out, line | shared.score(name, moments))


if __name__ == "__main__":
    main()
