"""A convolutional VAE on images of 32 x 32 x 3, trained by hone and by a loop in PyTorch, one after the other on the same machine.

    python3 -m pip install torch numpy
    python3 bench/peers/torch_convolutions.py --hone build/release/bin/hone --threads 2 --out convolutions.json
    python3 bench/peers/torch_convolutions.py --hone build/release/bin/hone --device cuda --out convolutions.json

Both have the networks of `channels = [32, 64]`, `hidden = encoder_hidden = [200]`, latent 10, a Gaussian likelihood, Adam, minibatches of
100; by kl (one draw per datum) and by vcd (8 HMC steps of 5 leapfrog steps). The loop is plain PyTorch: autograd for the gradients in z,
values at the ends of trajectories only. Data are noise; no time depends on a value. Best of three.

On a device both multiply in tf32, and the loop runs three ways: eager; as one CUDA graph of a whole iteration, with cuDNN's fastest
algorithms (`benchmark`); and, with --compile, as such a graph of a decoder that torch.compile made. Prints one JSON line per objective:
microseconds per iteration.
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
    """Moves z and, in place, the step size."""
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
        accept = torch.rand(len(z), device=z.device).log() < new - 0.5 * (p * p).sum(1) - energy
        z = torch.where(accept[:, None], moved, z)
        slope = torch.where(accept[:, None], q, slope)
        value = torch.where(accept, new, value)
        size.mul_(1 + 0.02 * (accept.float().mean() - 0.9) / 0.9)
    for parameter in vae.decoder.parameters():
        parameter.requires_grad_(True)
    return z, value


class Training:
    """One iteration at a time, without a number that the host must wait for."""

    def __init__(self, data, objective, compiles=False):
        torch.manual_seed(1)
        self.data, self.objective = data, objective
        self.vae = Vae().to(data.device)
        if compiles:
            self.vae.decoder = torch.compile(self.vae.decoder)
        self.size = torch.tensor(0.05, device=data.device)
        self.baseline = torch.zeros(len(data), device=data.device)
        self.rate = torch.optim.Adam(self.vae.parameters(), 1e-3, capturable=data.is_cuda)
        self.order = torch.randperm(len(data)).to(data.device)
        self.index = self.order[:BATCH].clone()

    def choose(self, i):
        self.index.copy_(self.order[(i * BATCH) % len(self.data):][:BATCH])

    def step(self):
        vae, x = self.vae, self.data[self.index]
        mean, sd = vae.mean(x), 1e-4 + softplus(vae.sd(x) - 1e-4)
        z0 = mean + sd * torch.randn_like(mean)
        loss = -(vae.log_joint(z0, x) + sd.log().sum(1)).sum()
        if self.objective == "vcd":
            z, value = refined(vae, z0.detach(), x, self.size)
            f = value - log_q(z, mean, sd).detach()
            c = self.baseline[self.index]
            weight = (f - c).clamp(-100, 100)
            self.baseline[self.index] = 0.9 * c + 0.1 * f
            loss = loss - (log_q(z, mean, sd) - weight * log_q(z0.detach(), mean, sd)).sum() - vae.log_joint(z, x).sum()
        self.rate.zero_grad(set_to_none=True)
        loss.backward()
        self.rate.step()


def wait(data):
    if data.is_cuda:
        torch.cuda.synchronize()


def seconds_of(training, step, iterations):
    times = []
    for repeat in range(4):
        wait(training.data)
        began = time.perf_counter()
        for i in range(iterations):
            training.choose(i)
            step()
        wait(training.data)
        times.append((time.perf_counter() - began) / iterations)
    return min(times[1:])


def torch_seconds(data, objective, iterations):
    training = Training(data, objective)
    return seconds_of(training, training.step, iterations)


def graph_seconds(data, objective, iterations, compiles=False):
    """The iteration as one CUDA graph."""
    training = Training(data, objective, compiles)
    aside = torch.cuda.Stream()
    aside.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(aside):
        for _ in range(3):
            training.step()
    torch.cuda.current_stream().wait_stream(aside)
    graph = torch.cuda.CUDAGraph()
    training.rate.zero_grad(set_to_none=True)
    with torch.cuda.graph(graph):
        training.step()
    return seconds_of(training, graph.replay, iterations)


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


def device_result(program, data, objective, iterations, compiles):
    """Microseconds per iteration of hone and of every way of the loop; why, where one failed."""
    layers = ",".join(map(str, CHANNELS))
    told = subprocess.run([program, "bench", "iteration", "--engine", "cuda", "--json", "--model", "vae", "--likelihood", "gaussian",
                           "--shape", f"{ROWS},{ROWS},3", "--channels", layers, "--hidden", str(HIDDEN), "--encoder-hidden", str(HIDDEN),
                           "--latent", str(LATENT), "--batch", str(BATCH), "--steps", str(STEPS), "--leapfrog", str(LEAPFROG),
                           "--optimizer", "adam", "--objective", objective],
                          check=True, capture_output=True, text=True)
    own = json.loads(told.stdout)
    result = {"hone_us": round(own["us_per_iteration"], 1), "hone_gflops": round(own["gflops"]), "hone_device": own["device"]}
    ways = {"eager": lambda: torch_seconds(data, objective, max(3, iterations // 10)),
            "graph": lambda: graph_seconds(data, objective, iterations)}
    if compiles:
        ways["compiled_graph"] = lambda: graph_seconds(data, objective, iterations, True)
    for name, way in ways.items():
        try:
            result[f"torch_{name}_us"] = round(1e6 * way(), 1)
        except Exception as error:  # an operation that a graph does not take, or no compiler
            result[f"torch_{name}_failed"] = str(error).splitlines()[0][:200]
    times = [value for key, value in result.items() if key.startswith("torch_") and key.endswith("_us")]
    if times:
        result["best_torch_over_hone"] = round(min(times) / result["hone_us"], 2)
    return result


def main():
    flags = argparse.ArgumentParser()
    flags.add_argument("--hone", required=True)
    flags.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    flags.add_argument("--threads", type=int, default=2)
    flags.add_argument("--iterations", type=int, help="10 on the CPU, 100 on a device")
    flags.add_argument("--compile", action="store_true", help="on a device: the decoder by torch.compile, too")
    flags.add_argument("--out")
    given = flags.parse_args()
    on_device = given.device == "cuda"
    given.iterations = given.iterations or (100 if on_device else 10)
    torch.set_num_threads(given.threads)
    x = np.random.default_rng(1).uniform(0, 1, (1000, ROWS, ROWS, 3)).astype(np.float32)
    if on_device:
        torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = torch.backends.cudnn.benchmark = True
        result = {"machine": torch.cuda.get_device_name(), "torch": torch.__version__, "iterations": given.iterations}
        data = torch.from_numpy(x).permute(0, 3, 1, 2).contiguous().cuda()
        for objective in ("kl", "vcd"):
            result[objective] = device_result(given.hone, data, objective, given.iterations, given.compile)
            print(json.dumps({"objective": objective, **result[objective]}), flush=True)
        return write(given.out, result)
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
    write(given.out, result)


def write(path, result):
    if path:
        Path(path).write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
