"""Options that several verbs share, and how they change a policy."""

from __future__ import annotations

import inspect
import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_origin, get_type_hints

import typer
from typer.models import ArgumentInfo

from shoal.data.option import Option
from shoal.errors import InputError
from shoal.tables.request import TOGETHER

if TYPE_CHECKING:
    from shoal.auditor.dossier.context import Heading
    from shoal.policy.policy import Policy

Decorator = Callable[[Callable[..., None]], Callable[..., None]]


def option(form: str, help: str, **more: Any) -> Any:
    """An option in the form in which the manual shows it, such as '-o, --output FILE'."""
    words = form.split()
    flags = [word.rstrip(",") for word in words if word.startswith("-")]
    metavar = " ".join(words[len(flags) :]) or None
    return typer.Option(*flags, metavar=metavar, help=help, **more)


def argument(form: str, help: str, **more: Any) -> Any:
    """An argument by its name in the manual."""
    return typer.Argument(metavar=form, help=help, **more)


# Options that hold for a whole command: what they set stands around it.


def _around(
    name: str, annotation: Any, entered: Callable[[Any], AbstractContextManager[Any]]
) -> Decorator:
    """A decorator that gives a command an option, behind its others, and runs it within that."""

    def with_option(command: Callable[..., None]) -> Callable[..., None]:
        kind = inspect.Parameter.KEYWORD_ONLY
        one = inspect.Parameter(name, kind, default=None, annotation=annotation)
        parameters = inspect.signature(command, eval_str=True).parameters.values()

        @wraps(command)
        def within(**given: Any) -> None:
            with entered(given.pop(name, None)):
                command(**given)

        return _with_parameters(within, [*parameters, one])

    return with_option


def _with_parameters(
    command: Callable[..., None], parameters: list[inspect.Parameter]
) -> Callable[..., None]:
    """A command that Typer takes to have these parameters."""
    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    command.__annotations__ = {one.name: one.annotation for one in parameters}
    return command


def _on_threads(threads: int | None) -> AbstractContextManager[None]:
    if threads is not None and "polars" not in sys.modules:
        os.environ.setdefault(POLARS_THREADS, str(threads))  # it counts cores when it is loaded
    from shoal.data import cores

    return cores.using(threads)


def _within_memory(memory: str | None) -> AbstractContextManager[None]:
    from shoal.data import room

    return room.using(memory)


def _on_engine(engine: str | None) -> AbstractContextManager[None]:
    from shoal.connectors import engines

    return engines.using(engine)


POLARS_THREADS = "POLARS_MAX_THREADS"
Threads = Annotated[
    int | None,
    option("--threads N", "How many threads may work at once; default the process's cores.", min=1),
]
Memory = Annotated[
    str | None,
    option(
        "--memory SIZE",
        "How much memory may be used, such as 700MB; more lies in nameless files (TMPDIR).",
    ),
]
Engine = Annotated[
    str | None,
    option(
        "--engine spark",
        "Who works on the files of a folder: Spark's executors. Extra: spark.",
    ),
]
with_threads = _around("threads", Threads, _on_threads)
with_memory = _around("memory", Memory, _within_memory)
with_engine = _around("engine", Engine, _on_engine)


# Options that belong together, as one parameter of a command.


def _of_command_line(annotation: Any) -> Any:
    """The annotation, with the option of Typer where a request's field says what it is."""
    asked = annotation.__metadata__[0]
    if not isinstance(asked, Option):
        return annotation
    made = option if asked.form.startswith("-") else argument
    return Annotated[annotation.__origin__, made(asked.form, asked.help, min=asked.low)]


def _is_argument(parameter: inspect.Parameter) -> bool:
    said = getattr(parameter.annotation, "__metadata__", [None])
    return isinstance(said[0], ArgumentInfo)


def _check_choices(group: type, given: Mapping[str, Any]) -> None:
    """Raises InputError for a value that is none of an option's choices."""
    for name, hint in get_type_hints(group, include_extras=True).items():
        asked = getattr(hint, "__metadata__", [None])[0]
        if isinstance(asked, Option) and asked.choices and given[name] not in asked.choices:
            raise InputError(
                f"{asked.form} '{given[name]}': is unknown; choose one of"
                f" {', '.join(asked.choices)}"
            )


