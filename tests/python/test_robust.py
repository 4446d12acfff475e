"""Exceptions at every stage, threads, fork, leaks, lifetimes."""

import gc
import os
import pickle
import pty
import re
import signal
import subprocess
import sys
import termios
import threading
import time
import weakref

import numpy as np
import pytest
from conftest import FAKES, PROGRAM, SLOW, SMALL, gaussian, gaussians, stripes

import hone
from hone import _hone


class Mine(Exception):
    pass


@pytest.mark.parametrize("call", [1, 2, 5, 30, 100, 300])
def test_an_exception_in_the_density_arrives_unchanged(call):
    raised = Mine("mine")
    count = 0

    def density(z):
        nonlocal count
        count += 1
        if count >= call:
            raise raised
        return gaussians(z)

    with pytest.raises(Mine) as caught:
        hone.fit(density, dim=2, batched=True, progress=False)
    assert caught.value is raised and count == call


def test_exceptions_elsewhere_arrive_unchanged():
    def constrain(z):
        if constrain.count > 10:
            raise Mine("constrain")
        constrain.count += 1
        return {"a": z[0]}

    constrain.count = 0
    with pytest.raises(Mine):
        hone.fit(gaussian, dim=2, constrain=constrain, progress=False)

    def in_threads(z):
        if threading.current_thread() is not threading.main_thread():
            raise Mine("in a thread of the engine")
        return gaussians(z)

    with pytest.raises(Mine):
        hone.fit(in_threads, dim=2, batched=True, threads=4, progress=False)


def test_callbacks_hold_the_gil_on_every_thread():
    threads = set()

    def density(z):
        threads.add(threading.get_ident())
        time.sleep(0)  # lets others run: without the GIL this would crash
        return gaussians(z)

    short = dict(dim=2, seed=5, draws=500, budget=100_000, progress=False)
    r = hone.fit(density, batched=True, threads=4, **short)
    assert len(threads) > 1
    assert np.array_equal(r.draws, hone.fit(gaussians, **short).draws)


def test_the_gil_is_free_while_a_model_runs():
    ticks = []
    done = threading.Event()

    def count():
        while not done.is_set():
            ticks.append(time.perf_counter())
            time.sleep(0.005)

    other = threading.Thread(target=count)
    other.start()
    began = time.perf_counter()
    hone.fit(FAKES / "libfake_threads.so", threads=1, budget=1, draws=300, progress=False)
    took = time.perf_counter() - began
    done.set()
    other.join()
    assert len(ticks) > 0.2 * took / 0.005


def test_the_gil_is_free_while_data_are_read():
    """Bits are packed, and others looked through, when a model gets them."""
    ones = np.ones((150_000, 1000), np.uint8)
    ticks, done = [], threading.Event()

    def count():
        while not done.is_set():
            ticks.append(time.perf_counter())
            time.sleep(0.001)

    other = threading.Thread(target=count)
    other.start()
    spans = []
    floats = ones[:50_000].astype(np.float32)  # NumPy frees the GIL too: not while the time counts
    for make in (lambda: _hone.Data.bytes(ones, [1, 1000, 1]), lambda: _hone.Data.floats(floats, [1, 1000, 1])):
        began = time.perf_counter()
        make()
        spans.append((began + 0.002, time.perf_counter() - 0.002))
    done.set()
    other.join()
    assert all(any(begin < tick < end for tick in ticks) for begin, end in spans), spans


def test_several_fits_at_once(result):
    made = {}

    def work(k):
        made[k] = hone.fit(gaussians, dim=2, seed=5, progress=False)

    workers = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert all(np.array_equal(made[k].draws, result.draws) for k in range(4))


def test_work_that_is_interrupted_leaves_nothing_behind(trained):
    data = np.random.default_rng(0).random((100, trained.n_features_in_)) < 0.3
    expected = trained.score_samples(data[:10], samples=50)

    def once():
        timer = threading.Timer(0.1, lambda: os.kill(os.getpid(), signal.SIGINT))
        timer.start()
        with pytest.raises(KeyboardInterrupt):
            trained.score_samples(data, "ais", steps=100_000)  # small arrays: the allocator keeps freed ones of megabytes
        timer.join()

    for _ in range(5):
        once()
    gc.collect()
    before, threads = memory(), threading.active_count()
    for _ in range(20):
        once()
    gc.collect()
    assert memory() - before < 8e6 and threading.active_count() == threads
    np.testing.assert_array_equal(trained.score_samples(data[:10], samples=50), expected)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_handler_of_the_users_own_stays():
    code = ("import os, signal, threading, time, numpy as np, hone\nclass Mine(Exception): pass\n"
            "def mine(*_): raise Mine\nsignal.signal(signal.SIGINT, mine)\n"
            "threading.Timer(0.7, lambda: os.kill(os.getpid(), signal.SIGINT)).start()\n"
            f"try: hone.fit({SLOW}, dim=2, batched=True)\nexcept Mine: print('mine')")
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "mine\n"


