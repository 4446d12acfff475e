#!/usr/bin/env python3
"""cluster.py MEASURED.jsonl EXCHANGE.jsonl: efficiency of several ranks, measured and by a model, as Markdown.

MEASURED has a line per training: ranks, batch, threads, ms (per iteration), and what rank 0 said of it at the start (ms on one rank
alone, on all, and of these to compute and to exchange and wait). EXCHANGE is what bench_exchange prints.

The model: an iteration of batch B on R ranks takes

    a + b B / R         a and b from the iterations of one rank
  + gathers             per gather of n bytes ceil(log2 R) α + n (R - 1) / (R β): five, and two per HMC step
  + passing sums on     (K + R - 1) (α + m / (K β)): the gradient of m bytes goes from rank to rank in K blocks
  + the broadcast       ceil(log2 R) (α + m / β)

with the latency α and the bandwidth β between two ranks. It knows nothing of ranks that wait for the slowest of them.
"""
import json
import math
import sys

GRADIENT, BLOCK, MOST_BLOCKS = 2.4e6, 1 << 17, 64  # bytes of the paper's VAE; hone/engine/cpu/cpu_run.cpp
LATENT, STEPS = 10, 8
NETWORKS = [("InfiniBand, 100 Gbit/s", 2.0, 12000.0), ("Ethernet, 10 Gbit/s", 30.0, 1200.0)]  # α in µs, β in bytes per µs


def lines(name):
    return [json.loads(line) for line in open(name) if line.startswith("{")]


def exchange_ms(ranks, batch, latency, bandwidth):
    if ranks == 1:
        return 0.0
    hops = math.ceil(math.log2(ranks))
    gather = lambda size: hops * latency + size * (ranks - 1) / ranks / bandwidth
    gathers = 4 * gather(8 * batch) + gather(8 * LATENT * batch) + STEPS * (gather(8 * batch) + gather(batch))
    blocks = min(max(int(GRADIENT / BLOCK), 1), MOST_BLOCKS)
    passing = (blocks + ranks - 1) * (latency + GRADIENT / blocks / bandwidth)
    return 1e-3 * (gathers + passing + hops * (latency + GRADIENT / bandwidth))


def line_through(points):
    """a and b of a + b B from the smallest and the largest batch."""
    (b0, t0), (b1, t1) = min(points), max(points)
    slope = (t1 - t0) / (b1 - b0)
    return t0 - slope * b0, slope


def table(head, rows):
    print("| " + " | ".join(head) + " |\n|" + "---:|" * len(head))
    for row in rows:
        print("| " + " | ".join(row) + " |")
    print()


def main():
    measured, exchange = lines(sys.argv[1]), lines(sys.argv[2])
    of_one = {m["batch"]: m["ms"] for m in measured if m["ranks"] == 1 and m["threads"] == 1}
    of_node = {m["batch"]: m["ms"] for m in measured if m["ranks"] == 1 and m["threads"] > 1}
    a, b = line_through(of_one.items())
    alpha = sorted(e["latency_us"] for e in exchange)[len(exchange) // 2]
    beta = sorted(e["bytes_per_us"] for e in exchange)[len(exchange) // 2]
    print(f"One rank, one thread: {a:.2f} ms + {1e3 * b:.1f} µs per datum. Between ranks of this machine: α = {alpha:.2f} µs, β = {beta / 1e3:.1f} GB/s.\n")
    rows = []
    for m in sorted(measured, key=lambda m: (m["batch"], m["ranks"])):
        if m["threads"] > 1:
            continue
        ranks, batch, one = m["ranks"], m["batch"], of_one[m["batch"]]
        said = m.get("said")
        model = a + b * batch / ranks + exchange_ms(ranks, batch, alpha, beta)
        rows.append([f"{batch:,}", str(ranks), f"{m['ms']:,.1f}", f"{100 * one / (ranks * m['ms']):.0f} %", f"{model:,.1f}", f"{100 * one / (ranks * model):.0f} %",
                     f"{said['alone']:,.1f}" if said else "", f"{said['all']:,.1f}" if said else "", f"{said['exchange']:,.1f}" if said else ""])
    table(["batch", "ranks", "ms per iteration", "efficiency", "model, ms", "efficiency", "said: one rank", "all ranks", "of it exchange and wait"], rows)
    if not of_node:
        return
    a, b = line_through(of_node.items())
    threads = max(m["threads"] for m in measured)
    print(f"Nodes of {threads} cores, one rank with {threads} threads each ({a:.2f} ms + {1e3 * b:.2f} µs per datum, measured on one): efficiency by the model.\n")
    for name, latency, bandwidth in NETWORKS:
        print(f"{name} (α = {latency:g} µs, β = {bandwidth / 1e3:g} GB/s):\n")
        rows = []
        for batch in sorted(of_node):
            one = a + b * batch
            times = [a + b * batch / nodes + exchange_ms(nodes, batch, latency, bandwidth) for nodes in (2, 4, 8, 16, 32, 64, 128, 256)]
            rows.append([f"{batch:,}", f"{one:.1f}"] + [f"{t:.1f} ms, {100 * one / (n * t):.0f} %" for n, t in zip((2, 4, 8, 16, 32, 64, 128, 256), times)])
        table(["batch", "1 node, ms"] + [str(n) for n in (2, 4, 8, 16, 32, 64, 128, 256)], rows)


main()
