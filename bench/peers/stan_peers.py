#!/usr/bin/env python3
"""Stan's own NUTS, Pathfinder, ADVI and Laplace on the shared posteriors, by stan_services.cpp.

    python3 -m pip download --no-deps --only-binary=:all: --python-version 3.12 httpstan
    python3 bench/peers/stan_peers.py --httpstan httpstan-*.whl --out peers.jsonl

The wheel has stanc and Stan's headers. The driver and eight models take some minutes to compile, once,
by CXX or g++."""
import argparse
import json
import os
import pathlib
import re
import subprocess
import sys
import zipfile

import shared

HERE = pathlib.Path(__file__).resolve().parent
COMPILER = os.environ.get("CXX", "g++")
METHODS = {"nuts": "Stan NUTS", "pathfinder": "Stan Pathfinder", "meanfield": "Stan ADVI, mean field",
           "fullrank": "Stan ADVI, full rank", "laplace": "Stan Laplace"}
FLAGS = ["-std=c++17", "-O2", "-w", "-DSTAN_THREADS", "-D_REENTRANT", "-DBOOST_DISABLE_ASSERTS",
         "-DBOOST_PHOENIX_NO_VARIADIC_EXPRESSION"]
LAST_STEP = "return log_prob_impl<propto__, jacobian__>(params_r, params_i, pstream);"


def unpack(wheel, into):
    if wheel.is_dir():
        return wheel / "httpstan" if (wheel / "httpstan").is_dir() else wheel
    home = into / wheel.stem / "httpstan"
    if not home.is_dir():
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(into / wheel.stem)
        (home / "stanc").chmod(0o755)
    return home


def compile_object(home, source, target):
    if not target.exists() or target.stat().st_mtime < source.stat().st_mtime:
        print(f"compiling {source.name}", file=sys.stderr, flush=True)
        subprocess.run([COMPILER, *FLAGS, f"-I{home / 'include'}", f"-I{HERE}", "-c", str(source), "-o", str(target)],
                       check=True)
    return target


def counted_model(home, name, build):
    """The C++ code of a Stan program, whose log_prob says that it was called."""
    source = build / f"{name}.cpp"
    if source.exists():
        return source
    raw = build / f"{name}.hpp"
    subprocess.run([str(home / "stanc"), f"--o={raw}", str(shared.program(name))], check=True)
    # Two overloads: over vectors of Eigen and of the standard library, both of element type T_.
    code, places = re.subn(re.escape(LAST_STEP), "peers::count<T_>(); " + LAST_STEP, raw.read_text())
    if places != 2:
        raise SystemExit(f"{raw}: expected two log_prob that end with '{LAST_STEP}', found {places}")
    source.write_text('#include "stan_count.hpp"\n' + code)
    return source


def build_program(home, name, build):
    driver = compile_object(home, HERE / "stan_services.cpp", build / "stan_services.o")
    model = compile_object(home, counted_model(home, name, build), build / f"{name}.o")
    target = build / name
    if not target.exists() or target.stat().st_mtime < max(p.stat().st_mtime for p in (driver, model)):
        library = home / "lib"
        static = [str(p) for p in sorted(library.glob("libsundials_*.a"))]
        subprocess.run([COMPILER, "-o", str(target), str(driver), str(model), *static, str(library / "libtbb.so.2"),
                        f"-Wl,-rpath,{library.resolve()}"], check=True)
    return target


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--httpstan", type=pathlib.Path, required=True, help="the wheel, or the folder it was unpacked to")
    parser.add_argument("--build", type=pathlib.Path, default=shared.ROOT / "build" / "peers", help="compiled programs")
    parser.add_argument("--out", default="peers.jsonl", help="one JSON object per run; runs that it has are left out")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", choices=sorted(shared.POSTERIORS), action="append", help="these posteriors")
    given = parser.parse_args()
    if not given.httpstan.exists():
        parser.error(f"--httpstan: there is no '{given.httpstan}'")
    given.build.mkdir(parents=True, exist_ok=True)
    home = unpack(given.httpstan, given.build).resolve()
    there = shared.done(given.out)
    for name in given.only or shared.POSTERIORS:
        wanted = [m for m, peer in METHODS.items() if (name, peer, given.seed) not in there]
        if not wanted:
            continue
        run = build_program(home, name, given.build)
        for method in wanted:
            line = {"posterior": name, "peer": METHODS[method], "seed": given.seed}
            ended = subprocess.run([str(run), method, str(shared.data(name)), str(given.seed)], capture_output=True,
                                   text=True, check=False)
            if ended.returncode != 0:
                shared.append(given.out, line | {"claim": "failed: " + ended.stderr.strip().splitlines()[-1]})
                continue
            result = json.loads(ended.stdout)
            draws = {shared.dotted(key): value for key, value in result.pop("parameters").items()}
            shared.append(given.out, line | result | (shared.score(name, draws) if result["draws"] else {}))


if __name__ == "__main__":
    main()