def test_progress_in_a_terminal_and_silence():
    quiet = subprocess.run([sys.executable, "-c", "import hone; hone.fit(lambda z: (-0.5 * z @ z, -z), dim=1, budget=1)"],
                           capture_output=True, text=True)
    assert quiet.stdout == "" and quiet.stderr == ""
    shown = subprocess.run([sys.executable, "-c", "import hone; hone.fit(lambda z: (-0.5 * z @ z, -z), dim=1, budget=50_000, draws=300, progress=True)"],
                           capture_output=True, text=True)
    assert "fit  " in shown.stderr and " %  " in shown.stderr and shown.stdout == ""
    assert "\r" not in shown.stderr and "\x1b" not in shown.stderr and shown.stderr.endswith("\n")  # lines in a pipe


def lines_in_a_terminal(*words):
    """The lines that a command shows, one over the other, in a terminal of 80 columns."""
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (24, 80))
    shown = b""
    with subprocess.Popen(words, stdout=theirs, stderr=theirs):
        os.close(theirs)
        try:
            while part := os.read(ours, 65536):
                shown += part
        except OSError:  # the command has ended
            pass
    os.close(ours)
    return shown.decode().split("\r\x1b[K")[1:]


def test_a_terminal_shows_the_time_left(tmp_path):
    code = ("import numpy as np, hone; X = (np.random.default_rng(0).random((500, 50)) < 0.5).astype(np.uint8); "
            "hone.VAE(2, (8,), encoder_hidden=(8,), steps=4, iterations=10_000, threads=1).fit(X)")
    (tmp_path / "c.toml").write_text('model = "vae"\ndata = "synthetic"\nhidden = [8]\nencoder_hidden = [8]\nsteps = 4\n'
                                    "iterations = 1000\nthreads = 1\n")
    own, program = (lines_in_a_terminal(*words) for words in (
        (sys.executable, "-c", code), (PROGRAM, "train", tmp_path / "c.toml", "--out", tmp_path / "run")))
    for lines in (own, program):
        bars = [line for line in lines if "█" in line]
        assert len(bars) > 1 and any(re.search(r"\d (m?s|min .*) left", line) for line in bars), lines
        assert max(len(line.splitlines()[0]) for line in bars) < 80
    assert own[-1].strip() == ""  # the bar is wiped


def test_the_time_left_is_that_of_what_remains(monkeypatch):
    from hone._progress import Total, Work

    def line(after, done, total=1000):
        now = [100.0]
        monkeypatch.setattr(time, "monotonic", lambda: now[0])
        work = Work("train", total, True)
        now[0] += 5  # before the first iteration
        assert "left" not in work._line("", 400)  # a run that continues
        now[0] += after
        return work._line("ELBO −3", done)

    assert line(10, 500) == "train  ██████████░░░░░░░░░░  50 %  15 s, 50 s left  ELBO −3"
    assert "1 min 05 s, 5 min 00 s left" in line(60, 500)
    assert "2 h 46 min left" in line(2000, 500) and "left" not in line(10, 1000)
    assert "at most 50 s left" in line(10, 500, total=Total(1000, is_limit=True))


def memory():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def test_a_thousand_fits_at_constant_memory():
    def once(k):
        hone.fit(gaussians, dim=2, seed=k, budget=1, draws=100, starts=1, steps=2, progress=False)

    for k in range(100):
        once(k)
    gc.collect()
    before = memory()
    for k in range(1000):
        once(k)
    gc.collect()
    assert memory() - before < 8e6  # a leak of one result each would be 30 MB


