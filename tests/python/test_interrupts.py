"""Ctrl-C, wherever it arrives."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from conftest import FAKES, interrupted

COUNTED = "lambda z: (call(), (-0.5 * (z * z).sum(-1), -z))[1]"


def seconds(told):
    return float(told.split("took ")[1].split()[0])


def test_control_c_ends_a_fit_with_what_there_is():  # in the chains
    told = interrupted("r = hone.fit(" + COUNTED.replace("call()", "len(z) > 100 and call()") + ", dim=2, batched=True); "
                       "print(len(r.draws), r.verdict, r.notes[-1])", 30)
    assert int(told.split()[0]) >= 64 and "stopped early" in told


def test_control_c_in_the_searches_says_that_there_is_nothing():
    told = interrupted(f"\n    try: hone.fit({COUNTED}, dim=2, batched=True)\n    except KeyboardInterrupt as stop: print(type(stop).__name__, stop)",
                       12)
    assert told.startswith("KeyboardInterrupt interrupted while the first approximations were still searched for: "
                           "there is no result yet\n"), told


def test_control_c_is_heeded_inside_a_refinement():
    model = FAKES / "libfake_slow.so"  # 2 ms per gradient: the first refinement would take ten seconds and more
    told = interrupted(f"import warnings; warnings.simplefilter('error'); \n    try: hone.fit({str(model)!r}, threads=2)\n"
                       "    except UserWarning as warning: print(warning)", 15, told="128 iterations")
    assert "the fit was interrupted" in told and "verdict trust-neither" in told
    assert seconds(told) < 10


def test_control_c_ends_a_compiled_model_with_what_there_is():
    model = FAKES / "libfake_threads.so"
    told = interrupted(f"r = hone.fit({str(model)!r}, draws=1000); print(len(r.draws), r.notes[-1])", 1, told="iterations")
    assert int(told.split()[0]) >= 64 and "stopped early" in told


def test_a_second_control_c_ends_it_at_once():
    told = interrupted(f"hone.fit({COUNTED}, dim=2, batched=True)", 20, 25)
    assert told.startswith("KeyboardInterrupt") and seconds(told) < 10


def test_control_c_ends_a_training_with_a_checkpoint():
    told = interrupted("X = (np.random.default_rng(0).random((500, 50)) < 0.5).astype(np.uint8); "
                       "v = hone.VAE(2, (50,), iterations=10**6).fit(X); "
                       "print(v.finished_, v.n_iter_ > 0, v.transform(X).shape)", 3, told="elbo")
    assert told.startswith("False True (500, 2)")


TRAINED = ("X = (np.random.default_rng(0).random((100, 50)) < 0.5).astype(np.uint8); "
           "v = hone.VAE(2, (50,), iterations=20, progress=False).fit(X)")


@pytest.mark.parametrize("work", ["v.score_samples(X, 'ais', steps=1_000_000)", "v.score_samples(X, samples=1_000_000)",
                                  "v.transform(X, refine=1_000_000)"])
def test_control_c_is_heeded_inside_a_group_of_data(work):
    """Of 50 data, or a block of 500: minutes of work, or hours."""
    told = interrupted(work, 5, told="", before=TRAINED)
    assert told.startswith("KeyboardInterrupt") and seconds(told) < 10


CONSTRAIN = "lambda z: (call(), time.sleep(0.005), {'a': z[0]})[2]"  # 12,000 of them are a minute


@pytest.mark.parametrize("at", [100, 1500])
def test_control_c_is_heeded_where_natural_values_are_slow(at):
    """While they say whether there are enough draws, and later; fewer draws have values then."""
    told = interrupted("r = hone.fit(lambda z: (-0.5 * (z * z).sum(-1), -z), dim=2, seed=5, constrain=" + CONSTRAIN + "); "
                       "print(len(r.draws), r.interrupted, r.notes[-1])", at)
    assert 64 <= int(told.split()[0]) < 2000 and " True " in told and "stopped early" in told
    assert seconds(told) < 20  # of thirty and more


@pytest.mark.parametrize("call", ["hone.fit({model!r})", "hone.check(np.zeros((200, 1)), {model!r})"])
def test_control_c_ends_a_compiler(tmp_path, call):
    model = tmp_path / f"interrupted{os.getpid()}.stan"
    model.write_text("parameters { real a; } model { a ~ normal(0, 1); }")
    told = interrupted(call.format(model=str(model)), 5, told="compiling")
    assert told.startswith("KeyboardInterrupt")
    cache = Path(os.environ["XDG_CACHE_HOME"]) / "hone" / "stan"
    assert not list(cache.glob(f"{model.stem}-*.so")), told  # it did not go on to its end


def test_control_c_ends_a_check_with_what_there_is():
    told = interrupted("import warnings; draws = np.random.default_rng(0).standard_normal((500, 2)); "
                       "\n    with warnings.catch_warnings(record=True) as told:\n        warnings.simplefilter('always'); "
                       f"r = hone.check(draws, {COUNTED}, batched=True)\n"
                       "    for one in told: print(one.message, one.filename)\n    print(r.interrupted, r.notes[-1])", 20)
    warned = [line for line in told.splitlines() if line.startswith("the check was interrupted: ")]
    assert len(warned) == 1 and "this is what there was by then, verdict " in warned[0] and "<string>" in warned[0], told
    assert "\nTrue the check was stopped early" in "\n" + told


def test_control_c_says_what_becomes_of_the_work(capsys):
    from hone._progress import AT_CTRL_C, Work

    kept = {"fit": "with the result so far", "train": "with a checkpoint", "install": "nothing is installed",
            "refine": "no refined draws are kept", "evaluate": "no estimates are kept"}
    for kind, words in kept.items():
        with Work(kind, 10, True) as work:
            work._interrupt(2, None)
        assert words in capsys.readouterr().err
        assert kind == "fit" or "result so far" not in AT_CTRL_C[kind]


def test_control_c_says_so_while_a_model_is_compiled(tmp_path):
    model = tmp_path / "a.stan"
    model.write_text("parameters { real a; } model { a ~ normal(0, 1); }")
    code = ("import sys; from hone._progress import Work\nfrom hone import _hone\nkinds = []\n"
            "class Told(Work):\n    def __enter__(self): kinds.append(self); return super().__enter__()\n"
            "import hone._fit as fit; fit.Work = Told\n"
            "def named(*_): print(kinds[-1].kind); raise KeyboardInterrupt\n_hone.names_of = named\n"
            f"import hone\nfor call in (lambda: hone.fit({str(model)!r}), lambda: hone.check([[0.0]] * 200, {str(model)!r})):\n"
            "    try: call()\n    except KeyboardInterrupt: pass")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout == "compile\ncompile\n", done.stderr


def test_control_c_after_a_fit_of_pymc_leaves_the_fit():
    pymc = pytest.importorskip("pymc")
    from hone import _hone
    from hone._pymc import model_of

    with pymc.Model() as model:
        mu = pymc.Normal("mu")
        pymc.Normal("y", mu, observed=[0.5, 1.5])
    stop, z = _hone.Stop(), np.zeros((5, 1))
    assert model_of(model).groups(z, stop)["log_likelihood"]["y"].shape == (5, 2)
    stop.set()
    left = model_of(model).groups(z, stop)
    assert "log_likelihood" not in left and left["observed_data"]["y"].tolist() == [0.5, 1.5]
