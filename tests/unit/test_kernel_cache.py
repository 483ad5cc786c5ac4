"""Compiled code finds a place, or gets one."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from numba import njit

from shoal.cli import progress
from shoal.cli.progress import watched_compiler
from shoal.kernels import needs_cache_place


def test_a_writable_home_or_package_is_enough(tmp_path):
    assert not needs_cache_place(tmp_path, Path("/nonexistent"))
    assert not needs_cache_place(Path("/nonexistent"), tmp_path)


def test_without_either_a_place_is_needed():
    assert needs_cache_place(Path("/nonexistent"), Path("/nonexistent/home"))


def test_progress_watches_the_compiler_however_late_it_is_loaded(monkeypatch):
    """On a slow disk the libraries of a command take longer than the patience of its progress."""
    watcher = progress._Watcher()
    watcher.enter("finding classes")
    monkeypatch.setattr(progress, "watched_compiler", lambda: lambda: 1)
    with monkeypatch.context() as before:
        before.delitem(sys.modules, progress.COMPILER)
        assert watcher._doing() == "finding classes"
    assert watcher._doing() == f"finding classes; {progress.COMPILING}"


def test_progress_tells_that_a_function_is_compiled_and_nothing_when_it_is_called_again():
    compiling = watched_compiler()
    seen = []

    @njit
    def twice(values):
        return values * 2

    compile_it = twice._compiler.compile  # where the compiler is asked while the event is on

    def watched(*asked):
        seen.append(compiling())
        return compile_it(*asked)

    twice._compiler.compile = watched
    twice(np.ones(2))
    twice(np.ones(2))
    assert seen == [1]
    assert compiling() == 0
