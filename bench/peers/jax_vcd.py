#!/usr/bin/env python3
"""How fast JAX runs the training loop of `hone train` and the evaluation of `hone eval`. See README.md here."""

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import threading
import time

# Lets XLA put whole loops into CUDA graphs, not only stretches of kernels between loops.
LOOPS_IN_GRAPHS = "--xla_gpu_enable_command_buffer=+WHILE"
PRECISIONS = {"tf32": "tensorfloat32", "fp32": "highest"}
MAIN_CASE = {"model": "vae", "objective": "vcd", "steps": 8, "precision": "tf32", "runs": 1}
SHAPE = ("hidden", "batch")  # of a case with another shape than the paper's


class BadInput(Exception):
    pass


def default_cases():
    """Most wanted first, because the limit cuts off the end. The suite measures the main case before them."""
    def case(**changed):
        return {**MAIN_CASE, **changed}

    cases = [case(objective="kl"), case(objective="hoffman"), case(precision="fp32"), case(runs=8), case(runs=32)]
    mf = [case(model="logistic-mf"), case(model="logistic-mf", objective="hoffman"),
          case(model="logistic-mf", objective="kl")]
    lengths = [case(model=model, steps=t) for t in (25, 2, 4, 16) for model in ("vae", "logistic-mf")]
    shapes = [case(hidden=[500, 500], batch=200), case(hidden=[300, 200]), case(hidden=[200, 200, 200]),
              case(hidden=[1000, 1000]), case(hidden=[4000, 4000]), case(hidden=[500, 500], batch=1000),
              case(hidden=[500, 500], batch=5000), case(hidden=[500, 500], batch=200, precision="fp32"),
              case(hidden=[6000, 6000]), case(hidden=[500, 500], batch=5000, precision="fp32"),
              case(hidden=[4000, 4000], precision="fp32"), case(hidden=[500, 500], batch=10000),
              case(hidden=[2000, 2000], batch=1000), case(hidden=[3000, 3000], batch=1000),
              case(hidden=[4000, 4000], batch=500)]
    return [*cases[:2], *mf, *shapes, *cases[2:], *lengths]


def checked_case(case):
    allowed = {"model": ("vae", "logistic-mf"), "objective": ("kl", "hoffman", "vcd"), "precision": tuple(PRECISIONS),
               "unroll": ("none", "leapfrog", "all")}
    if not isinstance(case, dict):
        raise BadInput(f"a case of the suite must be an object, not {case!r}")
    for key, value in case.items():
        if key in allowed and value not in allowed[key]:
            raise BadInput(f"{key} {value!r}: expected one of {', '.join(allowed[key])}")
        if key in ("steps", "runs", "batch") and (not isinstance(value, int) or value < (0 if key == "steps" else 1)):
            raise BadInput(f"{key} {value!r}: expected a whole number")
        if key == "hidden" and not (isinstance(value, list) and all(isinstance(n, int) and n > 0 for n in value)):
            raise BadInput(f"hidden {value!r}: expected a list of units")
        if key not in allowed and key not in ("steps", "runs", *SHAPE):
            raise BadInput(f"a case has no key {key!r}; it has {', '.join([*allowed, 'steps', 'runs', *SHAPE])}")
    case = {**MAIN_CASE, **case}
    if case["objective"] == "kl":
        return {**case, "steps": 0}
    if case["steps"] < 1:
        raise BadInput("hoffman and vcd need at least one step")
    return case


def about_machine():
    import jax

    device = jax.devices()[0]
    name = device.device_kind if device.platform != "cpu" else f"cpu ({platform.machine()}, {os.cpu_count()} cores)"
    return {"device": name, "jax": jax.__version__, "xla_flags": os.environ.get("XLA_FLAGS", "")}


# One case


def time_case(case, iterations, repetitions, data):
    """Median time of an iteration, in microseconds, after compiling and one untimed repetition."""
    import jax
    import vcd_loop

    unroll = case.get("unroll", "leapfrog")
    shape = {key: tuple(case[key]) if key == "hidden" else case[key] for key in SHAPE if key in case}
    settings = vcd_loop.Settings(model=case["model"], objective=case["objective"], steps=case["steps"], unroll=unroll,
                                 data=data, **shape)
    with jax.default_matmul_precision(PRECISIONS[case["precision"]]):
        trainer = vcd_loop.Trainer(settings, runs=case["runs"], length=min(iterations, settings.epoch))
        trainer.wait()
        begin = time.perf_counter()
        trainer.train(iterations)
        trainer.wait()
        first = time.perf_counter() - begin
        seconds = []
        for _ in range(repetitions):
            begin = time.perf_counter()
            trainer.train(iterations)
            trainer.wait()
            seconds.append(time.perf_counter() - begin)
    trainer.check_finite()
    us = [1e6 * s / iterations for s in seconds]
    return {**case, "unroll": unroll, "us_per_iteration": round(statistics.median(us), 2),
            "us_per_run_iteration": round(statistics.median(us) / case["runs"], 2),
            "us_lowest": round(min(us), 2), "us_highest": round(max(us), 2), "repetitions": repetitions,
            "iterations": iterations, "compile_seconds": round(max(0.0, first - statistics.median(seconds)), 1),
            **{name: float(f"{value:.6g}") for name, value in trainer.estimates().items()}}


