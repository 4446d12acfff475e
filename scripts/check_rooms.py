#!/usr/bin/env python3
"""Checks that every room of hone/ includes only itself and the rooms above it, and that the library never prints or exits."""
import pathlib
import re
import sys

ROOMS = ["base", "tensor", "data", "target", "family", "mcmc", "objective", "optim", "assess", "fit", "latent", "engine",
         "run", "report", "cli"]
root = pathlib.Path(__file__).resolve().parent.parent
faults = []
for path in sorted(p for p in (root / "hone").rglob("*.*") if p.suffix in (".cpp", ".hpp", ".cu", ".cuh")):
    name = path.relative_to(root)
    room = name.parts[1]
    if room not in ROOMS:
        faults.append(f"{name}: '{room}' is not a room")
        continue
    for number, line in enumerate(path.read_text().splitlines(), 1):
        include = re.match(r'\s*#include "([^"]+)"', line)
        if include:
            parts = include[1].split("/")
            if parts[0] != "hone" or not (root / include[1]).exists():
                faults.append(f"{name}:{number}: include \"{include[1]}\" is not the path of a file of ours")
            elif ROOMS.index(parts[1]) > ROOMS.index(room):
                faults.append(f"{name}:{number}: room '{room}' may not use room '{parts[1]}', which is below it")
        if room != "cli" and re.search(r"\bstd::(cout|cerr|exit|abort|printf|puts)\b|(?<![:\w])printf\(", line):
            faults.append(f"{name}:{number}: the library never prints and never exits")
for fault in faults:
    print(fault, file=sys.stderr)
print(f"{len(faults)} faults in the order of rooms")
sys.exit(1 if faults else 0)
