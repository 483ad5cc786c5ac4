"""The command line: parse, call one job, show. Every verb is a file beside this one."""

import atexit
import errno
import gc
import json
import os
import signal
import sys
from contextlib import suppress
from itertools import pairwise
from types import FrameType
from typing import NoReturn

import typer

from shoal.cli.verbs import Verbs, usage_sentence
from shoal.connectors.database.address import without_password
from shoal.data.printable import printable
from shoal.errors import STOPS, InputError, ShoalError
from shoal.version import VERSION

INTERRUPTED = 130
INTERNAL_ERROR = 70
NOTHING_WRITTEN = "interrupted; nothing was written"
NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
BLAS_THREADS = "OPENBLAS_NUM_THREADS"
YOUNG_OBJECTS = 250_000  # more than the imports of a short command leave
SOON = 0.05  # seconds until a stop is tried again

app = typer.Typer(
    name="shoal",
    cls=Verbs,
    help=(
        "Publish personal data so that every person hides among at least k - 1 others, and"
        " prove it."
    ),
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
)


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"shoal {VERSION}")
        raise typer.Exit()


@app.callback()
def main(
    version: bool = typer.Option(
        False, "--version", callback=_version, is_eager=True, help="Show the version."
    ),
) -> None:
    """Publish personal data, and prove what was promised about it."""


def run() -> NoReturn:
    """The `shoal` command: runs it and ends with the exit status that the contract fixes."""
    sys.unraisablehook = _unraisable
    for stop in STOPS:  # all end like Ctrl-C: nothing half-written stays
        signal.signal(stop, _interrupt)
    # OpenBLAS starts its threads when NumPy is imported, and keeps them turning while they wait; no
    # method multiplies matrices large enough for several. Whoever has set it has their way.
    os.environ.setdefault(BLAS_THREADS, "1")
    # most of a short command is imports, which leave no garbage; to look for it takes some 20 ms
    gc.set_threshold(YOUNG_OBJECTS)
    status = INTERNAL_ERROR

    def leave() -> None:
        """Ends at once: taking every library apart costs more than publishing a small table."""
        for open_end in filter(None, (sys.stdout, sys.stderr)):
            open_end.flush()
        os._exit(status)

    # the first that is registered runs last, after all that libraries clean up
    atexit.register(leave)
    status = status_of(sys.argv[1:])
    sys.exit(status)


def _interrupt(number: int, frame: FrameType | None) -> None:
    """Ctrl-C; a little later where something is being compiled, since the compiler loses it, or
    breaks by it.
    """
    at = frame
    while at is not None and hasattr(signal, "setitimer"):
        if at.f_globals.get("__name__", "").startswith(("numba.", "llvmlite.")):
            _interrupt_soon()
            return
        at = at.f_back
    raise KeyboardInterrupt


def _interrupt_soon() -> None:
    """By a timer, whose SIGALRM is a stop like any other."""
    signal.setitimer(signal.ITIMER_REAL, SOON)


def _unraisable(lost: "sys.UnraisableHookArgs") -> None:
    """Repeats a stop where Python can raise nothing, such as between imports or in a `__del__`."""
    if issubclass(lost.exc_type, KeyboardInterrupt) and hasattr(signal, "setitimer"):
        _interrupt_soon()
    else:
        sys.__unraisablehook__(lost)


def status_of(arguments: list[str]) -> int:
    """Run one command; errors become one line on standard error and an exit status, and with --json
    an object on standard output.
    """

    def fail(status: int, message: object, findings: tuple[str, ...] = ()) -> int:
        _say(arguments, status, [printable(str(line)) for line in (message, *findings)])
        return status

    try:
        arguments = [without_password(argument) for argument in arguments]
        status = int(app(arguments, standalone_mode=False) or 0)
        return fail(status, NOTHING_WRITTEN) if status == INTERRUPTED else status
    except ShoalError as error:
        return fail(error.exit_status, error.args[0], error.findings)
    except (KeyboardInterrupt, typer.Abort):
        return fail(INTERRUPTED, NOTHING_WRITTEN)
    except typer.Exit as stop:
        return stop.exit_code
    except SystemExit as stop:  # from a verb that has itself said how it was stopped
        # but not this one, which is Typer's way to stop
        if isinstance(stop.__context__, BrokenPipeError):
            if _only_lists(arguments):
                return 0  # whoever closed it has seen enough, as `head` has
            return fail(
                InputError.exit_status,
                "standard output: was closed before all was shown; keep its reader open",
            )
        return stop.code if isinstance(stop.code, int) else INTERNAL_ERROR
    except typer.TyperException as usage:
        if not usage.format_message():  # the help was shown instead
            return 2
        return fail(2, usage_sentence(usage, arguments))
    except MemoryError:
        return fail(
            InputError.exit_status,
            "memory: there is not enough of it for this; give less data, or see --memory",
        )
    except BaseException as bug:
        # compiled code gives a stop back in its own words, and Python 3.11 where a class is made
        if isinstance(bug.__cause__, KeyboardInterrupt):
            return fail(INTERRUPTED, NOTHING_WRITTEN)
        if isinstance(bug, OSError) and bug.errno in NO_ROOM:
            return fail(
                InputError.exit_status,
                f"output: writing failed ({bug.strerror}); free some space or name another place",
            )
        if os.environ.get("SHOAL_DEBUG") == "1":
            raise
        failed = bug.strerror if isinstance(bug, OSError) else None
        if isinstance(bug, RuntimeError) and str(bug).startswith("Symlink loop"):  # pathlib's own
            failed = os.strerror(errno.ELOOP)
        if failed is not None:
            return fail(
                InputError.exit_status,
                f"a file or folder: reading or writing failed ({failed}); check the names and"
                " rights of all that the command reads and writes",
            )
        # an exception's own text may hold cell values, so only its kind is shown
        return fail(
            INTERNAL_ERROR,
            f"internal error ({type(bug).__name__}); run again with SHOAL_DEBUG=1 and report the"
            " trace",
        )


def _only_lists(arguments: list[str]) -> bool:
    """Whether a command shows what there is, and no data or verdict is lost at its end."""
    return arguments[:1] == ["methods"] or not {"--schema", "--help"}.isdisjoint(arguments)


def _say(arguments: list[str], status: int, lines: list[str]) -> None:
    from shoal.cli.progress import say, using

    is_log_json = "--log=json" in arguments or ("--log", "json") in pairwise(arguments)
    with suppress(BrokenPipeError):  # nobody reads it; the exit status says as much
        with using("json" if is_log_json else "plain"):
            for line in lines:
                say(f"shoal: {line}", "error")
        if "--json" in arguments:
            error = {"status": status, "message": lines[0], "findings": lines[1:]}
            typer.echo(json.dumps({"error": error}, indent=2, ensure_ascii=False))


if __name__ == "__main__":
    run()
