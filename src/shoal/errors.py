"""Every error that Shoal raises on purpose, and the exit status each one ends a command with.

    ShoalError
    |- InputError           2  the data, policy, hierarchy or parameter given can't be used
    |  `- KeywordError      2  a function does not take a keyword; a TypeError, too
    |- InfeasibleError      3  no such release exists; says why, and the nearest that does
    |- PromiseError         1  a promise was measured and does not hold; the release is withheld
    |- LedgerError          1  a chain of releases is damaged or would break its history
    |- CheckpointError      2  a stream can't resume from what it was given
    |- PartyError           4  another party, a broker or a database server is missing, or a party
    |  |                       broke the agreement
    |  `- LostPartyError    4  another party was lost on the way; all can start again and resume
    `- MissingExtraError    4  an optional part of Shoal is not installed

Messages name attributes, counts, rules and a way out, never a value of the data.
"""

import errno
import os
import re
import signal
import struct
import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import IO, Self

UNREADABLE = (
    ValueError,
    LookupError,
    TypeError,
    AttributeError,
    ArithmeticError,
    RecursionError,
    StopIteration,
    struct.error,
)
"""What is raised where content is taken apart that is not what it should be."""

TWICE = "whoever is in both may be singled out"
"""The danger of publishing the same people in two places."""
ANOTHER_LEDGER = f"begin another ledger ({TWICE})"
"""A way out, with its danger."""
ANOTHER_STREAM = f"begin a new stream, with another checkpoint and output ({TWICE})"
"""A way out, with its danger."""
RESTORE = f"restore a copy made since its last commit, or {ANOTHER_STREAM}"
"""Ways out of damage to a checkpoint: an older copy does not fit the output, and is refused."""

_STOPS = ("SIGINT", "SIGTERM", "SIGHUP", "SIGALRM")
STOPS = [getattr(signal, name) for name in _STOPS if hasattr(signal, name)]
"""The signals that end a command as Ctrl-C does; Windows lacks some."""

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")

_UP_TO_AT = re.compile(r"[^@\s]+@?")  # each sign belongs to one match: time grows as the text does
_PASSWORD = re.compile(r"(:/+[^:@/\s]*):[^@]*@")
_PASSWORD_OPTION = re.compile(
    r"(?i)([?&](?:(?:ssl)?password|oauth_client_secret|scram_(?:client|server)_key)=)[^&\s'\"]*"
)


_OPTION = re.compile(
    r"(?P<command>'(?:shoal|publish|fuse) [^']*')"
    r"|['\"]?--(?P<block>read|write) (?!and |or )\"?(?P<key>\w+)"
    r"(?:=(?P<value>[,;.](?=[;,]?(?:\s|$))|[^\s;,'\"]*[^\s;,:'\"](?:,[^\s;,'\"]+)*|[\s'](?=\")))?['\"]?"
    r"|(?<![\w'-])--(?P<name>[a-z][a-z-]*)(?:; (?P=name)=)?(?P<about>:|(?= '))?"
    r"(?: (?P<given>\d+|\w+:\d+|stop|(?<=--method )[\w:=.-]+)(?=[\s,;)]|$))?"
)
_SAID_TWICE = re.compile(r"(?<!\w)(\w+=)\{([^{}]*)\} \1\{")
FLAGS = ("downstream", "dry-run", "explain", "follow", "replace", "require-together")
"""Options without a value, of those that messages name."""


def in_python(text: str) -> str:
    """A message with keyword arguments in place of options; a command to type stays one."""
    return _SAID_TWICE.sub(r"\1{\2, ", _OPTION.sub(_keyword, text))


def _keyword(found: re.Match[str]) -> str:
    name, given = (found["name"] or "").replace("-", "_"), found["given"]
    if found["command"]:
        return found[0]
    if found["block"]:
        return f"{found['block']}={{'{found['key']}': {_literal(found['value'])}}}"
    if found["about"] is not None:
        return f"{name}{found['about']}"
    if found["name"] in FLAGS:
        return f"{name}=True"
    return f"{name}=" + ("" if given is None else _literal(given))


