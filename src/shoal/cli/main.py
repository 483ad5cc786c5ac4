"""The command line: parse, call one job, show. Every verb is a file beside this one, imported and
built when it is first asked for.

Other packages bring verbs by the entry point group `shoal.commands`: a function each, which is
loaded when it is asked for. To list them reads a file of every package, so only the help does, and
who asks for a verb that is not Shoal's.
"""

import atexit
import errno
import gc
import json
import os
import re
import signal
import sys
from collections.abc import Callable, Iterator, Mapping, MutableMapping, Sequence
from contextlib import suppress
from functools import cache
from importlib import import_module
from itertools import pairwise, takewhile
from types import FrameType
from typing import Any, NoReturn, cast

import typer
from typer.core import TyperGroup
from typer.main import get_command

from shoal.cli import options
from shoal.connectors.location import without_password
from shoal.data.language import printable
from shoal.errors import STOPS, InputError, ShoalError, is_full, system_error
from shoal.version import VERSION

PANELS = {
    "Publish": {
        "publish": "publish",
        "republish": "republish",
        "stream": "republish",
        "fuse": "fuse",
        "party": "fuse",
    },
    "Prepare": dict.fromkeys(("policy", "hierarchies", "profile", "compare"), "policy"),
    "Check": {
        "audit": "publish",
        "verify": "verify",
        "attack": "publish",
        "stream-status": "republish",
        "ledger": "republish",
    },
    "Hand on": dict.fromkeys(("dossier", "sign"), "verify"),
    "Tools": dict.fromkeys(("ui", "methods", "sample", "warmup"), "machine"),
}
"""In the order of the help: the verbs of each panel, each with the file that it stands in."""
PANEL_OF = {name: panel for panel, verbs in PANELS.items() for name in verbs}
FILE_OF = {name: file for verbs in PANELS.values() for name, file in verbs.items()}
VERBS = tuple(PANEL_OF)
GROUPS = ("party", "policy", "hierarchies", "ledger")
"""Verbs that have commands of their own."""


class Verbs(TyperGroup):
    """A command with all verbs below it."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        # which Typer only reads
        self.commands = cast("MutableMapping[str, Any]", _Built(self.rich_markup_mode))

    def format_help(self, ctx: Any, formatter: Any) -> None:
        _hide_types_of_flags(self)  # those too that Typer adds at last
        super().format_help(ctx, formatter)


class _Built(Mapping[str, Any]):
    """Every verb's command; those that nobody looks at are not built."""

    def __init__(self, markup: Any) -> None:
        self._markup = markup

    def __getitem__(self, name: str) -> Any:
        if name in VERBS:
            return _built(name, self._markup)
        from shoal.policy import plug_ins

        return _brought(plug_ins.command(name, VERBS), name, self._markup)

    def __contains__(self, name: object) -> bool:
        if name in VERBS:
            return True
        from shoal.policy import plug_ins

        return name in plug_ins.commands(VERBS)

    def __iter__(self) -> Iterator[str]:
        from shoal.policy import plug_ins

        return iter((*VERBS, *plug_ins.commands(VERBS)))

    def __len__(self) -> int:
        return len(list(iter(self)))


@cache
def _built(name: str, markup: Any) -> Any:
    verb = getattr(import_module(f"shoal.cli.{FILE_OF[name]}"), name.replace("-", "_"))
    if name not in GROUPS:
        return _brought(verb, name, markup, PANEL_OF[name])
    for one in verb.registered_commands:
        one.callback = options.command(one.callback)
    alone = typer.Typer(add_completion=False, rich_markup_mode=markup)
    alone.add_typer(verb, name=name, rich_help_panel=PANEL_OF[name])
    return _command_of(alone, name)


@cache
def _brought(
    function: Callable[..., Any], name: str, markup: Any, panel: str = "Of other packages"
) -> Any:
    """The command that a function makes."""
    alone = typer.Typer(add_completion=False, rich_markup_mode=markup)
    alone.command(name, rich_help_panel=panel)(options.command(function))
    return _command_of(alone, name)


