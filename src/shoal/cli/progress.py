"""What a person sees while something long is running."""

import json
import re
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol, TypeVar

import typer

from shoal.data.certificate import Certificate
from shoal.data.language import printable, printable_lines
from shoal.data.option import Request, option
from shoal.data.progress import COMPILING, CompilerWatch, Progress, counted
from shoal.data.warnings import GRAVE, ReleaseWarning
from shoal.errors import InputError, ShoalError

PATIENCE = 1.5  # seconds of silence before progress shows
REPEAT = 10.0  # seconds until a stage that lasts is said again
FAILS = "DOES NOT HOLD"


@contextmanager
def shown(quiet: bool) -> Iterator[Callable[[str], None]]:
    """A function that takes the name of each stage; shows it on standard error once the work takes
    long.

    On a terminal a spinner with the elapsed time, elsewhere a line per stage and every ten seconds.
    """
    if quiet:
        yield lambda stage: None
        return
    watcher = _Watcher()
    watcher.start()
    try:
        yield watcher.enter
    finally:
        watcher.stop()


class _Watcher(threading.Thread):
    def __init__(self) -> None:
        super().__init__(daemon=True)
        self._stage, self._told = "starting", ""
        self._since = self._told_at = time.monotonic()
        self._over = threading.Event()
        self._compiler = CompilerWatch()

    def enter(self, stage: str, done: int | None = None, total: int | None = None) -> None:
        self._stage = counted(stage, done, total)

    def stop(self) -> None:
        self._over.set()
        self.join()

    def run(self) -> None:
        if self._over.wait(PATIENCE):
            return
        if sys.stderr.isatty() and not _Log.is_json:
            self._spin()
        while not self._over.wait(0.2):
            self._tell()

    def _doing(self) -> str:
        return f"{self._stage}; {COMPILING}" if self._compiler.is_compiling else self._stage

    def _spin(self) -> None:
        from rich.console import Console
        from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

        columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
        with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
            task = bar.add_task(self._doing(), total=None)
            while not self._over.wait(0.2):
                bar.update(task, description=self._doing())

    def _tell(self) -> None:
        doing, now = self._doing(), time.monotonic()
        is_new = doing not in (self._told, self._told.removesuffix(f"; {COMPILING}"))
        if is_new or now - self._told_at >= REPEAT:
            self._told, self._told_at = doing, now
            say(f"shoal: {doing} ({now - self._since:.0f} s)")


# What commands say and answer: what was counted, as sentences or JSON, and what was written.


class _Log:
    is_json = False


@contextmanager
def using(log: str) -> Iterator[None]:
    """What is said inside the block, also by a warning, is plain, or JSON."""
    before, _Log.is_json = _Log.is_json, log == "json"
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("always", ReleaseWarning)
            warnings.showwarning = lambda text, *_, **__: show_warning(text)
            yield
    finally:
        _Log.is_json = before


def say(text: str, level: str = "info") -> None:
    """A line, or several, on standard error; as JSON if that was asked.

    Where standard error takes nothing, as on a full disk, the command goes on without it.
    """
    lines = [text]
    if _Log.is_json:
        now = datetime.now(UTC).isoformat()
        said = [re.sub("^(shoal|progress): ", "", line) for line in text.splitlines()]
        entries = [{"time": now, "level": level, "message": line} for line in said]
        lines = [json.dumps(entry, ensure_ascii=False) for entry in entries]
    with suppress(OSError):
        for line in lines:
            typer.echo(line, err=True)


def say_found(text: str, quiet: bool) -> None:
    """What was found, on standard error; of a quiet command only the lines of what fails."""
    lines = [line for line in text.splitlines() if not quiet or FAILS in line]
    if lines:
        say("\n".join(lines))


class Counted(Protocol):
    """What was counted, as JSON has it."""

    def to_dict(self) -> dict[str, Any]: ...


Answer = TypeVar("Answer", bound=Counted | dict[str, Any])


def answer(
    found: Answer,
    in_words: Callable[[Answer], Iterable[str]],
    as_json: bool,
    ensure_ascii: bool = True,
) -> None:
    """Prints what was counted, a sentence a line or as JSON."""
    if as_json:
        content = found if isinstance(found, dict) else found.to_dict()
        typer.echo(json.dumps(content, indent=2, ensure_ascii=ensure_ascii))
        return
    for line in in_words(found):
        typer.echo(printable(line))


class Figures(Request):
    """How a command shows what it counts."""

    as_json: bool = option("--json", "Print the figures as JSON.", False)
    quiet: bool = option("-q, --quiet", "No progress.", False)

    def show(
        self, find: Callable[[Progress], Answer], in_words: Callable[[Answer], Iterable[str]]
    ) -> None:
        """Shows what is found, once it is."""
        with shown(self.quiet) as progress:
            found = find(progress)
        answer(found, in_words, self.as_json)


@contextmanager
def published_already(what: str | None) -> Iterator[None]:
    """An error behind a publication says that it is out. what: is out; None: nothing is."""
    try:
        yield
    except (ShoalError, OSError) as failed:
        if what is None:
            raise
        if isinstance(failed, ShoalError):
            raise type(failed)(f"{what} is published; {failed.args[0]}", failed.said[1:]) from None
        raise InputError(
            f"{what} is published; what is written beside it failed ({failed.strerror}); free some"
            " space, or name another place"
        ) from None


def listed(files: Iterable[str | Path | None]) -> str:
    """The names of files, as far as there are any, as a sentence has them."""
    names = [str(name) for name in files if name is not None]
    return " and ".join(part for part in (", ".join(names[:-1]), *names[-1:]) if part)


# What a certificate says for the person at the terminal; a quiet command shows warnings, too.


def show_findings(findings: Iterable[ReleaseWarning]) -> None:
    """A line each on standard error, whatever they were found in; the grave ones first."""
    for warning in sorted(findings, key=lambda one: one.severity != GRAVE):
        grave = "grave: " if warning.severity == GRAVE else ""
        show_warning(f"{grave}{warning.text}")


def show_certificate(certificate: Certificate, as_json: bool) -> None:
    """What it warns about, a line each on standard error; as JSON, all of it on standard output."""
    show_findings(certificate.warnings)
    if as_json:
        typer.echo(certificate.to_json(), nl=False)


def show_warning(text: object) -> None:
    """A line on standard error, however quiet the command is."""
    say(f"shoal: {printable(str(text))}", "warning")


def show_attacks(certificate: Certificate, quiet: bool = False) -> None:
    """What attacks found, on standard error."""
    from shoal.reports.attacks import attack_lines

    say_found(printable_lines(attack_lines(certificate)), quiet)