def _literal(value: str | None) -> str:
    return "..." if value is None else value if value.isdigit() else repr(value)


_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_IN_WORDS = re.compile(r"\(os error (\d+)\)")


def system_error(failed: BaseException) -> int | None:
    """The number by which the system said why it failed; None where it did not.

    Polars says it in words alone, and not always as an OSError.
    """
    if isinstance(failed, OSError) and failed.errno is not None:
        return failed.errno
    is_of_polars = isinstance(failed, OSError) or type(failed).__module__.startswith("polars")
    found = _IN_WORDS.search(str(failed)) if is_of_polars else None
    return None if found is None else int(found[1])


def is_full(failed: BaseException) -> bool:
    """Whether a disk, a quota or the largest size of a file left no room to write."""
    return system_error(failed) in _FULL


class ShoalError(Exception):
    """The root of the tree: one line, and all further findings of the same kind in `findings`.

    A name that holds a line end or an escape of the terminal is shown with `\\n` or `\\x1b` in it,
    and the address of a database without its password. What Python shows names keyword arguments;
    `said`, which commands show, names options. `found`: what was found, as it was given.
    """

    exit_status = 70

    def __init__(self, message: object, findings: Sequence[object] = ()) -> None:
        super().__init__(_one_line(message))
        self.__suppress_context__ = True  # what a library said before may hold cells
        self._more = tuple(map(_one_line, findings))
        self.found: tuple[object, ...] = (message, *findings)

    def __str__(self) -> str:
        return "\n  - ".join(map(in_python, self.said))

    @property
    def findings(self) -> tuple[str, ...]:
        """Every finding after the first."""
        return tuple(map(in_python, self._more))

    @property
    def said(self) -> list[str]:
        """The line, then every further finding."""
        return [str(self.args[0]), *self._more]

    @classmethod
    def from_findings(cls, findings: Sequence[object]) -> Self:
        """One error for many findings, as they read, each said once: the first is the message, the
        others follow it.
        """
        first, *more = {str(finding): finding for finding in findings}.values()
        return cls(first, more)

    @classmethod
    def raise_for(cls, findings: Iterable[object]) -> None:
        """Raises one error for all findings, as `from_findings`; nothing where there are none."""
        if found := list(findings):
            raise cls.from_findings(found)


def _one_line(text: object) -> str:
    shown = _UP_TO_AT.sub(_without_password, _PASSWORD_OPTION.sub(r"\1***", str(text)))
    return _CONTROL.sub(lambda sign: repr(sign[0])[1:-1], shown)


def _without_password(part: re.Match[str]) -> str:
    return _PASSWORD.sub(r"\1@", part[0]) if part[0].endswith("@") else part[0]


class InputError(ShoalError, ValueError):
    """The data, policy, hierarchy or parameter given can't be used; nothing was written.

    A ValueError, as Python's own functions raise for such a value: what takes foreign content apart
    lets it pass (`except InputError: raise`) before it converts other ValueErrors.
    """

    exit_status = 2


class KeywordError(InputError, TypeError):
    """A function was called with a keyword that it does not take."""


class TooLargeError(InputError):
    """A file unpacks to more than a file from strangers may, if its reader says nothing."""


class InfeasibleError(ShoalError):
    """No release keeps these promises; the message names the nearest that would hold."""

    exit_status = 3


class PromiseError(ShoalError):
    """A promise does not hold on what would have been published; nothing was published."""

    exit_status = 1


class LedgerError(ShoalError):
    """A ledger is damaged, or the next release would break its history."""

    exit_status = 1


class CheckpointError(ShoalError):
    """A stream can't resume from this checkpoint."""

    exit_status = 2


