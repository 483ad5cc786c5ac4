"""Kernels that run as plain Python on small tables do what they do compiled."""

import importlib
import subprocess
import sys
from copy import deepcopy
from pathlib import Path

import numpy as np
import pytest
import yaml
from numba import njit

import shoal
import shoal_papers
from shoal.connectors import record_ends
from shoal.connectors.delimited import check_quotes
from shoal.data import numba_kernels
from shoal.data.numba_kernels import always, uncompiled_up_to
from shoal.errors import InputError
from shoal.ledgers.republish import republish_file
from shoal.policy.policy import Policy
from shoal.samples import generators, sample
from shoal.streams.options import StreamOptions
from shoal.streams.run import stream_file
from shoal.tables.publish import publish_file


def kernels_of(folder):
    """The files of kernels, from this folder on."""
    return [path.relative_to(folder) for path in folder.glob("*/kernels/[!_]*.py")]


def marked():
    """All kernels that may run as plain Python, by name."""
    modules = [
        importlib.import_module(".".join((package.__name__, *path.parent.parts, path.stem)))
        for package in (shoal, shoal_papers)
        for path in kernels_of(Path(package.__file__).parent)
    ]
    found = (kernel for module in [*modules, record_ends] for kernel in vars(module).values())
    return {
        f"{kernel.compiled.py_func.__module__}.{kernel.compiled.py_func.__name__}": kernel
        for kernel in found
        if isinstance(kernel, numba_kernels._AtFirst)
    }


@pytest.mark.parametrize("name", sorted(marked()))
def test_nothing_compiled_is_left_in_a_plain_kernel(name):
    """A kernel that only kernels call has no wrapper: a call from plain Python would crash."""
    waiting, seen = [marked()[name]._plain[0]], set()
    while waiting:
        function = waiting.pop()
        seen.add(function)
        for called in function.__code__.co_names:
            value = function.__globals__.get(called)
            assert not hasattr(value, "py_func")
            assert getattr(value, "__name__", "").count(".kernels.") == 0  # no module of ours
            if getattr(value, "__module__", "").startswith("shoal") and hasattr(value, "__code__"):
                waiting += [value] if value not in seen else []


def same(one, other):
    if isinstance(one, tuple):
        return len(one) == len(other) and all(map(same, one, other))
    if not isinstance(one, np.ndarray):
        return type(one) is type(other) and one == other
    return np.asarray(one).tobytes() == np.asarray(other).tobytes()  # room that is empty, too


@pytest.fixture
def both_ways(monkeypatch):
    """Every call is made plain and compiled, and compared; the names of the kernels called."""
    called = set()

    def twice(kernel, *arguments):
        name = kernel.compiled.py_func
        called.add(f"{name.__module__}.{name.__name__}")
        before = deepcopy(arguments)
        plain = kernel.plain(*before)
        found = kernel.compiled(*arguments)
        assert same(plain, found)
        assert same(before, arguments)
        return found

    monkeypatch.setattr(numba_kernels._AtFirst, "__call__", twice)
    return called


def bundled(name):
    return dict(yaml.safe_load(generators()[name].POLICY))


@pytest.mark.long
def test_plain_kernels_find_and_leave_what_compiled_ones_do(tmp_path, both_ways):
    def table(name, records, seed=1):
        path = tmp_path / f"{name}{seed}.csv"
        sample(name, records, seed).write_csv(path, quote_style="always")
        return str(path)

    patients = bundled("patients")
    single = deepcopy(patients)
    single["attributes"]["patient"] = {"role": "drop"}
    alone = single | {"promises": patients["promises"][:1], "method": {"name": "rounded-partition"}}
    trees = alone | {"method": {"name": "tds"}}
    levels = single | {"method": {"name": "rounded-partition"}}
    for number, policy in enumerate((patients, single, alone, trees, levels)):
        out = str(tmp_path / f"out{number}.csv")
        publish_file(table("patients", 250), Policy.from_dict(policy), out)
    purchases, wearables = bundled("purchases"), Policy.from_dict(bundled("wearables"))
    purchases["method"]["delta"] = 300
    options = StreamOptions(table("purchases", 400), str(tmp_path / "s.csv"), tmp_path / "state")
    stream_file(options, Policy.from_dict(purchases), progress=lambda *_: None)
    for seed in (1, 2):
        increment = table("wearables", 250, seed)
        republish_file(increment, wearables, tmp_path / "ledger", allow_leaks=True)
    shoal.audit(out, Policy.from_dict(levels), original=table("patients", 250))
    with pytest.raises(InputError, match="closes no cell"):
        check_quotes(b'said\nperhaps "yes\n', "stray.csv", ",")
    assert both_ways == set(marked())