def test_failing_fits_and_trainings_do_not_leak():
    X = stripes(100, 1)

    def once():
        with pytest.raises(Mine):
            hone.fit(lambda z: (_ for _ in ()).throw(Mine()), dim=2, batched=True, progress=False)
        hone.VAE(2, (4,), encoder_hidden=(4,), iterations=1, progress=False).fit(X).transform(X)

    for _ in range(20):
        once()
    gc.collect()
    before = memory()
    for _ in range(60):
        once()
    gc.collect()
    assert memory() - before < 8e6


def test_densities_and_data_are_released():
    class Density:
        def __call__(self, z):
            return gaussians(z)

    density = Density()
    gone = weakref.ref(density)
    hone.fit(density, dim=2, budget=1, draws=100, progress=False)
    del density
    gc.collect()
    assert gone() is None


def test_a_model_may_be_deleted_while_a_fit_runs():
    class Density:
        def __init__(self):
            self.calls = 0

        def __call__(self, z):
            self.calls += 1
            if self.calls == 3:
                models.clear()
                gc.collect()
            return gaussians(z)

    models = [Density()]
    r = hone.fit(models[0], dim=2, batched=True, progress=False)
    assert r.verdict == "use-q" and not models


@pytest.mark.filterwarnings("ignore:.*fork.*")
def test_fork(result):
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        same = False
        try:
            same = np.array_equal(hone.fit(gaussians, dim=2, seed=5, threads=2, progress=False).draws, result.draws)
        finally:
            os.write(writing, b"y" if same else b"n")
            os._exit(0)
    assert os.read(reading, 1) == b"y"
    os.waitpid(child, 0)
    assert np.array_equal(hone.fit(gaussians, dim=2, seed=5, progress=False).draws, result.draws)


@pytest.mark.filterwarnings("ignore:.*fork.*")
def test_a_fitted_estimator_works_after_a_fork(trained):
    """The parent's networks keep a team of threads, which a child does not have."""
    data = stripes(20, 3)

    def made(model):
        return model.score_samples(data, samples=50), model.transform(data, refine=2), model.transform(data)

    expected = made(trained)
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        signal.alarm(100)  # for a child that waits for ever
        try:
            same = all(map(np.array_equal, made(trained), expected))
            trained.__dict__.pop("_networks")  # the parent's too: nobody waits for its threads
            gc.collect()
            os.write(writing, b"y" if same and all(map(np.array_equal, made(trained), expected)) else b"n")
        finally:
            os._exit(0)
    os.close(writing)
    assert os.read(reading, 1) == b"y"
    os.waitpid(child, 0)
    assert all(map(np.array_equal, made(trained), expected))


@pytest.mark.parametrize("work", [
    "hone.fit(density, dim=3, batched=True, threads=2)", "hone.check(np.random.default_rng(0).standard_normal((200, 3)), density, batched=True)",
    "(begun.set(), hone.fit({fake!r}, budget=10**9))", "(begun.set(), hone.VAE(2, (50,), iterations=10**7, threads=2, progress=False).fit(X))"])
def test_python_ends_while_a_daemon_thread_works(work):
    """Work of the engine would be cut off inside it, and abort."""
    fake = str(FAKES / "libfake_slow.so")
    code = ("import threading, time, numpy as np, hone\nbegun = threading.Event()\nX = np.random.default_rng(0).random((500, 50)) < 0.5\n"
            "def density(z):\n    begun.set()\n    time.sleep(0.01)\n    return -0.5 * (z * z).sum(-1), -z\n"
            f"threading.Thread(target=lambda: {work.format(fake=fake)}, daemon=True).start()\nbegun.wait()\ntime.sleep(0.3)\nprint('ends')")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout, done.stderr) == (0, "ends\n", "")


def test_signals_arrive_while_training(trained):
    assert trained.finished_ and signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert SMALL["progress"] is False


def test_threads_share_an_estimator(trained):
    """One engine serves all evaluations of a model; several threads may ask for one at once."""
    data = np.random.default_rng(0).random((40, trained.n_features_in_)) < 0.3
    expected = trained.score_samples(data, samples=50)
    for _ in range(3):
        model = pickle.loads(pickle.dumps(trained))
        results = [None] * 4

        def score(index, model=model, results=results):
            results[index] = model.score_samples(data, samples=50)

        threads = [threading.Thread(target=score, args=(i,)) for i in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for result in results:
            np.testing.assert_array_equal(result, expected)
