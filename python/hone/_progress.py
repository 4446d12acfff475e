"""The progress bar, and Ctrl-C, of long work."""

from __future__ import annotations

import atexit
import os
import signal
import sys
import threading
import time
from dataclasses import dataclass
from types import FrameType
from typing import Any

from . import _hone

WIDTH = 20
SECONDS_PER_LINE = 5  # where each line stays
SECONDS_AT_EXIT = 10  # that work in daemon threads has for its end
AT_CTRL_C = {  # what the first one does to each kind of work
    "fit": "stopping with the result so far",
    "check": "stopping with the result so far",
    "train": "stopping with a checkpoint",
    "compile": "stopping: the model is not compiled",
    "install": "stopping: nothing is installed",
    "log_likelihood": "stopping: the fit stays, without log_likelihood",
    "refine": "stopping: no refined draws are kept",
    "evaluate": "stopping: no estimates are kept",
}

STOPPED = {  # what the KeyboardInterrupt says where the work has nothing to return
    "fit": "interrupted while the first approximations were still searched for: there is no result yet",
    "check": "interrupted before the chains had begun: there is no result yet",
    "train": "interrupted before the first checkpoint",
    "compile": "interrupted: the model is not compiled",
    "install": "interrupted: nothing is installed",
    "log_likelihood": "interrupted: there is no log_likelihood",
    "refine": "interrupted: no refined draws are kept",
    "evaluate": "interrupted: no estimates are kept",
}


def _in_notebook() -> bool:
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return shell is not None and hasattr(shell, "kernel")


def _duration(seconds: float) -> str:
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    return f"{whole // 60} min {whole % 60:02} s" if whole < 3600 else f"{whole // 3600} h {whole // 60 % 60:02} min"


@dataclass(frozen=True)
class Total:
    """How far a progress bar goes."""

    size: float | None  # None: nobody knows
    in_seconds: bool = False
    is_limit: bool = False  # the work may end before, when it is good enough


_in_daemons: set[Work] = set()  # work that an exit of Python does not wait for by itself


def _end_daemons() -> None:
    """At the exit of Python: afterwards its threads are cut off wherever they are, in the engine too."""
    if not _in_daemons:
        return
    _hone.leave(True)
    for work in list(_in_daemons):
        work.stop.set()
    until = time.monotonic() + SECONDS_AT_EXIT
    while _in_daemons and time.monotonic() < until:
        time.sleep(0.005)
    _hone.leave(False)


atexit.register(_end_daemons)
os.register_at_fork(after_in_child=_in_daemons.clear)  # a child has one thread


class Work:
    """While it lives, `tell` draws a bar with the time left, and the first Ctrl-C asks the work to end, as AT_CTRL_C says.

    A second Ctrl-C raises KeyboardInterrupt. A handler for SIGINT that is not Python's own stays in place.
    """

    def __init__(self, label: str, total: int | Total, progress: bool | None) -> None:
        if progress not in (None, True, False):
            raise TypeError(f"progress: expected True, False or None, found {progress!r}")
        self.stop = _hone.Stop()
        self.before = 0  # done in earlier parts of this work
        self.kind = label  # of AT_CTRL_C; parts of the work may be of another
        self._label, self._total = label, total if isinstance(total, Total) else Total(total)
        self._notebook = progress is not False and _in_notebook()
        self._terminal = progress is not False and not self._notebook and sys.stderr.isatty()
        self._plain = progress is True and not self._notebook and not self._terminal  # lines, for a file or a pipe
        self._display: Any = None
        self._begun = time.monotonic()
        self._first: tuple[float, int] | None = None  # when it was first told, and how far the work was: a resumed run does not start at 0
        self._handler: Any = None
        self._shown = 0.0

    @property
    def tell(self) -> Any:
        """What long work calls with (text, done); None where nothing is shown."""
        return self._tell if self._terminal or self._plain or self._notebook else None

    def say(self, text: str) -> None:
        if self._terminal or self._plain:
            print(f"\r\x1b[K{text}" if self._terminal else text, file=sys.stderr, flush=True)
        elif self._notebook:
            self._show(text)

    def _line(self, text: str, done: int) -> str:
        now = time.monotonic()
        seconds, total = _duration(now - self._begun), self._total
        if total.size is None:
            return f"{self._label}  {text}  {seconds}"
        reached = now - self._begun if total.in_seconds else done
        fraction = min(1.0, reached / max(1, total.size))
        full = round(fraction * WIDTH)
        bar = "█" * full + "░" * (WIDTH - full)
        self._first = self._first or (self._begun if total.in_seconds else now, 0 if total.in_seconds else done)
        since, before = self._first
        if before < reached < total.size:
            left = _duration((total.size - reached) * (now - since) / (reached - before))
            seconds += f", {'at most ' if total.is_limit else ''}{left} left"
        return f"{self._label}  {bar} {100 * fraction:3.0f} %  {seconds}  {text}"

    @staticmethod
    def _columns() -> int:
        try:
            return os.get_terminal_size(sys.stderr.fileno()).columns or 80
        except (OSError, ValueError):  # a terminal of somebody else's making
            return 80

    def _tell(self, text: str, done: int) -> None:
        done += self.before
        now = time.monotonic()
        if self._shown and now - self._shown < (SECONDS_PER_LINE if self._plain else 0.1):
            return
        self._shown = now
        if self._terminal:
            print(f"\r\x1b[K{self._line(text, done)[: self._columns() - 1]}", end="", file=sys.stderr, flush=True)
        elif self._plain:
            print(self._line(text, done), file=sys.stderr, flush=True)
        elif self._display is None:
            self._display = self._show(self._line(text, done), display_id=True)
        else:
            self._display.update({"text/plain": self._line(text, done)}, raw=True)

    @staticmethod
    def _show(text: str, **named: Any) -> Any:
        """A line of its own in a notebook."""
        from IPython.display import display

        return display({"text/plain": text}, raw=True, **named)

    def __enter__(self) -> Work:
        if threading.current_thread().daemon:
            _in_daemons.add(self)
        if threading.current_thread() is threading.main_thread():
            if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
                self._handler = signal.signal(signal.SIGINT, self._interrupt)
        return self

    def _interrupt(self, number: int, frame: FrameType | None) -> None:
        if self.stop:
            raise KeyboardInterrupt
        self.stop.set()
        self.say(f"{AT_CTRL_C[self.kind]}; Ctrl-C again stops at once")

    def __exit__(self, kind: Any, error: BaseException | None, _: object) -> None:
        self._leave()
        if self in _in_daemons:
            _in_daemons.remove(self)
            if isinstance(error, _hone.Stopped):
                raise SystemExit from None  # of the thread, in silence
        if isinstance(error, _hone.Stopped):
            raise KeyboardInterrupt(STOPPED[self.kind]) from None

    def _leave(self) -> None:
        if self._handler is not None:
            signal.signal(signal.SIGINT, self._handler)
        if self._terminal and self._shown:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)
        if self._display is not None:
            self._display.update({"text/plain": ""}, raw=True)