def _command_of(alone: typer.Typer, name: str) -> Any:
    # with a callback, Typer makes a group of one command, too
    alone.callback()(lambda: None)
    command = cast(TyperGroup, get_command(alone)).commands[name]
    for one in (command, *getattr(command, "commands", {}).values()):
        _hide_types_of_flags(one)
    return command


def _hide_types_of_flags(command: Any) -> None:
    """Makes the help name no type of options that take no value."""
    for parameter in command.get_params(typer.Context(command)):
        if getattr(parameter, "is_flag", False):
            parameter.metavar = ""


# Messages about a command that was typed wrongly, in our words.

UNREADABLE_PATH = "is not readable"
_UNKNOWN_COMMAND = re.compile("No such command '(.+?)'")


def usage_sentence(usage: Any, arguments: Sequence[str]) -> str:
    """What is wrong with the arguments, and where the help of that command is."""
    said = (
        _instead(usage)
        or _without_its_group(usage)
        or _unknown_option(usage)
        or _missing_arguments(usage)
        or _in_our_words(usage.format_message())
    )
    if said.endswith(UNREADABLE_PATH):
        return f"{said}; run as its owner, or ask for the right to read it"
    return f"{said}; see '{_command_asked(usage) or _command_in(arguments)} --help'"


def _in_our_words(usage: str) -> str:
    """What is wrong with the command line: the option, what it is not, and one that would do."""
    unfit = re.fullmatch("Invalid value for (.+?): (?:Input )?(.+)", usage)
    if unfit is None:
        return usage.rstrip(".?").replace(". Did you mean", "; did you mean")
    option, reason = unfit[1].split(" / ")[-1].strip("'"), unfit[2].rstrip(".")
    if "valid integer" in reason:
        reason = f"is not a whole number; write for instance {option} 10"
    elif "valid number" in reason:
        reason = f"is not a number; write for instance {option} 1.5"
    return f"{option}: {reason}"


def _without_its_group(usage: Any) -> str | None:
    """What is wrong where the command of a group was typed without the group; else None."""
    unknown = _UNKNOWN_COMMAND.match(usage.format_message())
    context = getattr(usage, "ctx", None)
    if unknown is None or context is None or context.parent is not None:
        return None
    within = [
        f"'shoal {group} {unknown[1]}'"
        for group in GROUPS
        if unknown[1] in getattr(context.command.commands[group], "commands", ())
    ]
    return f"{unknown[0]}; did you mean {' or '.join(within)}" if within else None


