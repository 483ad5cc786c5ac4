"""On a new machine refining is compiled in a second process, for the types it is called with."""

import sys
from types import SimpleNamespace

import numba
import numpy as np
import pytest
from numba.core.sigutils import normalize_signature

from shoal.data import cores
from shoal.data.matrix import Matrix
from shoal.search import compile_beside
from shoal.search.efforts import FULL_RECORDS, SMALL_RECORDS
from shoal.search.kernels import near_records, rebuilding
from shoal.tables.methods.lattice_peeling import LatticePeeling
from shoal.tables.methods.rounded_partition import RoundedPartition
from shoal.testing import OnlyK

MODULES = {"rebuilding": rebuilding, "near_records": near_records}


def some(records):
    codes = np.random.default_rng(1).integers(0, 9, (records, 3), dtype=np.int32)
    return Matrix.from_columns(codes, [9.0] * 3)


@pytest.mark.parametrize("method", [RoundedPartition, LatticePeeling])
def test_kernels_are_compiled_for_the_types_of_a_call(method, monkeypatch):
    called = {}

    def watched(module, name):
        kernel = getattr(MODULES[module], name)

        def call(*arguments):
            called[module, name] = tuple(map(numba.typeof, arguments))
            return kernel(*arguments)

        monkeypatch.setattr(MODULES[module], name, call)

    monkeypatch.setattr(compile_beside, "begin", lambda: None)
    expected = {(m, n): normalize_signature(types)[0] for m, n, types in compile_beside.KERNELS}
    for module, name in expected:
        watched(module, name)
    refined(method)
    assert called == expected


def refined(method):
    matrix = some(60)
    method(refine="full").partition(matrix, OnlyK(matrix, 3), np.random.default_rng(1))


@pytest.fixture
def started(monkeypatch):
    """The processes that were started, and what was done with each in the end."""
    processes = []

    def start(command, **options):
        done = []
        processes.append(SimpleNamespace(command=command, done=done))
        return SimpleNamespace(kill=lambda: done.append("kill"), wait=lambda: done.append("wait"))

    monkeypatch.setattr(compile_beside.subprocess, "Popen", start)
    monkeypatch.setattr(compile_beside, "_is_compiled", lambda kernel: False)
    # as if the process ended now
    monkeypatch.setattr(compile_beside.atexit, "register", lambda end, helper: end(helper))
    return processes


def test_a_process_of_its_own_compiles_on_two_cores_and_ends_with_this_one(started, monkeypatch):
    with cores.using(1):
        compile_beside.begin()
    assert started == []
    with cores.using(2):
        compile_beside.begin()
        (process,) = started
        assert process.command[0] == sys.executable
        assert process.command[-1] == compile_beside.__name__
        assert process.done == ["kill", "wait"]
        monkeypatch.setattr(compile_beside, "_is_compiled", lambda kernel: True)
        compile_beside.begin()
    assert len(started) == 1


@pytest.mark.parametrize(
    ("records", "asked"),
    [(SMALL_RECORDS, 0), (SMALL_RECORDS + 1, 1), (FULL_RECORDS, 1), (FULL_RECORDS + 1, 0)],
)
def test_it_is_begun_only_for_tables_that_are_annealed(records, asked, started):
    matrix = some(records)
    with cores.using(2):
        RoundedPartition()._effort.announce(matrix, OnlyK(matrix, 3))
    assert len(started) == asked


def test_a_kernel_that_was_called_is_compiled():
    refined(RoundedPartition)
    assert compile_beside._is_compiled(rebuilding.anneal_within)
    assert compile_beside._is_compiled(len)


def test_the_process_compiles_all_of_them(monkeypatch):
    compiled = []
    kernel = SimpleNamespace(compile=compiled.append)
    monkeypatch.setattr(compile_beside, "_kernel", lambda module, name: kernel)
    compile_beside.main()
    assert compiled == [normalize_signature(types)[0] for *_, types in compile_beside.KERNELS]
