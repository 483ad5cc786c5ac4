"""How a kernel is compiled, when its compiled code on disk is out of date, and which few passes
through a loop are sooner made by Python than compiled: what a small table needs.

`outer` is for a kernel that Python calls, `inner` for one that only other kernels call, `inlined`
for one that becomes a part of these. Half the compile time of a kernel goes into helpers,
allocations and wrappers, so nothing gets a wrapper that it does not need. To load compiled code
that makes an array, Numba imports all that it knows of arrays and texts, which takes as long as to
cut a small table: what every publication calls is given its room by Python instead. Nor is what
only kernels call optimised and turned into machine code by itself, only as a part of each of them.

Numba marks compiled code on disk with a stamp of the one source file it comes from, and so keeps
using a caller's old code after a helper in another file has changed. Here the stamp is a digest of
the file and of every kernel file that it imports, directly or not. It is made of contents, never of
times: touching a file, or installing the same version again, compiles nothing.

Compiling the kernels of a first run takes seconds, their work on a thousand records a fraction of
one. So a kernel that knows a bound on its passes runs as plain Python while that takes far less
time than compiling it would; unless compiled code is there already, in this process or on disk.
Where it lies on disk only Numba knows, which takes a while to load: all kernels together may run
as long as that before anybody asks.

Both give the same bytes. Their numbers differ in one thing: plain Python meets NumPy's scalars,
which overflow where compiled code goes on in 64 bits. An overflow is noticed here, and the kernel
compiled and run on the arguments as they were.
"""

import os
import re
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, cached_property, update_wrapper
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from time import thread_time
from types import FunctionType
from typing import Any, TypeVar, cast

import numpy as np

Kernel = TypeVar("Kernel", bound=Callable[..., Any])

IMPORT = re.compile(
    r"^\s*(?:from|import)\s+(\w+(?:\.\w+)*?\.kernels)\b([^\n(#]*(?:\([^)]*\))?)", re.MULTILINE
)
"""An import of kernels: the package that holds them, whosever it is, and what follows."""


def needs_cache_place(package: Path, home: Path) -> bool:
    """Whether neither the installed package nor the home folder can be written to."""
    return not (os.access(package, os.W_OK) or os.access(home, os.W_OK))


def _home() -> Path:
    try:
        return Path.home()
    except RuntimeError:
        return Path("/nonexistent")


def _find_cache_place() -> None:
    """Gives Numba a folder for compiled code, where it would find none and raise: a fresh folder
    for this process and its children.
    """
    if "NUMBA_CACHE_DIR" not in os.environ and needs_cache_place(Path(__file__).parent, _home()):
        # fresh and private: what is loaded from it is code
        os.environ["NUMBA_CACHE_DIR"] = tempfile.mkdtemp(prefix="shoal-kernels-")
        if "numba" in sys.modules:  # else it reads the environment when it is loaded
            sys.modules["numba"].config.reload_config()


_find_cache_place()


def outer(function: Kernel) -> Kernel:
    """Compile a kernel that Python calls; it runs without the interpreter lock, and its code is
    kept on disk.
    """
    return _late(function)


def inner(function: Kernel) -> Kernel:
    """Compile a kernel that only kernels call: as `outer`, without the wrapper that a call from
    Python needs, and without machine code of its own.
    """
    return _late(function, is_part=True)


def inlined(function: Kernel) -> Kernel:
    """Compile as `inner`, in the middle of each caller: short steps, or long ones called once."""
    return _late(function, is_part=True, forceinline=True)


def _late(function: Kernel, is_part: bool = False, **options: bool) -> Kernel:
    is_off = os.environ.get("NUMBA_DISABLE_JIT", "0") not in ("", "0")
    return function if is_off else cast(Kernel, LateKernel(function, is_part, options))


class LateKernel:
    """A kernel that loads Numba when it is first called, compiled into another, or asked for more
    than its function, `py_func`.

    The stamp is made at once: of the contents that were imported, whatever the file holds later.
    """

    def __init__(
        self, function: Callable[..., Any], is_part: bool, options: dict[str, bool]
    ) -> None:
        """is_part: whether only kernels call it."""
        update_wrapper(self, function)
        self.py_func, self._is_part, self._options = function, is_part, options
        self._stamp: str | None
        try:
            self._stamp = digest(Path(function.__code__.co_filename))
        except OSError:
            self._stamp = None  # frozen: Numba's is that of the executable, which holds all kernels

    @cached_property
    def _dispatcher(self) -> Any:
        from shoal.data.kernel_cache import dispatcher_of

        return dispatcher_of(self.py_func, self._stamp, self._is_part, self._options)

    def __call__(self, *arguments: Any) -> Any:
        return self._dispatcher(*arguments)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # what copying and pickling ask for
            raise AttributeError(name)
        return getattr(self._dispatcher, name)


@cache
def digest(source: Path) -> str:
    """Digest of a source file's contents and those of all kernel files that it imports, directly
    or not.

    Raises OSError where there is no such file, as in an application frozen into one executable.
    """
    sources = {source}
    waiting = [source]
    while waiting:
        new = imported_kernels(waiting.pop()) - sources
        sources |= new
        waiting.extend(new)
    return sha256(b"".join(_contents(path)[0] for path in sorted(sources))).hexdigest()


