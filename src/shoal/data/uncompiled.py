"""Few passes through a loop are sooner made by Python than compiled: what a small table needs.

Compiling the kernels of a first run takes seconds, their work on a thousand records a fraction of
one. So a kernel that knows a bound on its passes runs as plain Python while that takes far less
time than compiling it would; unless compiled code is there already, in this process or on disk.
Where it lies on disk only Numba knows, which takes a while to load: all kernels together may run
as long as that before anybody asks.

Both give the same bytes. Their numbers differ in one thing: plain Python meets NumPy's scalars,
which overflow where compiled code goes on in 64 bits. An overflow is noticed here, and the kernel
compiled and run on the arguments as they were.
"""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cached_property
from time import thread_time
from types import FunctionType
from typing import Any

import numpy as np

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