_FILE = "into a file and name that with --others"
_RELEASES = f"'releases: [{{release: FILE, policy: FILE, original: FILE, trace: FILE}}]' {_FILE}"
_ATTACK = "'shoal attack RELEASED -p POLICY --original FILE"
INSTEAD = {
    **dict.fromkeys(("--beside", "--with", "--earlier"), _RELEASES),
    **dict.fromkeys(("--beside-policy", "--earlier-policy", "--beside-original"), _RELEASES),
    **dict.fromkeys(("--beside-trace", "--earlier-trace"), _RELEASES),
    "--attacker": f"'attacker: own' {_FILE}",
    "--strict": f"'strict: true' {_FILE}",
    "--same": f"'same: [A=B]' {_FILE}",
    "--attack": f"{_ATTACK} --attack NAME,...'",
    **dict.fromkeys(("--control", "--external", "--folds"), f"{_ATTACK} ...' with it"),
    "--sign": "'shoal sign FILE --key KEY' afterwards",
    "--metadata": "'shoal dossier RELEASED --metadata KIND,...' afterwards",
    "--reference": "'reference: TABLE' into the policy",
    **dict.fromkeys(("--sensitive", "--l", "--t"), "'--column sensitive=A,B:l=N:t=T'"),
    "--qi": "'--column quasi=A,B'",
    "--subject": "'--column subject=A'",
    "--record-lines": "'--read record_lines=N', or 'record_lines' below 'read' of the policy",
    "--partitioner": "'--read partitioner=NAME'",
    "--roll": "'--write roll=SIZE' or '--write roll=day'",
    "--on-bad": "'--dead-letters stop' where a bad record ends the stream",
    "--shards": "'--engine spark:N'",
    "--require-together": "'require_together: true' into the policy",
    "--transcript": "'shoal audit --trace FOLDER' with the folder of a fusion's messages",
    "--table": "the folder, workbook or database of all tables, also as '--original'",
    "--threads": "'taskset -c 0-3 shoal audit ...' where it may not use all cores",
    "--context": "'shoal dossier RELEASED --context FILE'",
    "attacker-view": f"{_ATTACK} --person ROW'",
    "risk": "'shoal profile INPUT -p POLICY'",
    "marginal": "'shoal compare INPUT -p POLICY --columns'",
    "levels": "'shoal compare INPUT -p POLICY --levels COLUMN:LEVEL'",
    "estimate": "'shoal publish INPUT -p POLICY -o OUTPUT --dry-run'",
    "schema": "'shoal policy check --schema'",
    "key": "'shoal sign --new-key NAME'",
    "sweep": "nothing: the next run that writes into a folder deletes what killed ones left there",
}
"""What to write instead of a command of earlier versions, or of an option of `OF_OPTIONS`."""
OF_OPTIONS = ("publish", "audit", "attack", "stream")


def _instead(usage: Any) -> str | None:
    """What to write instead of a command or an option of earlier versions; None of any other."""
    unknown = _UNKNOWN_COMMAND.match(usage.format_message())
    name = unknown[1] if unknown else getattr(usage, "option_name", None)
    known = unknown or getattr(getattr(usage, "ctx", None), "info_name", "") in OF_OPTIONS
    return f"{name}: write {INSTEAD[name]}" if known and name in INSTEAD else None


def _unknown_option(usage: Any) -> str | None:
    """An unknown option and those most like it, nearest first; None of any other mistake."""
    alike = getattr(usage, "possibilities", None)
    long = f"-{getattr(usage, 'option_name', '')}"  # of -k, --k
    context = getattr(usage, "ctx", None)
    if context is not None and any(long in one.opts for one in context.command.params):
        alike = [long]
    if alike is None:
        return None
    known = " or ".join(alike)
    return f"{usage.message}; did you mean {known}" if known else str(usage.message)


def _missing_arguments(usage: Any) -> str | None:
    """The arguments that are missing, each with what it is; None of any other mistake."""
    if not usage.format_message().startswith("Missing argument"):
        return None
    parameters = usage.ctx.command.params
    # they are filled from the left, so that those behind a missing one are missing, too
    missing = [
        f"{one.get_error_hint()} ({one.help[:1].lower()}{one.help[1:].removesuffix('.')})"
        for one in parameters[parameters.index(usage.param) :]
        if one.param_type_name == "argument" and one.required
    ]
    return f"Missing argument{'s' if len(missing) > 1 else ''} {' and '.join(missing)}"


def _command_asked(usage: Any) -> str | None:
    """The command that was used wrongly: 'shoal publish', or 'shoal' alone; None if unknown."""
    context, names = getattr(usage, "ctx", None), []
    if context is None:
        return None
    while context.parent is not None:
        names.append(context.info_name)
        context = context.parent
    return " ".join(["shoal", *reversed(names)])


def _command_in(arguments: Sequence[str]) -> str:
    """The command that arguments begin with: an option without its value tells none."""
    names = list(takewhile(lambda argument: not argument.startswith("-"), arguments))
    depth = 2 if names[:1] and names[0] in GROUPS else 1
    return " ".join(["shoal", *names[:depth]]) if names[:1] and names[0] in VERBS else "shoal"


