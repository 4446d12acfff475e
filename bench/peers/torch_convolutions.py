"""A convolutional VAE on images of 32 x 32 x 3, trained by hone and by a loop in PyTorch, one after the other on the same CPU.

    python3 -m pip install torch numpy
    python3 bench/peers/torch_convolutions.py --hone build/release/bin/hone --threads 2 --out convolutions.json

Both have the networks of `channels = [32, 64]`, `hidden = encoder_hidden = [200]`, latent 10, a Gaussian likelihood, Adam, minibatches of
100; by kl (one draw per datum) and by vcd (8 HMC steps of 5 leapfrog steps). The loop is plain PyTorch: autograd for the gradients in z,
values at the ends of trajectories only. Data are noise; no time depends on a value. Milliseconds per iteration, best of three.
"""

import argparse
import json
import platform
import subprocess
import tempfile
import time
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.nn.functional import softplus

ROWS, CHANNELS, HIDDEN, LATENT, BATCH = 32, (32, 64), 200, 10, 100
STEPS, LEAPFROG, VARIANCE = 8, 5, 0.01


def encoder():
    return nn.Sequential(nn.Conv2d(3, CHANNELS[0], 4, 2, 1), nn.ReLU(), nn.Conv2d(CHANNELS[0], CHANNELS[1], 4, 2, 1), nn.ReLU(),
                         nn.Flatten(), nn.Linear(CHANNELS[1] * 64, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, LATENT))


class Vae(nn.Module):
    def __init__(self):
        super().__init__()
        self.mean, self.sd = encoder(), encoder()
        self.decoder = nn.Sequential(nn.Linear(LATENT, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, CHANNELS[1] * 64), nn.ReLU(),
                                     nn.Unflatten(1, (CHANNELS[1], 8, 8)), nn.ConvTranspose2d(CHANNELS[1], CHANNELS[0], 4, 2, 1),
                                     nn.ReLU(), nn.ConvTranspose2d(CHANNELS[0], 3, 4, 2, 1, bias=False))

    def log_joint(self, z, x):
        return -0.5 * (((x - self.decoder(z)) ** 2).flatten(1).sum(1) / VARIANCE + (z * z).sum(1))

    def slope(self, z, x):
        z = z.detach().requires_grad_()
        value = self.log_joint(z, x)
        return value.detach(), torch.autograd.grad(value.sum(), z)[0]


def log_q(z, mean, sd):
    return (-0.5 * ((z - mean) / sd) ** 2 - sd.log()).sum(1)


def refined(vae, z, x, size):
    for parameter in vae.decoder.parameters():
        parameter.requires_grad_(False)
    value, slope = vae.slope(z, x)
    for _ in range(STEPS):
        p = torch.randn_like(z)
        moved, energy, q = z, value - 0.5 * (p * p).sum(1), slope
        p = p + 0.5 * size * q
        for step in range(LEAPFROG):
            moved = moved + size * p
            new, q = vae.slope(moved, x)
            p = p + (size if step + 1 < LEAPFROG else 0.5 * size) * q
        accept = torch.rand(len(z)).log() < new - 0.5 * (p * p).sum(1) - energy
        z = torch.where(accept[:, None], moved, z)
        slope = torch.where(accept[:, None], q, slope)
        value = torch.where(accept, new, value)
        size *= 1 + 0.02 * (accept.float().mean().item() - 0.9) / 0.9
    for parameter in vae.decoder.parameters():
        parameter.requires_grad_(True)
    return z, value, size


def torch_seconds(data, objective, iterations):
    torch.manual_seed(1)
    vae, size, baseline = Vae(), 0.05, torch.zeros(len(data))
    rate = torch.optim.Adam(vae.parameters(), 1e-3)
    order = torch.randperm(len(data))
    times = []
    for repeat in range(4):
        began = time.perf_counter()
        for i in range(iterations):
            index = order[(i * BATCH) % len(data):][:BATCH]
            x = data[index]
            mean, sd = vae.mean(x), 1e-4 + softplus(vae.sd(x) - 1e-4)
            z0 = mean + sd * torch.randn_like(mean)
            loss = -(vae.log_joint(z0, x) + sd.log().sum(1)).sum()
            if objective == "vcd":
                z, value, size = refined(vae, z0.detach(), x, size)
                f = value - log_q(z, mean, sd).detach()
                weight = (f - baseline[index]).clamp(-100, 100)
                baseline[index] = 0.9 * baseline[index] + 0.1 * f
                loss = loss - (log_q(z, mean, sd) - weight * log_q(z0.detach(), mean, sd)).sum() - vae.log_joint(z, x).sum()
            rate.zero_grad()
            loss.backward()
            rate.step()
        times.append((time.perf_counter() - began) / iterations)
    return min(times[1:])


def hone_seconds(program, folder, objective, iterations, threads):
    (folder / "c.toml").write_text(
        f'model = "vae"\nlikelihood = "gaussian"\ndata = "x.npy"\nlatent = {LATENT}\nhidden = [{HIDDEN}]\n'
        f"encoder_hidden = [{HIDDEN}]\nchannels = {list(CHANNELS)}\nbatch = {BATCH}\nobjective = \"{objective}\"\n"
        f"steps = {STEPS}\nleapfrog = {LEAPFROG}\nthreads = {threads}\nengine = \"cpu\"\nreport_every = 1\n"
        + ("[schedule]\nalpha_from = 0\nalpha_until = 0\n" if objective == "vcd" else ""))
    best = float("inf")
    for repeat in range(3):
        out = folder / f"{objective}-{repeat}"
        subprocess.run([program, "train", folder / "c.toml", "--iterations", str(iterations), "--out", out, "--quiet"],
                       check=True, stdout=subprocess.DEVNULL)
        rows = (out / "metrics.csv").read_text().splitlines()
        column = rows[0].split(",").index("seconds")
        seconds = [float(row.split(",")[column]) for row in rows[1:]]
        best = min(best, (seconds[-1] - seconds[0]) / (len(seconds) - 1))
    return best


def main():
    flags = argparse.ArgumentParser()
    flags.add_argument("--hone", required=True)
    flags.add_argument("--threads", type=int, default=2)
    flags.add_argument("--iterations", type=int, default=10)
    flags.add_argument("--out")
    given = flags.parse_args()
    torch.set_num_threads(given.threads)
    x = np.random.default_rng(1).uniform(0, 1, (1000, ROWS, ROWS, 3)).astype(np.float32)
    result = {"machine": platform.processor() or platform.machine(), "threads": given.threads, "torch": torch.__version__,
              "iterations": given.iterations}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        np.save(folder / "x.npy", x)
        data = torch.from_numpy(x).permute(0, 3, 1, 2).contiguous()
        for objective in ("kl", "vcd"):
            other = 1e3 * torch_seconds(data, objective, given.iterations)
            own = 1e3 * hone_seconds(given.hone, folder, objective, given.iterations, given.threads)
            result[objective] = {"hone_ms": round(own, 2), "torch_ms": round(other, 2), "torch_over_hone": round(other / own, 2)}
            print(objective, result[objective], flush=True)
    if given.out:
        Path(given.out).write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
