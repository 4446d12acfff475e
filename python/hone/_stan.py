"""hone.install_stan."""

from __future__ import annotations

import os

from . import _hone
from ._data import path_of
from ._progress import Total, Work


def install_stan(wheel: str | os.PathLike[str] | None = None, *, progress: bool | None = None) -> str:
    """Installs Stan into your cache, once, and returns which it is: what `hone stan install` does.

    Takes the Python package httpstan: pip downloads 35 MB, or `wheel` is its file, for machines without network. It
    needs a C++ compiler, the one that the environment variable CXX names, else clang++, else g++, and takes about a
    minute. Ctrl-C ends it, with KeyboardInterrupt, and nothing half installed stays.
    """
    with Work("install", Total(None), progress) as work:
        return _hone.install("" if wheel is None else str(path_of(wheel)), work.stop, work.tell)