def show(record, as_json):
    if as_json:
        print(json.dumps(record), flush=True)
        return
    width = max(len(name) for name in record)
    print("\n".join(f"{name:<{width}}  {value}" for name, value in record.items()), flush=True)


def run_cases(cases, limit, options):
    """One JSON line per case, as a child of the suite. Names a case that does not fit into the limit."""
    begin = time.monotonic()
    machine = about_machine()
    taken = []
    for case in cases:
        if time.monotonic() - begin + (statistics.mean(taken) if taken else 0) > limit:
            show({**case, "skipped": "the time limit"}, True)
            continue
        start = time.monotonic()
        try:
            record = time_case(case, options.iterations, options.repetitions, options.data)
        except Exception as error:  # from XLA, or out of memory: the other cases go on
            record = {**case, "failed": str(error).splitlines()[0][:300]}
        taken.append(time.monotonic() - start)
        show({**record, **machine}, True)


# The suite: its own process does not load JAX, because XLA reads its flags once per process


def child(cases, limit, flags, options):
    """Runs cases in a new process, prints their lines as they come, and returns them. If the process broke there are
    fewer, and the last one says so."""
    if limit <= 0:
        records = [{**case, "skipped": "the time limit"} for case in cases]
        for record in records:
            show(record, True)
        return records
    environment = {**os.environ, "XLA_FLAGS": " ".join(filter(None, [os.environ.get("XLA_FLAGS", ""), flags]))}
    command = [sys.executable, os.path.abspath(__file__), "--cases", json.dumps(cases), "--limit", str(limit),
               "--iterations", str(options.iterations), "--repetitions", str(options.repetitions),
               "--data", str(options.data)]
    process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)
    too_long = threading.Timer(limit + 30, process.kill)
    too_long.start()
    records = []
    for line in process.stdout:
        print(line, end="", flush=True)
        records.append(json.loads(line))
    status = process.wait()
    too_long.cancel()
    if status == 2:  # it said why
        raise SystemExit(2)
    if status != 0 and len(records) < len(cases):
        records.append({**cases[len(records)], "failed": f"the process ended with status {status}",
                        "xla_flags": environment["XLA_FLAGS"]})
        show(records[-1], True)
    return records


def run_suite(cases, options):
    """First the main case in every way that may be fast, then all cases in the way that was."""
    begin = time.monotonic()

    def left():
        return options.limit - (time.monotonic() - begin)

    measured = {}
    if not options.variants:
        cases = [MAIN_CASE, *cases]
    for flags in ("", LOOPS_IN_GRAPHS) if options.variants else ():
        variants = [{**MAIN_CASE, "unroll": unroll} for unroll in ("leapfrog", "none")]
        for record in child(variants, min(left(), options.limit / 3), flags, options):
            if "us_per_iteration" in record:
                measured[flags, record["unroll"]] = record["us_per_iteration"]
    flags, unroll = min(measured, key=measured.get) if measured else ("", "leapfrog")
    cases = [{"unroll": unroll, **case} for case in cases]
    while cases:
        done = child(cases, left(), flags, options)
        broken = len(done) < len(cases) or "failed" in done[-1]
        # where loops in graphs broke the process, the case that did it gets another try without them
        cases = cases[len(done) - 1 if broken and flags else len(done):]
        flags = "" if broken else flags
    if options.variants:  # last, because it compiles longest
        child([{**MAIN_CASE, "unroll": "all"}], left(), "", options)


# The evaluation


def time_evaluation(options):
    import jax
    import jax.numpy as jnp
    import vcd_evaluate
    import vcd_loop

    settings = vcd_loop.Settings(model=options.model, data=options.data)
    evaluation = vcd_evaluate.EvaluationSettings(
        options.points, options.samples, options.burn_in, options.kept, min(options.chunk_points, options.points),
        min(options.chunk_samples, options.samples))
    with jax.default_matmul_precision(PRECISIONS[options.precision]):
        proposals, estimates = vcd_evaluate.evaluation_programs(settings, evaluation)
        keys = jax.random.split(jax.random.key(1), 4)
        theta = vcd_loop.initial_state(settings, keys[0]).theta
        x = jax.random.bernoulli(keys[1], 0.3, (evaluation.points, settings.pixels)).astype(jnp.uint8)
        begin = time.perf_counter()
        first = (theta, x, jnp.asarray(settings.first_step_size), keys[2])
        proposals = proposals.lower(*first).compile()
        drawn = jax.eval_shape(lambda: jnp.zeros((3, evaluation.points, settings.latent)))
        estimates = estimates.lower(theta, x, drawn, drawn, keys[3]).compile()
        compiled = time.perf_counter()
        mean, sd = jax.block_until_ready(proposals(*first))
        moved = time.perf_counter()
        found = jax.block_until_ready(estimates(theta, x, mean, sd, keys[3]))
        end = time.perf_counter()
    return {"evaluate": options.model, "precision": options.precision, **evaluation._asdict(),
            "seconds": round(end - compiled, 3), "chain_seconds": round(moved - compiled, 3),
            "sampling_seconds": round(end - moved, 3), "compile_seconds": round(compiled - begin, 1),
            "best": float(jnp.mean(found["best"])), "mixture": float(jnp.mean(found["mixture"])), **about_machine()}


