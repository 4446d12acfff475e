#!/usr/bin/env python3
"""The table of hone and its peers: results/posteriors/peers.md.

    python3 bench/peers/table.py peers.jsonl > table.md

Medians over the seeds in the files, which hone_peer.py, stan_peers.py and nutpie_peer.py write."""
import argparse
import json
import statistics

import shared

NUMBERS = {"mean_error": "{:.3f}", "sd_low": "{:.2f}", "sd_high": "{:.2f}", "gradients": "{:,.0f}", "values": "{:,.0f}",
           "seconds": "{:.2f}"}


def row(peer, lines):
    lines.sort(key=lambda line: line["seed"])
    scored = [line for line in lines if "mean_error" in line]
    if not scored:
        return peer, None, lines[0]["claim"]
    return peer, {key: statistics.median(line[key] for line in scored) for key in NUMBERS}, lines[0]["claim"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("lines", nargs="+", help="JSON lines of the peers")
    given = parser.parse_args()
    runs = {}
    for path in given.lines:
        with open(path, encoding="utf-8") as file:
            for line in map(json.loads, file):
                runs.setdefault((line["posterior"], line["peer"]), []).append(line)
    print("| posterior | method | worst mean | sds | gradients | values | seconds | its claim, first seed |")
    print("|---|---|---|---|---|---|---|---|")
    for name in shared.POSTERIORS:
        rows = [row(peer, lines) for (posterior, peer), lines in runs.items() if posterior == name]
        for peer, numbers, claim in sorted(rows, key=lambda one: one[1]["mean_error"] if one[1] else float("inf")):
            cells = {key: NUMBERS[key].format(numbers[key]) if numbers else "–" for key in NUMBERS}
            print(f"| {name} | {peer} | {cells['mean_error']} | {cells['sd_low']} to {cells['sd_high']} | "
                  f"{cells['gradients']} | {cells['values']} | {cells['seconds']} | {claim} |")


if __name__ == "__main__":
    main()
