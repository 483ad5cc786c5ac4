"""How a kernel is compiled, and when its compiled code on disk is out of date.

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
"""

import os
import re
import sys
import tempfile
from collections.abc import Callable
from functools import cache, cached_property, update_wrapper
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeVar, cast

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