def kernel_of(function, passes):
    """A kernel of its own, without a place on disk."""
    kernel = uncompiled_up_to(lambda *_: passes)(njit(function))
    kernel.compiled._cache.has_code = lambda: False
    return kernel


def doubled(values):
    for i in range(len(values)):
        values[i] = values[i] * 2
    return values[0]


def is_compiled_by_a_call(kernel) -> bool:
    assert kernel(np.ones(2)) == 2
    return bool(kernel.compiled.overloads)


def test_a_kernel_is_compiled_for_many_passes_once_plain_calls_took_their_share_or_if_asked():
    for_few = kernel_of(doubled, 1)
    assert not is_compiled_by_a_call(for_few)
    for_few._seconds = 10.0
    assert is_compiled_by_a_call(for_few)
    assert is_compiled_by_a_call(kernel_of(doubled, 10**9))
    on_disk = kernel_of(doubled, 1)
    on_disk.compiled._cache.has_code = lambda: True
    assert is_compiled_by_a_call(on_disk)
    with always(compiled=True):
        assert is_compiled_by_a_call(kernel_of(doubled, 1))
    with always(compiled=False):  # timed plain runs, however long they take
        assert not is_compiled_by_a_call(kernel_of(doubled, 10**9))


def test_nobody_asks_the_disk_before_plain_calls_took_as_long_as_loading_numba(monkeypatch):
    kernel = kernel_of(doubled, numba_kernels.PASSES * numba_kernels.LOADING / 2)
    kernel.compiled._cache.has_code = lambda: True
    monkeypatch.setattr(numba_kernels, "_spent", 0.0)
    assert kernel._is_sooner_compiled((np.ones(2),))  # Numba is loaded here
    monkeypatch.delitem(sys.modules, "numba")
    assert not kernel._is_sooner_compiled((np.ones(2),))
    monkeypatch.setattr(numba_kernels, "_spent", numba_kernels.LOADING)
    assert kernel._is_sooner_compiled((np.ones(2),))


def test_publishing_the_first_sample_never_loads_numba(tmp_path):
    sample("patients", 1000, 7).write_csv(tmp_path / "patients.csv")
    (tmp_path / "policy.yaml").write_text(generators()["patients"].POLICY)
    script = (
        "import sys; from shoal.cli.main import status_of; from shoal.data import numba_kernels;"
        # ten times as long as loading Numba takes: this machine may be busy
        " numba_kernels.LOADING *= 10; assert status_of(['publish',"
        " 'patients.csv', '-p', 'policy.yaml', '-o', 'out.csv', '-q', '--report', 'r.html']) == 0;"
        " print(*{'numba', 'matplotlib'} & set(sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == []


def test_an_overflow_of_narrow_numbers_is_compiled_on_the_arguments_as_they_were():
    def summed(values, total):
        total[0] += 1
        high = values[0] + values[0]  # 64 bits, compiled
        return high // 2

    kernel = kernel_of(summed, 1)
    total = np.zeros(1, np.int64)
    assert kernel(np.array([2**31 - 1], np.int32), total) == 2**31 - 1
    assert total[0] == 1
    assert kernel.compiled.overloads


def test_the_mark_leaves_a_function_alone_where_the_compiler_is_off():
    assert uncompiled_up_to(lambda *_: 1)(doubled) is doubled
