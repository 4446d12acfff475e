#!/usr/bin/env python3
"""`hone fit` on the Stan programs of the shared posteriors, on one thread.

    python3 bench/peers/hone_peer.py --hone build/release/bin/hone --out peers.jsonl

Needs `hone stan install` once. Errors are those of the draws that the verdict recommends: q's for use-q, the refined ones
otherwise. Seconds are processor time of the whole program, without compiling: it reads the data, fits, judges and writes."""
import argparse
import json
import pathlib
import resource
import subprocess
import tempfile

import shared

PEER = "hone fit"


def child_seconds():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


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
        subprocess.run([given.hone, "stan", "compile", shared.program(name), "--quiet"], check=True,
                       stdout=subprocess.DEVNULL)
        with tempfile.TemporaryDirectory() as folder:
            begun = child_seconds()
            subprocess.run([given.hone, "fit", shared.program(name), "--data", shared.data(name), "--seed", str(given.seed),
                            "--threads", "1", "--quiet", "--out", f"{folder}/run"], check=True, stdout=subprocess.DEVNULL)
            seconds = child_seconds() - begun
            summary = json.loads(pathlib.Path(folder, "run", "summary.json").read_text(encoding="utf-8"))
        mean, sd = ("q_mean", "q_sd") if summary["verdict"] == "use-q" else ("mean", "sd")
        moments = {key: (entry[mean], entry[sd]) for key, entry in summary["parameters"].items()}
        line = {"posterior": name, "peer": PEER, "seed": given.seed, "gradients": summary["gradient_evaluations"],
                "values": 0, "seconds": seconds, "claim": summary["verdict"], "draws": summary["draws"]}
        shared.append(given.out, line | shared.score(name, moments))


if __name__ == "__main__":
    main()