INTERRUPTED = 130
INTERNAL_ERROR = 70
NOTHING_WRITTEN = "interrupted; nothing was written"
BLAS_THREADS = "OPENBLAS_NUM_THREADS"
YOUNG_OBJECTS = 250_000  # more than the imports of a short command leave
SOON = 0.05  # seconds until a stop is tried again
COMPILES = ("shoal.data.kernel_cache", "_compile_core")
"""The module and function in which kernels are compiled, and not only loaded."""

app = typer.Typer(
    name="shoal",
    cls=Verbs,
    help=(
        "Publish personal data so that every person hides among at least k - 1 others, and"
        " verify it."
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
    """Publish personal data, and verify what was promised about it."""


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
        if sys.stdout:
            sys.stdout.flush()
        with suppress(OSError):  # what standard error does not take changes no status
            if sys.stderr:
                sys.stderr.flush()
        os._exit(status)

    # the first that is registered runs last, after all that libraries clean up
    atexit.register(leave)
    status = status_of(sys.argv[1:])
    for stop in STOPS:  # nothing could be raised any more, and not all may have been shown
        signal.signal(stop, lambda *_: os._exit(INTERRUPTED))
    sys.exit(status)


def _interrupt(number: int, frame: FrameType | None) -> None:
    """Ctrl-C; a little later where something is being compiled, since the compiler loses it, or
    breaks by it.
    """
    running = []
    while frame is not None:
        running.append((frame.f_globals.get("__name__", ""), frame.f_code.co_name))
        frame = frame.f_back
    in_compiler = any(module.startswith(("numba.", "llvmlite.")) for module, _ in running)
    if not in_compiler or not hasattr(signal, "setitimer"):
        raise KeyboardInterrupt
    if COMPILES in running and number != signal.SIGALRM:
        from shoal.cli.progress import say

        say("shoal: stops once what is being compiled is on disk; if killed, it is compiled again")
    _interrupt_soon()


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

    def fail(status: int, *message: object, found: Sequence[object] = ()) -> int:
        _say(arguments, status, [printable(str(line)) for line in message], found or message)
        return status

    try:
        arguments = [without_password(argument) for argument in arguments]
        status = int(app(arguments, standalone_mode=False) or 0)
        return fail(status, NOTHING_WRITTEN) if status == INTERRUPTED else status
    except ShoalError as error:
        return fail(error.exit_status, *error.said, found=error.found)
    except (KeyboardInterrupt, typer.Abort):
        return fail(INTERRUPTED, NOTHING_WRITTEN)
    except typer.Exit as stop:
        return stop.exit_code
    except SystemExit as stop:  # from a verb that has itself said how it was stopped
        # but not this one, which is Typer's way to stop
        if isinstance(stop.__context__, BrokenPipeError):
            # where it lists what there is, whoever closed it has seen enough, as `head` has
            if arguments[:1] == ["methods"] or {"--schema", "--help"} & {*arguments}:
                return 0
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
        number = system_error(bug)
        failed = None if number is None else os.strerror(number)
        if is_full(bug):
            return fail(
                InputError.exit_status,
                f"output: writing failed ({failed}); free some space or name another place",
            )
        if os.environ.get("SHOAL_DEBUG") == "1":
            raise
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


def _say(arguments: list[str], status: int, lines: list[str], found: Sequence[object]) -> None:
    from shoal.cli.progress import say, using

    is_log_json = "--log=json" in arguments or ("--log", "json") in pairwise(arguments)
    with suppress(OSError):  # nobody can read it; the exit status says as much
        with using("json" if is_log_json else "plain"):
            for line in lines:
                say(f"shoal: {line}", "error")
        if "--json" in arguments:
            rows = [[*getattr(one, "rows", ())] for one in found]
            error = {"status": status, "message": lines[0], "findings": lines[1:], "rows": rows}
            typer.echo(json.dumps({"error": error}, indent=2, ensure_ascii=False))


if __name__ == "__main__":
    run()