def grouped(name: str, group: type) -> Decorator:
    """Puts the fields of a dataclass that are options in the place of a command's parameter."""
    options = [
        option.replace(annotation=_of_command_line(option.annotation))
        for option in inspect.signature(group, eval_str=True).parameters.values()
        if get_origin(option.annotation) is Annotated
    ]
    names = [option.name for option in options]

    def with_options(command: Callable[..., None]) -> Callable[..., None]:
        parameters: list[inspect.Parameter] = []
        for parameter in inspect.signature(command, eval_str=True).parameters.values():
            parameters += options if parameter.name == name else [parameter]
        parameters.sort(key=lambda one: not _is_argument(one))  # as a manual has them

        @wraps(command)
        def taken(**given: Any) -> None:
            _check_choices(group, given)
            values = group(**{option: given.pop(option) for option in names})
            command(**given, **{name: values})

        return _with_parameters(taken, parameters)

    return with_options


PolicyFile = Annotated[Path, option("-p, --policy", "The policy (YAML, JSON or TOML).")]
K = Annotated[int | None, option("--k", "Overrides the policy's k.")]
Method = Annotated[
    str | None, option("--method", "Overrides the policy's method; see 'shoal methods'.")
]
Settings = Annotated[
    list[str] | None,
    option("--set PARAM=VALUE", "Sets a parameter of the method; repeatable."),
]
Read = Annotated[
    list[str] | None,
    option(
        "--read KEY=VALUE",
        "How the input is written, such as encoding=cp1252, decimal=,; repeatable.",
    ),
]
Write = Annotated[
    list[str] | None,
    option(
        "--write KEY=VALUE",
        "How the release is written, such as encoding=utf-8, delimiter=;; repeatable.",
    ),
]
Seed = Annotated[int | None, option("--seed", "Overrides the policy's seed.")]
Json = Annotated[bool, option("--json", "Print the certificate on standard output.")]
Report = Annotated[Path | None, option("--report FILE.html", "Write a report to hand on.")]
About = Annotated[
    Path | None,
    option("--context FILE", "A context of 'shoal dossier': the report shows who and why."),
]
RequireTogether = Annotated[bool, option(TOGETHER.form, TOGETHER.help)]
Quiet = Annotated[bool, option("-q, --quiet", "No progress, no summary.")]

PAGES = (".html", ".htm")


def heading_of(released: str, about: Path | None, report: Path | None) -> Heading | None:
    """What a report is of, if there is one; raises InputError where nothing shows the context, or
    it can't be read.
    """
    if report is None:
        if about is not None:
            raise InputError("--context: a report shows it; name one with --report")
        return None
    from shoal.auditor.dossier.context import Heading

    return Heading.of(released, about)


def check_outputs(
    *outputs: Path | str | None,
    inputs: Sequence[str | None],
    report: Path | None = None,
    page: str = "--report",
) -> None:
    """Raises InputError before any work is done where an output can't be written or is a file that
    is read.

    report: an output that is a page, which its name must say. page: the option that names it.
    """
    if report is not None and report.suffix.lower() not in PAGES:
        raise InputError(f"{page} '{report}': is a page of HTML; give it a name that ends in .html")
    for output in (report, *outputs):
        if output is None:
            continue
        path = Path(output)
        if path.is_dir() or not path.parent.is_dir() or not os.access(path.parent, os.W_OK):
            raise InputError(
                f"output '{path}': can't be written; name a file in a folder that exists and is"
                " writable"
            )
        if any(
            path.resolve() == Path(name).resolve() for name in inputs if name not in (None, "-")
        ):
            raise InputError(
                f"output '{path}': is also another file of this command; name a file of its own"
            )


@dataclass(frozen=True)
class Overrides:
    """What a command changes in a policy."""

    k: K = None
    method: Method = None
    settings: Settings = None
    seed: Seed = None
    read: Read = None
    write: Write = None

    def policy(
        self, path: Path, verb: str = "publish", default_method: str | None = None
    ) -> Policy:
        """The policy in the file with these changes; raises InputError.

        verb: that the method must serve. default_method: the verb's own, where neither the command
        nor the policy names one.
        """
        from shoal.policy.policy import Policy

        policy = Policy.load(path).with_files(*files_options(self.read, self.write))
        if self.k is not None:
            policy = policy.with_k(self.k)
        is_default = self.method is None and policy.model.method is None
        method = default_method if is_default else self.method
        if method is not None or self.settings:
            policy = policy.with_method(method, parsed(self.settings or []))
        if is_default and self.settings:
            policy.require_fit(verb)
        return policy if self.seed is None else policy.with_seed(self.seed)

    def refuse_without_policy(self) -> None:
        """Raises InputError where something is changed and there is no policy to change."""
        if any(value not in (None, []) for value in vars(self).values()):
            raise InputError(
                "--k, --method, --set, --seed, --read and --write: change a policy; name it with"
                " --policy"
            )


