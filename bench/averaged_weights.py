#!/usr/bin/env python3
"""Would averaged weights pay? Trains a configuration, keeps exponential averages of its parameters, and writes them as runs of their own.

    bench/averaged_weights.py HONE CONFIG OUT --iterations 20000 --from 14000 --every 100 --horizons 500 2000
    HONE eval OUT; HONE eval OUT-averaged-500; HONE eval OUT-averaged-2000

The averages begin at iteration --from, take in the parameters every --every iterations, and forget over as many iterations as --horizons says.
Training goes on by --resume, so each piece pays for reading the data. float32 checkpoints only.
"""
import argparse
import array
import hashlib
import json
import math
import pathlib
import shutil
import struct
import subprocess


def read(path):
    """Header and data of a checkpoint, which is a safetensors file."""
    content = path.read_bytes()
    end = 8 + struct.unpack("<Q", content[:8])[0]
    return json.loads(content[8:end]), bytearray(content[end:])


def write(path, header, data):
    def text():
        return json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()

    header["__metadata__"]["sha256"] = ""  # which the checksum is of
    checksum = hashlib.sha256(text())
    checksum.update(data)
    header["__metadata__"]["sha256"] = checksum.hexdigest()
    whole = text() + b" " * (-len(text()) % 8)
    path.write_bytes(struct.pack("<Q", len(whole)) + whole + data)


def parameters(header):
    """Where the parameters of model and q are in the data."""
    return {name: slice(*facts["data_offsets"]) for name, facts in header.items() if name.startswith(("decoder.", "mean.", "sd."))}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("hone", "config", "out"):
        parser.add_argument(name)
    for name in ("iterations", "from", "every"):
        parser.add_argument(f"--{name}", type=int, required=True)
    parser.add_argument("--horizons", type=float, nargs="+", required=True)
    given = vars(parser.parse_args())
    run, means = pathlib.Path(given["out"]), {}
    for iteration in range(given["from"], given["iterations"] + 1, given["every"]):
        subprocess.run([given["hone"], "train", given["config"], "--out", run, "--resume", "--quiet", "--iterations", str(iteration)],
                       stdout=subprocess.DEVNULL, check=True)
        header, data = read(run / "checkpoint.safetensors")
        now = {name: array.array("f", bytes(data[at])) for name, at in parameters(header).items()}
        for horizon in given["horizons"]:
            keep = math.exp(-given["every"] / horizon)
            mean = means.setdefault(horizon, now)
            means[horizon] = {name: array.array("f", (keep * old + (1 - keep) * new for old, new in zip(mean[name], values, strict=True)))
                              for name, values in now.items()}
    for horizon, mean in means.items():
        averaged = run.with_name(f"{run.name}-averaged-{horizon:g}")
        shutil.copytree(run, averaged, dirs_exist_ok=True)
        for name, at in parameters(header).items():
            data[at] = mean[name].tobytes()
        write(averaged / "checkpoint.safetensors", header, data)
        print(averaged)


if __name__ == "__main__":
    main()
