"""Compiled code finds a place or gets one, and its cache follows the code that it imports."""

import ast
import os
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from numba import njit

import shoal
from shoal.cli import progress
from shoal.cli.main import status_of
from shoal.connectors import record_ends
from shoal.data import kernel_cache, numba_kernels
from shoal.data import progress as said_in_python
from shoal.data.kernel_cache import dispatcher_of
from shoal.data.numba_kernels import digest, imported_kernels, needs_cache_place
from shoal.data.progress import watched_compiler
from shoal.search.kernels import near_records, nearest_class, rebuilding, sorted_cut
from shoal.tables.kernels import class_refinement
from shoal_papers.baselines import kernels
from shoal_papers.baselines.kernels import fuzzy_centres, one_pass

SHOAL = Path(shoal.__file__).parent
OF_PAPERS = Path(kernels.__file__).parent
HOW_TO_COMPILE = ("shoal.data.numba_kernels", "shoal.data.numba_kernels")


def test_a_place_is_needed_where_neither_home_nor_package_is_writable(tmp_path):
    nowhere = Path("/nonexistent")
    assert not needs_cache_place(tmp_path, nowhere)
    assert not needs_cache_place(nowhere, tmp_path)
    assert needs_cache_place(nowhere, nowhere / "home")


def test_progress_watches_the_compiler_however_late_it_is_loaded(monkeypatch):
    """On a slow disk the libraries of a command take longer than the patience of its progress."""
    watcher = progress._Watcher()
    watcher.enter("finding classes")
    monkeypatch.setattr(said_in_python, "watched_compiler", lambda: lambda: 1)
    with monkeypatch.context() as before:
        before.delitem(sys.modules, said_in_python.COMPILER)
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


KERNELS = {
    "between": "from shoal.kernels import helper\nfrom shoal.data.numba_kernels import inner\n\n"
    "@inner\ndef twice(value):\n    return helper.step(helper.step(value))\n",
    "caller": "from shoal.kernels.between import twice\n"
    "from shoal.data.numba_kernels import outer\n\n"
    "@outer\ndef call(value):\n    return twice(value)\n",
}


def kernels_in(folder):
    """A copy of the package with a kernel `caller` that reaches `helper` through `between`."""
    package = folder / "shoal"
    for name in ("kernels", "data"):
        (package / name).mkdir(parents=True)
    (package / "__init__.py").touch()
    for module in (numba_kernels, kernel_cache, said_in_python):
        shutil.copy(module.__file__, package / "data")
    write_helper(folder, "    return value + 1")
    for name, text in KERNELS.items():
        (package / "kernels" / f"{name}.py").write_text(text)
    return folder


def write_helper(folder, body, imports=""):
    (folder / "shoal" / "kernels" / "helper.py").write_text(
        f"{imports}from shoal.data.numba_kernels import inner\n\n@inner\ndef step(value):\n{body}\n"
    )


def printed(script, folder, **environment) -> list[str]:
    """The lines that a script prints in a fresh process, which imports from this folder first."""
    inherited = {name: value for name, value in os.environ.items() if name != "NUMBA_CACHE_DIR"}
    own = {"PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"}
    run = subprocess.run(
        [sys.executable, "-c", script],
        env=inherited | own | environment,
        capture_output=True,
        text=True,
        check=True,
    )
    return run.stdout.splitlines()


COUNTED = """
from shoal.kernels.caller import call
print(call(0), sum(call.stats.cache_hits.values()), sum(call.stats.cache_misses.values()))
"""


def run_caller(folder, **environment):
    """What `caller.call(0)` answers in a fresh process, and whether its code came from disk."""
    (line,) = printed(COUNTED, folder, **environment)
    answer, hits, misses = map(int, line.split())
    assert hits + misses == 1
    return answer, "hit" if hits else "miss"


@pytest.mark.long
@pytest.mark.parametrize("place", ["package", "NUMBA_CACHE_DIR"])
def test_an_edited_helper_is_a_miss_and_a_touched_one_a_hit(tmp_path, place):
    folder = kernels_in(tmp_path / "installed")
    environment = {} if place == "package" else {place: str(tmp_path / "cache")}
    assert run_caller(folder, **environment) == (2, "miss")
    assert run_caller(folder, **environment) == (2, "hit")
    write_helper(folder, "    return value + 5")
    assert run_caller(folder, **environment) == (10, "miss")
    for path in (folder / "shoal").rglob("*.py"):
        os.utime(path, (0, 0))
    assert run_caller(folder, **environment) == (10, "hit")


@pytest.mark.long
def test_a_class_that_an_old_index_names_may_be_gone(tmp_path):
    """After an upgrade, signatures on disk can name a class that no file defines any more."""
    folder = kernels_in(tmp_path)
    between = folder / "shoal" / "kernels" / "between.py"
    between.write_text(
        "from typing import NamedTuple\nfrom shoal.data.numba_kernels import inner\n\n"
        "class Old(NamedTuple):\n    value: int\n\n"
        "@inner\ndef bare(pair):\n    return pair.value + 2\n\n"
        "@inner\ndef twice(value):\n    return bare(Old(value))\n"
    )
    assert run_caller(folder) == (2, "miss")
    between.write_text(between.read_text().replace("Old", "New"))
    assert run_caller(folder) == (2, "miss")
    assert run_caller(folder) == (2, "hit")