# The command line


def units(text):
    try:
        return [int(n) for n in text.split(",")]
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text!r}: expected numbers with commas between them") from error


def parser():
    p = argparse.ArgumentParser(description="Times the training loop of `hone train`, written in JAX.")
    p.add_argument("--model", choices=("vae", "logistic-mf"), default="vae")
    p.add_argument("--objective", choices=("kl", "hoffman", "vcd"), default="vcd")
    p.add_argument("--steps", type=int, default=8, metavar="t", help="steps of HMC a refinement (default 8)")
    p.add_argument("--precision", choices=tuple(PRECISIONS), default="tf32", help="of matrix products (default tf32)")
    p.add_argument("--runs", type=int, default=1, metavar="R", help="runs side by side, by vmap (default 1)")
    p.add_argument("--hidden", type=units, metavar="N,N", help="the decoder's hidden layers (default: the paper's)")
    p.add_argument("--batch", type=int, default=100, metavar="n", help="data of a minibatch (default 100)")
    p.add_argument("--unroll", choices=("none", "leapfrog", "all"), default="leapfrog", help="which loops to unroll")
    p.add_argument("--iterations", type=int, default=500, metavar="n", help="of a timed repetition (default 500)")
    p.add_argument("--repetitions", type=int, default=7, help="timed; their median is reported (default 7)")
    p.add_argument("--data", type=int, default=50000, help="random data to train on (default 50000)")
    p.add_argument("--json", action="store_true", help="one line of JSON instead of a table")
    p.add_argument("--suite", nargs="?", const="", metavar="JSON",
                   help="a list of cases, one JSON line each; without a list those of the comparison")
    p.add_argument("--no-variants", dest="variants", action="store_false",
                   help="suite: the main case in one way alone, instead of looking for the fastest")
    p.add_argument("--limit", type=float, default=200, metavar="seconds",
                   help="suite: starts no case that is not likely to end in time (default 200)")
    p.add_argument("--cases", help=argparse.SUPPRESS)  # a child of the suite
    p.add_argument("--check", action="store_true", help="check the program on tiny problems in float64")
    p.add_argument("--evaluate", action="store_true", help="time the evaluation of a model instead of training")
    for name, value in (("points", 10000), ("samples", 20000), ("burn-in", 300), ("kept", 300), ("chunk-points", 100),
                        ("chunk-samples", 250)):
        p.add_argument(f"--{name}", type=int, default=value, help=f"evaluate: (default {value})")
    return p


def cases_of(text):
    if not text:
        return [checked_case(case) for case in default_cases()]
    try:
        cases = json.loads(text)
    except json.JSONDecodeError as error:
        raise BadInput(f"--suite: not JSON: {error}") from error
    if not isinstance(cases, list):
        raise BadInput("--suite: expected a list of cases")
    return [checked_case(case) for case in cases]


def check_options(o):
    for name in ("runs", "batch", "iterations", "repetitions", "data", "points"):
        if getattr(o, name) < 1:
            raise BadInput(f"--{name}: expected at least 1")
    epoch = o.data // o.batch
    if o.data % o.batch != 0 or not (epoch % o.iterations == 0 or o.iterations % epoch == 0):
        raise BadInput(f"--data {o.data} must be a multiple of the minibatch of {o.batch}, and --iterations "
                       f"{o.iterations} must divide an epoch of {epoch} iterations or be a multiple of it")
    if 3000 % min(o.iterations, epoch) != 0:
        raise BadInput("the lesser of --iterations and an epoch must divide 3000, after which C is kept per datum")


def main():
    options = parser().parse_args()
    try:
        check_options(options)
        if options.check:
            import vcd_check

            vcd_check.check_all()
        elif options.cases is not None:
            run_cases(cases_of(options.cases), options.limit, options)
        elif options.suite is not None:
            run_suite(cases_of(options.suite), options)
        elif options.evaluate:
            show(time_evaluation(options), options.json)
        else:
            shape = [name for name in SHAPE if getattr(options, name) != parser().get_default(name)]
            case = checked_case({name: getattr(options, name) for name in (*MAIN_CASE, "unroll", *shape)})
            show({**time_case(case, options.iterations, options.repetitions, options.data), **about_machine()},
                 options.json)
    except ModuleNotFoundError as error:
        print(f"{error}; this program needs JAX: python3 -m pip install jax", file=sys.stderr)
        return 2
    except (BadInput, ValueError) as error:
        print(error, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
