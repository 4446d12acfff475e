#!/usr/bin/env python3
"""The table of hone and its peers: results/posteriors/peers.md.

    python3 bench/peers/table.py --peers peers.jsonl --hone calibration.csv > results/posteriors/peers.md

`--hone` is what `calibration --seeds 1` wrote. Peers come from stan_peers.py and nutpie_peer.py."""
import argparse
import csv
import json

import shared


def hone_lines(path):
    with open(path, encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            if row["posterior"] in shared.POSTERIORS and row["seed"] == "1":
                sd = float(row["sd_ratio"])
                yield {"posterior": row["posterior"], "peer": "hone fit", "gradients": int(row["gradients"]), "values": 0,
                       "seconds": float(row["seconds"]), "claim": row["verdict"],
                       "mean_error": float(row["mean_error"]), "sd_low": min(sd, 1), "sd_high": max(sd, 1)}


def cells(line):
    if "mean_error" not in line:
        return "– | – | – | – | –"
    return (f"{line['mean_error']:.3f} | {line['sd_low']:.2f}–{line['sd_high']:.2f} | {line['gradients']} | "
            f"{line['values']} | {line['seconds']:.2f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peers", action="append", required=True, help="JSON lines of the peers; may be given again")
    parser.add_argument("--hone", help="the CSV of calibration")
    given = parser.parse_args()
    lines = list(hone_lines(given.hone)) if given.hone else []
    for path in given.peers:
        with open(path, encoding="utf-8") as file:
            lines += [json.loads(line) for line in file]
    print("Worst mean in reference sds, smallest and largest ratio of sds, evaluations with and without a gradient, "
          "processor seconds, and what each says about itself. nutpie's gradients pass through Python, which costs "
          "some microseconds each.\n")
    print("| posterior | method | mean, sds | sds | gradients | values | seconds | its claim |")
    print("|---|---|---|---|---|---|---|---|")
    for name in shared.POSTERIORS:
        for line in sorted((one for one in lines if one["posterior"] == name), key=lambda one: one.get("mean_error", 1e9)):
            print(f"| {name} | {line['peer']} | {cells(line)} | {line['claim']} |")


if __name__ == "__main__":
    main()
