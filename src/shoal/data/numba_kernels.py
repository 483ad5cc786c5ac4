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

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Callable
from functools import cache, cached_property
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeVar

import numba
from numba import njit
from numba.core.caching import FunctionCache, IndexDataCacheFile
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler
from numba.core.runtime.nrt import rtsys
from numba.cpython import hashing  # noqa: F401  gives compiled code its functions

Kernel = TypeVar("Kernel", bound=Callable[..., Any])

IMPORT = re.compile(
    r"^\s*(?:from|import)\s+(\w+(?:\.\w+)*?\.kernels)\b([^\n(#]*(?:\([^)]*\))?)", re.MULTILINE
)
"""An import of kernels: the package that holds them, whosever it is, and what follows."""

LOADS_ALONE = ((0, 61), (0, 68))
"""The first and the last version of Numba tried whose compiled code needs no more of it than its
runtime and the functions of hashing.
"""


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
        numba.config.reload_config()


_find_cache_place()


def outer(function: Kernel) -> Kernel:
    """Compile a kernel that Python calls; it runs without the interpreter lock, and its code is
    kept on disk.
    """
    return _kept_on_disk(njit(nogil=True, no_cfunc_wrapper=True)(function))


class _Part(JITCodeLibrary):  # type: ignore[misc]
    """Code that the kernels which call it take up as it is, to optimise it with their own."""

    def _optimize_final_module(self) -> None:
        """Left to those kernels."""

    def _finalize_final_module(self) -> None:
        self._finalized = True

    @property
    def codegen(self) -> Any:
        return self

    def set_env(self, *_: Any) -> None:
        """What needs an environment, as printing does, raises."""


class _PartCompiler(Compiler):  # type: ignore[misc]
    def __init__(self, types: Any, target: Any, _: Any, *others: Any) -> None:
        super().__init__(types, target, _Part(target.codegen(), "part"), *others)


_PART = {
    "nogil": True,
    "no_cpython_wrapper": True,
    "no_cfunc_wrapper": True,
    "pipeline_class": _PartCompiler,
}


def inner(function: Kernel) -> Kernel:
    """Compile a kernel that only kernels call: as `outer`, without the wrapper that a call from
    Python needs, and without machine code of its own.
    """
    return njit(**_PART)(function)


def inlined(function: Kernel) -> Kernel:
    """Compile a kernel that only kernels call, in the middle of each of them.

    For what hot loops call with many arrays: around a call that stays one, references to every
    array are counted, which can take longer than the call.
    """
    return njit(forceinline=True, **_PART)(function)


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


class _Index(IndexDataCacheFile):
    """The index of a function's compiled code; empty where it can't be read.

    Numba unpickles an index before it compares the stamp, and the signatures in it name classes of
    kernel files: after an upgrade one of these may be gone.
    """

    def _load_index(self) -> Any:
        try:
            return super()._load_index()
        except Exception:
            return {}


class _FollowingCache(FunctionCache):
    """Numba's cache of a function's compiled code, with a stamp that follows imports.

    stamp: None for Numba's own.
    """

    def __init__(self, function: Callable[..., Any], stamp: str | None) -> None:
        super().__init__(function)
        if stamp is not None:
            self._cache_file = _Index(self._cache_path, self._impl.filename_base, stamp)

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Compiled code from disk, as Numba loads it, but without what only its compiler needs.

        Numba first loads everything that it can compile, parts of SciPy included where that is
        installed, which takes a short run longer than its kernels do. The compiler loads it itself.
        """
        if not LOADS_ALONE[0] <= numba.version_info.short <= LOADS_ALONE[1]:
            return super().load_overload(sig, target_context)
        rtsys.initialize(target_context)  # compiled code allocates by it
        with self._guard_against_spurious_io_errors():
            return self._load_overload(sig, target_context)

    def has_code(self) -> bool:
        """Whether compiled code of this function is on disk, and not out of date."""
        return bool(self._cache_file._load_index())


class _CacheAtFirst:
    """A function's cache, made when it is first asked: few are, since the compiled code of a kernel
    holds that of the kernels it calls.

    The stamp is made at once: of the contents that were imported, whatever the file holds later.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function
        try:
            self._stamp = digest(Path(function.__code__.co_filename))
        except OSError:
            self._stamp = None  # frozen: Numba's is that of the executable, which holds all kernels

    @cached_property
    def _cache(self) -> _FollowingCache:
        return _FollowingCache(self._function, self._stamp)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._cache, name)


def _kept_on_disk(dispatcher: Any) -> Any:
    # not with NUMBA_DISABLE_JIT, where it is the plain function
    if hasattr(dispatcher, "enable_caching"):
        dispatcher._cache = _CacheAtFirst(dispatcher.py_func)
    return dispatcher
