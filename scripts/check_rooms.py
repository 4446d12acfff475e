#!/usr/bin/env python3
"""Checks the walls: each room includes only itself and the rooms above it, the library never includes the application,
the engines do not include each other, no file of the report reaches what loads data, trains or evaluates, not through other
headers either (of the library it includes base alone; the settings and records of app/run it reads), and only the command
line and the progress line print."""
import functools
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
# Headers of rooms above that a room may not reach, directly or through headers of its own or of others; and, of rooms that
# are closed, the headers that it may reach through others.
CLOSED = {"app/report": ["app/data/", "app/run/train.hpp", "app/run/trained_model.hpp", "app/run/networks.hpp",
                         "app/run/using_model.hpp", "app/run/use.hpp", "app/run/evaluate.hpp",
                         "app/run/iteration_bench.hpp", "app/run/paper/pace.hpp", "app/run/paper/training_runs.hpp",
                         "hone/engine/engine.hpp", "hone/engine/engines.hpp", "hone/engine/cpu/", "hone/engine/cuda/"]}
REACHED = {"app/report": ["app/data/binarization.hpp", "app/data/csv_header.hpp"]}  # the names in a run's settings
UMBRELLA = "hone/hone.hpp"
PRINTING = ["app/run/progress.cpp"]
PRINT = re.compile(r"\bstd::(cout|cerr|clog|exit|abort|printf|puts|fputs|fprintf)\b|\bfmt::print\(|(?<![:\w])f?(printf|puts)\(")

INCLUDE = re.compile(r'\s*#\s*include\s*[<"]((?:hone|app|tests|bench)/[^">]+|[^">]+(?="))[">]')

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
    else:
        for path in closed_paths(included, room):
            faults.append(f"{place}: room '{room}' may not reach {path[-1]}" +
                          (f", which it does by {' -> '.join(path[:-1])}" if len(path) > 1 else ""))


@functools.cache
def includes_of(name):
    path = root / name
    lines = path.read_text().splitlines() if path.exists() else []
    return [found[1] for found in map(INCLUDE.match, lines) if found and (root / found[1]).exists()]


def closed_paths(header, room):
    """The ways from a header to those that are closed to a room: each is a list of headers, the closed one last."""
    closed, reached = tuple(CLOSED.get(room, ())), REACHED.get(room, [])
    paths, seen = [[header]] if closed else [], {header}
    for path in paths:
        if path[-1].startswith(closed) and path[-1] not in reached:
            yield path
            continue
        for other in includes_of(path[-1]):
            if other not in seen:
                seen.add(other)
                paths.append([*path, other])


for building in ("hone", "app", "python/src"):
    for path in sorted(p for p in (root / building).rglob("*.*") if p.suffix in (".cpp", ".hpp", ".cu", ".cuh")):
        name = str(path.relative_to(root))
        room = room_of(name)
        if room is None:
            if name != UMBRELLA:
                faults.append(f"{name}: is in no room")
            continue
        for number, line in enumerate(path.read_text().splitlines(), 1):
            include = INCLUDE.match(line)
            if include:
                check(name, room, number, include[1])
            if room != "app/cli" and name not in PRINTING and PRINT.search(line):
                faults.append(f"{name}:{number}: only the command line prints and exits")
for fault in faults:
    print(fault, file=sys.stderr)
print(f"{len(faults)} faults in the order of rooms")
sys.exit(1 if faults else 0)
