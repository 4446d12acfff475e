#!/usr/bin/env python3
"""Checks the walls: each room includes only itself and the rooms above it, the library never includes the application,
the engines do not include each other, no file of the report includes what trains or evaluates (of the library it includes
base alone; the settings and records of app/run it reads), and only the command line and the progress line print."""
import pathlib
import re
import sys

LIBRARY = ["base", "tensor", "target", "family", "mcmc", "objective", "optim", "assess", "fit", "latent", "engine",
           "engine/cpu", "engine/cuda", "mpi"]
APPLICATION = ["data", "run", "report", "cli"]
ROOMS = [f"hone/{room}" for room in LIBRARY] + [f"app/{room}" for room in APPLICATION] + ["python/src"]
# Rooms above that a room may nevertheless not use.
FORBIDDEN = {
    "hone/family": ["hone/target"],        # q never sees a target
    "hone/engine/cuda": ["hone/engine/cpu"],
    "hone/mpi": [f"hone/{room}" for room in LIBRARY if room not in ("base", "mpi")],  # a module of its own
    "python/src": ["app/report", "app/cli"],
    "app/report": [f"hone/{room}" for room in LIBRARY if room != "base"] + ["app/data"],
}
# Files that may include rooms below: the table of engines.
ALLOWED = {"hone/engine/engines.cpp": ["hone/engine/cpu", "hone/engine/cuda"]}
# Headers of rooms above that a room may not include.
CLOSED = {"app/report": ["app/run/train.hpp", "app/run/networks.hpp", "app/run/using_model.hpp", "app/run/use.hpp"]}
UMBRELLA = "hone/hone.hpp"
PRINTING = ["app/run/progress.cpp"]
PRINT = re.compile(r"\bstd::(cout|cerr|clog|exit|abort|printf|puts|fputs|fprintf)\b|\bfmt::print\(|(?<![:\w])f?(printf|puts)\(")

root = pathlib.Path(__file__).resolve().parent.parent
faults = []


def room_of(path):
    """The innermost room that holds a file: hone/engine/cuda/product/tile.cuh is in hone/engine/cuda."""
    inside = [room for room in ROOMS if path.startswith(room + "/")]
    return max(inside, key=len) if inside else None


def check(name, room, number, included):
    place = f"{name}:{number}"
    if not (root / included).exists():
        faults.append(f'{place}: include "{included}" is not the path of a file of ours')
        return
    other = room_of(included)
    if other is None:
        faults.append(f'{place}: include "{included}": only users of the library include this')
    elif other in ALLOWED.get(name, []):
        return
    elif ROOMS.index(other) > ROOMS.index(room):
        faults.append(f"{place}: room '{room}' may not use room '{other}', which is below it")
    elif other in FORBIDDEN.get(room, []):
        faults.append(f"{place}: room '{room}' may not use room '{other}'")
    elif included in CLOSED.get(room, []):
        faults.append(f"{place}: room '{room}' may not use {included}")


for building in ("hone", "app", "python/src"):
    for path in sorted(p for p in (root / building).rglob("*.*") if p.suffix in (".cpp", ".hpp", ".cu", ".cuh")):
        name = str(path.relative_to(root))
        room = room_of(name)
        if room is None:
            if name != UMBRELLA:
                faults.append(f"{name}: is in no room")
            continue
        for number, line in enumerate(path.read_text().splitlines(), 1):
            include = re.match(r'\s*#\s*include\s*[<"]((?:hone|app|tests|bench)/[^">]+|[^">]+(?="))[">]', line)
            if include:
                check(name, room, number, include[1])
            if room != "app/cli" and name not in PRINTING and PRINT.search(line):
                faults.append(f"{name}:{number}: only the command line prints and exits")
for fault in faults:
    print(fault, file=sys.stderr)
print(f"{len(faults)} faults in the order of rooms")
sys.exit(1 if faults else 0)