def imported_kernels(source: Path) -> frozenset[Path]:
    """The kernel files that a source file imports itself."""
    return _contents(source)[1]


@cache
def _contents(path: Path) -> tuple[bytes, frozenset[Path]]:
    """A file's digest, and the kernel files whose names stand in its import statements."""
    contents = path.read_bytes()
    imported = {
        known[word]
        for package, names in IMPORT.findall(contents.decode())
        if (known := _kernels_of(package))
        for word in known.keys() & re.findall(r"\w+", names)
    }
    return sha256(contents).digest(), frozenset(imported)


@cache
def _kernels_of(package: str) -> dict[str, Path]:
    """The kernel files of a package by name."""
    try:
        found = find_spec(package)
    except ModuleNotFoundError:  # words that only look like an import
        found = None
    folders = [] if found is None else list(found.submodule_search_locations or ())
    return {path.stem: path for folder in folders for path in Path(folder).glob("*.py")}


PASSES = 1_000_000
"""What plain Python makes in a second, each of a few numbers."""
SECONDS_PER_BYTE = 0.0005
"""How long compiling takes for a byte of a function's code, as Python has it."""
SHARE = 0.25
"""Of the time that compiling takes, what a process may spend on running a kernel without it: each
run of a table of middle size pays that again, compiling is paid once."""

LOADING = 0.2
"""Seconds that a process takes to load Numba."""

_compiles: bool | None = None
_spent = 0.0


@contextmanager
def always(compiled: bool) -> Iterator[None]:
    """Within, what was compiled or run plain stays so, whatever the input: to be kept on disk, or
    to be timed.

    compiled: whether every kernel is compiled; else those that may run plain do, unless their code
    is there already.
    """
    global _compiles
    before, _compiles = _compiles, compiled
    try:
        yield
    finally:
        _compiles = before


def uncompiled_up_to(
    passes: Callable[..., int], plain: Callable[..., Any] | None = None
) -> Callable[[Any], Any]:
    """For an outer kernel: plain Python while a call makes few passes and nothing is compiled.

    passes: of the same arguments, at most how many times the innermost loops are gone through.
    plain: does the same with fewer of them, as by whole arrays; else the kernel's own code runs.
    Other kernels can't call a kernel that is marked so.
    """
    return lambda kernel: _AtFirst(kernel, passes, plain) if hasattr(kernel, "py_func") else kernel


class _AtFirst:
    """A kernel that is compiled late."""

    def __init__(
        self, compiled: Any, passes: Callable[..., int], plain: Callable[..., Any] | None
    ) -> None:
        self.compiled, self._by_arrays = compiled, plain
        self.__doc__ = compiled.__doc__
        self._passes = passes
        self._seconds = 0.0
        self._is_compiled = False

    def __call__(self, *arguments: Any) -> Any:
        global _spent
        if not self._is_compiled and self._is_sooner_compiled(arguments):
            self._is_compiled = True
        if self._is_compiled:
            return self.compiled(*arguments)
        arrays = [array for array in arguments if isinstance(array, np.ndarray)]
        before = [array.copy() for array in arrays]
        started = thread_time()
        try:
            return self.plain(*arguments)
        except (FloatingPointError, OverflowError):
            for array, old in zip(arrays, before, strict=True):
                if array.flags.writeable:
                    array[...] = old
            return self.compiled(*arguments)
        finally:
            took = thread_time() - started
            self._seconds += took
            _spent += took

    def plain(self, *arguments: Any) -> Any:
        """What plain Python finds; raises FloatingPointError or OverflowError where its numbers are
        too narrow.
        """
        with np.errstate(over="raise", divide="raise", invalid="raise"):
            return _as_compiled(self._plain[0](*arguments))

    def _is_sooner_compiled(self, arguments: tuple[Any, ...]) -> bool:
        if _compiles is not None:
            return _compiles or self._has_code()
        seconds = self._passes(*arguments) / PASSES
        if "numba" not in sys.modules and _spent + seconds <= LOADING:
            return False
        _, compiling = self._plain
        return self._seconds + seconds > SHARE * compiling or self._has_code()

    def _has_code(self) -> bool:
        return bool(self.compiled.overloads) or self.compiled._cache.has_code()

    @cached_property
    def _plain(self) -> tuple[Callable[..., Any], float]:
        """The kernel without its compiler, and about how many seconds that would take."""
        functions: dict[FunctionType, FunctionType] = {}
        plain = _uncompiled(self.compiled.py_func, functions)
        seconds = SECONDS_PER_BYTE * sum(len(f.__code__.co_code) for f in functions)
        return self._by_arrays or plain, seconds


def _uncompiled(
    function: FunctionType, known: dict[FunctionType, FunctionType]
) -> Callable[..., Any]:
    """The function as plain Python, and so all kernels that it calls."""
    if function not in known:
        names = dict(function.__globals__)
        known[function] = FunctionType(function.__code__, names, function.__name__)
        known[function].__defaults__ = function.__defaults__
        for name in function.__code__.co_names:
            called = getattr(names.get(name), "py_func", None)
            if called is not None:
                names[name] = _uncompiled(called, known)
    return known[function]


def _as_compiled(result: Any) -> Any:
    """Results as compiled code gives them: numbers are Python's."""
    if isinstance(result, tuple):
        return tuple(map(_as_compiled, result))
    return result.item() if isinstance(result, np.generic) else result