NO_OVERRIDES = Overrides()


@dataclass(frozen=True)
class ReleasedColumns:
    """What an audit without a policy is asked."""

    qi: Annotated[
        list[str] | None,
        option("--qi A,B", "Without a policy: columns that an attacker could know."),
    ] = None
    subject: Annotated[
        str | None, option("--subject", "With --qi: the column that names the person.")
    ] = None
    sensitive: Annotated[
        list[str] | None,
        option("--sensitive C,D", "With --qi: sensitive columns."),
    ] = None
    l: Annotated[
        int | None,
        option("--l", "With --sensitive: least number of distinct values."),
    ] = None
    t: Annotated[float | None, option("--t", "With --sensitive: the bound of t-closeness.")] = None

    def given(self) -> dict[str, object]:
        """What is given, by option."""
        return {
            "--qi": self.qi,
            "--subject": self.subject,
            "--sensitive": self.sensitive,
            "--l": self.l,
            "--t": self.t,
        }

    def policy(self, changes: Overrides) -> Policy:
        """The policy that the options say; raises InputError.

        changes: k, and how files are written.
        """
        from shoal.auditor.without_policy import policy_of_columns

        if changes.k is None:
            raise InputError("audit --qi: needs --k; say how many people must look alike")
        policy = policy_of_columns(
            names(self.qi),
            changes.k,
            subject=self.subject,
            sensitive=names(self.sensitive),
            l=self.l,
            t=self.t,
        )
        read, write = files_options(changes.read, changes.write)
        _refuse_meaningless(read, write)
        return policy.with_files(read, write)


def _refuse_meaningless(read: Iterable[str], write: Iterable[str]) -> None:
    """Raises InputError with what an audit without a policy would pass over."""
    findings = [
        f"{option} {key}: says what cells mean, and without a policy they are compared as text;"
        " leave it out, or give --policy"
        for option, keys in (("--read", read), ("--write", write))
        for key in keys
        if key not in _OF_TEXT[option]
    ]
    InputError.raise_for(findings)


_OF_TEXT = {
    "--read": ("encoding", "delimiter", "sheet", "header", "unpacked"),
    "--write": ("encoding", "delimiter", "formulas"),
}
"""What an audit without a policy can follow: how text is written, not what it means."""

NO_COLUMNS = ReleasedColumns()


def names(texts: list[str] | None) -> list[str]:
    """Names that commas part, over all times that the option is given."""
    return [name.strip() for text in texts or [] for name in text.split(",") if name.strip()]


with_overrides = grouped("overrides", Overrides)
"""A command with the options of `Overrides` in place of its parameter `overrides`."""


def files_options(
    read: Sequence[str] | None, write: Sequence[str] | None = None
) -> tuple[dict[str, Any], dict[str, Any]]:
    """KEY=VALUE texts of --read and --write; raises InputError with every one that is none."""
    from shoal.policy.loading import keys_and_values

    reading, findings = keys_and_values("--read", list(read or []))
    writing, more = keys_and_values("--write", list(write or []))
    if findings or more:
        raise InputError.from_findings([*findings, *more])
    return reading, writing


def parsed(settings: list[str]) -> dict[str, str]:
    """PARAM=VALUE texts as a mapping; raises InputError with every one that is not."""
    findings = [
        f"--set '{text}': is not PARAM=VALUE; write for instance --set preset=paper"
        for text in settings
        if "=" not in text
    ]
    pairs = [[part.strip() for part in text.partition("=")] for text in settings]
    findings += [
        f"--set '{name}': the method takes no such parameter; write --{name} {value}"
        for name, _, value in pairs
        if name in ("k", "method", "seed")  # every method has these from the policy
    ]
    InputError.raise_for(findings)
    return {name: value for name, _, value in pairs}


# The policy that a reader of a certificate gives, as the release was made by it.


def policy_of_release(
    released: str, certificate: Path | None, given: Path | None, overrides: Overrides
) -> Policy | None:
    """The policy that is given, with the options that it was published with; where a fusion's
    agreement is given, that of the agreement.
    """
    if given is None:
        overrides.refuse_without_policy()
        return None
    # what reads certificates and agreements is loaded only where a policy is given
    from shoal.connectors.location import Location
    from shoal.data.certificate import Certificate

    proof = certificate or Path(Location(released).certificate)
    if proof.exists() and Certificate.load(proof)["verb"] == "fuse":
        from shoal.policy.agreement import Agreement

        with suppress(InputError):  # then it is a policy, or nothing that can be read
            return Agreement.load(given).policy
    return overrides.policy(given)