@pytest.mark.long
def test_code_from_disk_runs_without_the_compiler_which_still_loads_when_asked(tmp_path):
    """It allocates and calls functions of mathematics; then another kernel is compiled."""
    folder = kernels_in(tmp_path)
    body = "    return np.full(3, value + 1)[0] + int(np.log(value + 1.0))"
    write_helper(folder, body, "import numpy as np\n")
    assert run_caller(folder) == (2, "miss")
    script = (
        "import sys, numba\n"
        "from shoal.kernels.caller import call\n"
        "print(call(0), 'numba.typed.dictimpl' in sys.modules)\n"
        "print(numba.njit(lambda value: call(value) + 1)(0), 'numba.typed.dictimpl' in sys.modules)"
    )
    assert printed(script, folder) == ["2 False", "3 True"]


def test_without_the_compiler_kernels_are_plain_functions(tmp_path):
    script = "from shoal.kernels.caller import call; print(type(call).__name__, call(0))"
    assert printed(script, kernels_in(tmp_path), NUMBA_DISABLE_JIT="1") == ["function 2"]


@pytest.mark.parametrize(
    "source",
    sorted([*SHOAL.glob("*/kernels/[!_]*.py"), *OF_PAPERS.glob("[!_]*.py")]),
    ids=lambda path: path.stem,
)
def test_every_import_of_a_kernel_is_followed_and_kernels_import_nothing_else_of_ours(source):
    """The digest reads import statements as text; the parser says what they are."""
    names = set()
    for node in ast.walk(ast.parse(source.read_text())):
        if isinstance(node, ast.ImportFrom) and str(node.module).endswith(".kernels"):
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names.add(node.module)
        elif isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
    ours = {name for name in names if name.startswith("shoal")} - {*HOW_TO_COMPILE}
    files = {Path(find_spec(name).origin) for name in ours}
    assert files == imported_kernels(source)


def test_a_comparators_kernel_is_compiled_again_when_one_of_shoals_changes(tmp_path):
    """Of a package of kernels in another distribution, the whole way is followed."""
    folder = tmp_path / "far" / "kernels"
    folder.mkdir(parents=True)
    for package in (folder, folder.parent):
        (package / "__init__.py").write_text("")
    (folder / "inside.py").write_text("from shoal.search.kernels import spans\n")
    (folder / "caller.py").write_text("from far.kernels.inside import one\n")
    script = (
        "from pathlib import Path; from shoal.data.numba_kernels import imported_kernels as of;"
        f" caller = Path({str(folder / 'caller.py')!r}); (inside,) = of(caller);"
        " print(inside.name, *(path.name for path in of(inside)))"
    )
    path = os.pathsep.join([str(tmp_path), *sys.path])
    assert printed(script, path) == ["inside.py spans.py"]


def test_compiled_code_of_the_comparators_is_kept_on_disk():
    for kernel in (one_pass.one_pass, fuzzy_centres.fuzzy_shares):
        source = Path(kernel.py_func.__code__.co_filename)
        assert source.parent == OF_PAPERS
        assert kernel._stamp == digest(source)


def names_in(kernel) -> set[str]:
    """What a kernel and all kernels that it calls name."""
    waiting, found, names = [kernel], [], set()
    while waiting:
        called = waiting.pop()
        if called not in found:
            found.append(called)
            own, known = set(called.py_func.__code__.co_names), called.py_func.__globals__
            names |= own
            waiting += [known[name] for name in own if hasattr(known.get(name), "py_func")]
    return names


@pytest.mark.parametrize(
    "kernel",
    [
        sorted_cut.cut_listed.compiled,
        class_refinement._refine_classes,
        near_records.halve,
        near_records.nearest_by_runs,
        rebuilding.anneal_within,
        nearest_class._fill.compiled,
        record_ends.stray_quotes.compiled,
    ],
    ids=lambda kernel: kernel.py_func.__name__,
)
def test_what_most_publications_call_makes_no_array(kernel):
    """Else Numba imports all that it knows of arrays and texts, which takes long."""
    assert not names_in(kernel) & {"empty", "zeros", "ones", "full", "arange", "copy"}


@pytest.fixture
def kernel(monkeypatch, tmp_path):
    """A kernel that is compiled when it is called, where nobody has said yet that one is."""
    monkeypatch.setattr(said_in_python, "in_python", False)
    said_in_python.say_compiling.cache_clear()
    monkeypatch.setattr("numba.core.config.CACHE_DIR", str(tmp_path))
    return dispatcher_of(lambda values: values * 2, None, False, {})


def test_python_says_once_that_a_first_call_compiles(kernel, capsys):
    assert shoal.publish
    for values in (np.zeros(2), np.zeros(2, np.int32), np.zeros((2, 2))):
        kernel(values)
    assert capsys.readouterr().err == f"shoal: {said_in_python.COMPILING}\n"


def test_a_command_does_not_say_a_second_time_that_it_compiles(kernel, capsys):
    assert status_of(["methods"]) == 0
    kernel(np.zeros(2))
    assert capsys.readouterr().err == ""
