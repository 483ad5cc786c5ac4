"""Options that several verbs share, and how they change a policy."""

import inspect
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import fields
from functools import wraps
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer
from typer.models import ArgumentInfo

from shoal.data.option import Option, Request, check_together, option
from shoal.errors import InputError

# How a command is made of what its function is asked.


def command(asked: Callable[..., None]) -> Callable[..., None]:
    """The command of a function: it takes every `option` of its parameters and of their requests.

    A function of another package, without any, is a command of Typer as it is.
    """
    options = list(_options(asked))
    if not options:
        return asked
    parameters = [_parameter(*one) for one in options]
    # as a manual has them
    parameters.sort(key=lambda one: not isinstance(one.annotation.__metadata__[0], ArgumentInfo))

    @wraps(asked)
    def run(**given: Any) -> None:
        if given.get("metrics") is not None:  # they are written before all else
            from shoal.connectors.outputs import misplaced

            written = filter(None, map(given.get, ("sink", "output")))
            InputError.raise_for(misplaced("release", written, given["metrics"]))
        with ExitStack() as around:
            for name, _, one in reversed(options):
                if one.within is not None:
                    around.enter_context(import_module(one.within).using(given[name]))
            check_together(asked.__name__, {name: one for name, _, one in options}, given)
            _filled(asked, given)

    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {one.name: one.annotation for one in parameters}
    return run


def _options(owner: Any) -> Iterator[tuple[str, Any, Option]]:
    """The name, type and option of all that a function or a request is asked, in order."""
    for name, kind, default in _members(owner):
        if isinstance(default, Option):
            yield name, kind, default
        elif _is_request(kind):
            yield from _options(kind)


def _members(owner: Any) -> list[tuple[str, Any, Any]]:
    """The name, type and option, if it is one, of each field or parameter."""
    hints = get_type_hints(owner)
    if _is_request(owner):
        return [(one.name, hints[one.name], one.metadata.get("option")) for one in fields(owner)]
    parameters = inspect.signature(owner).parameters.values()
    return [(one.name, hints[one.name], one.default) for one in parameters]


def _is_request(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, Request)


def _parameter(name: str, kind: Any, asked: Option) -> inspect.Parameter:
    """The parameter that Typer makes an option of."""
    words = asked.form.split()
    flags = [word.rstrip(",") for word in words if word.startswith("-")]
    made: Any = typer.Option(*flags) if flags else typer.Argument()
    made.metavar, made.help = " ".join(words[len(flags) :]) or None, asked.help
    made.min, made.max = asked.low, asked.high
    default = inspect.Parameter.empty if asked.default is ... else asked.default
    kind = Annotated[kind, made]
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=kind)


def _filled(owner: Any, given: Mapping[str, Any]) -> Any:
    """The request of what is given, or what the function returns for it; raises InputError for a
    value that is none of an option's choices.
    """
    values = {}
    for name, kind, asked in _members(owner):
        if _is_request(kind):
            values[name] = _filled(kind, given)
        elif isinstance(asked, Option):
            values[name] = given[name]
            if asked.choices and given[name] not in asked.choices:
                raise InputError(
                    f"{asked.form} '{given[name]}': is unknown; choose one of"
                    f" {', '.join(asked.choices)}"
                )
    return owner(**values)


def is_number(text: str) -> bool:
    """Whether a text is a whole number of fewer than ten digits."""
    return text.isascii() and text.isdigit() and len(text) < 10


# Options that several verbs have.

THREADS = option(
    "--threads N",
    "How many threads may work at once; default the process's cores.",
    low=1,
    within="shoal.data.cores",
)
MEMORY = option(
    "--memory SIZE",
    "How much memory may be used, such as 700MB; more lies in nameless files (TMPDIR).",
    within="shoal.data.room",
)
ENGINE = option(
    "--engine spark[:N]",
    "Who works on the files of a folder: Spark's executors, on a stream in N shards. Extra: spark.",
    within="shoal.connectors.engines",
)
JSON = option("--json", "Print the certificate on standard output.", False)
REPORT = option("--report FILE.html", "Write a report to hand on.")
QUIET = option("-q, --quiet", "No progress, no summary; findings are still said.", False)


class Watched(Request):
    """How whoever watches a run is served."""

    metrics: Path | None = option(
        "--metrics FILE.prom",
        "Counts and times for Prometheus, in a file for its node exporter.",
        within="shoal.connectors.metrics",
    )
    log: str = option(
        "--log",
        "Messages on standard error: plain, or json, an object a line.",
        "plain",
        choices=("plain", "json"),
        within="shoal.cli.progress",
    )
    quiet: bool = QUIET


SIGN = option("--sign KEY", "Sign the certificate with this private key. Extra: sign.")


class Run(Request):
    """What is handed on with the certificate of a table, and what works on it."""

    as_json: bool = JSON
    report: Path | None = REPORT
    quiet: bool = QUIET
    engine: str | None = ENGINE
    memory: str | None = MEMORY


class ThreadedRun(Run):
    """What else works on the table where most work is done."""

    threads: int | None = THREADS


PAGES = (".html", ".htm")
_PAGE = re.compile(
    rb'<!DOCTYPE html>\s+<html lang="[\w-]+">\s+<head>\s+<meta charset="utf-8">\s+<meta '
    rb'name="viewport" content="width=device-width, initial-scale=1">\s+<meta '
    rb'name="color-scheme" content="light dark">\s+<title>'
)
"""How every page of Shoal begins."""


def check_page(page: Path | None, option: str = "--report") -> None:
    """Raises InputError where the name of a page doesn't say that it is one."""
    if page is not None and page.suffix.lower() not in PAGES:
        raise InputError(f"{option} '{page}': is a page of HTML; give it a name that ends in .html")


def check_outputs(
    *outputs: Path | str | None,
    inputs: Sequence[Path | str | None],
    report: Path | None = None,
    replace: bool = True,
    release: str | None = None,
) -> None:
    """Raises InputError before any work is done where an output can't be written, is a file that
    is read, or lies in the folder of a release.

    report: a page, drawn anew each time. replace: whether other files that are there give way.
    """
    check_page(report)
    written = [output for output in (report, *outputs) if output is not None]
    if not written:
        return
    from shoal.connectors.files import check_writable
    from shoal.connectors.location import Location
    from shoal.connectors.outputs import misplaced

    read = [file.resolve() for name in inputs if name and (file := Location(name).file)]
    InputError.raise_for(
        f"output '{output}': is also another file of this command; name a file of its own"
        for output in written
        if Path(Location(output)).resolve() in read
    )
    if release is not None:
        InputError.raise_for(misplaced("release", [release], *written))
    for output in written:
        check_writable(str(output), replace or output is report)
    if not (replace or report is None or _is_own(report)):
        raise InputError(
            f"--report '{report}': is there already, and is no report of Shoal; name another file"
        )


def _is_own(page: Path) -> bool:
    """Whether nothing is there, or a page that Shoal drew."""
    try:
        with open(page, "rb") as file:
            return _PAGE.match(file.read(1024)) is not None
    except OSError:
        return not page.exists()