class PartyError(ShoalError):
    """Another party, a broker or a database can't be reached, or a party broke the agreement."""

    exit_status = 4


class LostPartyError(PartyError):
    """Another party was lost on the way, or a process of this one; starting again resumes."""


class MissingExtraError(ShoalError):
    """An optional part is not installed; the message names the extra to install."""

    exit_status = 4

    @classmethod
    def of(cls, what: str, extra: str, *, are_many: bool = False) -> "MissingExtraError":
        """`what` ends with what is missing, one thing or many, that the extra installs. The way out
        names the clone, never an index, where the name may be another's.
        """
        return cls(
            f"{what}, which {'are' if are_many else 'is'} not installed; run in the clone of Shoal:"
            f" pip install '.[{extra}]'"
        )


@contextmanager
def of_extra(what: str, extra: str, *, are_many: bool = False) -> Iterator[None]:
    """Raises MissingExtraError where the block can't import what an extra installs."""
    try:
        yield
    except ImportError:
        raise MissingExtraError.of(what, extra, are_many=are_many) from None


def is_of_a_library(failed: BaseException) -> bool:
    """Whether a library that reads and writes tables failed: Polars, or a panic of Rust, which is
    no Exception and has a class of its own in every library.
    """
    kinds = {(kind.__module__, kind.__name__) for kind in type(failed).__mro__}
    return ("polars.exceptions", "PolarsError") in kinds or any(
        name == "PanicException" for _, name in kinds
    )


_PANIC = re.compile(rb"(?ms)\n?^thread '[^\n]* panicked at .*?(?=^(?:shoal|progress): |\Z)")


class _PanicsUnsaid:
    """Keeps from standard error what Rust says of a panic, on whatever thread that is, while any
    reader is in this context; all else that was written meanwhile appears there behind it.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._readers = 0
        self._kept: tuple[int, IO[bytes]] | None = None

    def __enter__(self) -> None:
        with self._lock:
            self._readers += 1
            if self._readers == 1:
                with suppress(OSError):  # standard error is closed, or no file can be made
                    self._divert()

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._readers -= 1
            if not self._readers and self._kept is not None:
                self._give_back(*self._kept)

    def _divert(self) -> None:
        file = tempfile.TemporaryFile()  # noqa: SIM115
        standard_error = os.dup(2)
        os.dup2(file.fileno(), 2)
        self._kept = standard_error, file

    def _give_back(self, standard_error: int, file: IO[bytes]) -> None:
        self._kept = None
        os.dup2(standard_error, 2)
        os.close(standard_error)
        with file, suppress(OSError), open(2, "wb", closefd=False) as shown:
            file.seek(0)
            shown.write(_PANIC.sub(b"", file.read()))


_panics_unsaid = _PanicsUnsaid()


@contextmanager
def library_errors_as(message: str | Callable[[BaseException], str]) -> Iterator[None]:
    """Convert what a library could not make sense of into an InputError with this message, or the
    one that follows from the kind of error: its own words may hold cells, and so does what it says
    of a panic on standard error.
    """
    try:
        with _panics_unsaid:
            yield
    except BaseException as failed:
        if not is_of_a_library(failed):
            raise
        raise InputError(message if isinstance(message, str) else message(failed)) from None


@contextmanager
def os_errors_as_input_errors(
    what: str, remedy: str, done: str = "reading or writing"
) -> Iterator[None]:
    """Convert OSError into a one-line InputError; BrokenPipeError passes: its reader left."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as failed:
        why = failed.strerror or "no space or no permission"
        raise InputError(f"{what}: {done} failed ({why}); {remedy}") from None


def is_stop(cause: BaseException) -> bool:
    """Whether a user stopped the run; compiled code wraps a KeyboardInterrupt in a SystemError."""
    return isinstance(cause, KeyboardInterrupt) or isinstance(cause.__cause__, KeyboardInterrupt)
