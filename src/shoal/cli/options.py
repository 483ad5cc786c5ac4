"""Options that several verbs share, and how they change a policy."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, fields
from functools import wraps
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer
from typer.models import ArgumentInfo

from shoal.data.option import Option, Request, option
from shoal.errors import InputError

if TYPE_CHECKING:
    from shoal.auditor.dossier.context import Heading
    from shoal.policy.policy import Policy

# How a command is made of what its function is asked.


def command(asked: Callable[..., None]) -> Callable[..., None]:
    """The command of a function: it takes every `option` of its parameters and of their requests.

    A function of another package, without any, is a command of Typer as it is.
    """
    options = list(_options(asked))
    if not options:
        return asked
    parameters = [_parameter(*one) for one in options]
    parameters.sort(key=lambda one: not _is_argument(one))  # as a manual has them

    @wraps(asked)
    def run(**given: Any) -> None:
        with ExitStack() as around:
            for name, _, one in reversed(options):
                if one.within is not None:
                    around.enter_context(import_module(one.within).using(given[name]))
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
    made.min, made.max, made.hidden = asked.low, asked.high, asked.is_hidden
    default = inspect.Parameter.empty if asked.default is ... else asked.default
    kind = Annotated[kind, made]
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=kind)


def _is_argument(parameter: inspect.Parameter) -> bool:
    return isinstance(parameter.annotation.__metadata__[0], ArgumentInfo)


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
    "--engine spark",
    "Who works on the files of a folder: Spark's executors. Extra: spark.",
    within="shoal.connectors.engines",
)
POLICY = option("-p, --policy", "The policy (YAML, JSON or TOML).", ...)
K = option("--k", "Overrides the policy's k.")
METHOD = option("--method", "Overrides the policy's method; see 'shoal methods'.")
SETTINGS = option("--set PARAM=VALUE", "Sets a parameter of the method; repeatable.")
READ = option(
    "--read KEY=VALUE", "How the input is written, such as encoding=cp1252, decimal=,; repeatable."
)
WRITE = option(
    "--write KEY=VALUE",
    "How the release is written, such as encoding=utf-8, delimiter=;; repeatable.",
)
SEED = option("--seed", "Overrides the policy's seed.")
JSON = option("--json", "Print the certificate on standard output.", False)
REPORT = option("--report FILE.html", "Write a report to hand on.")
ABOUT = option("--context FILE", "A context of 'shoal dossier': the report shows who and why.")
QUIET = option("-q, --quiet", "No progress, no summary.", False)

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
class Overrides(Request):
    """What a command changes in a policy."""

    k: int | None = K
    method: str | None = METHOD
    settings: list[str] | None = SETTINGS
    seed: int | None = SEED
    read: list[str] | None = READ
    write: list[str] | None = WRITE

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
class ReleasedColumns(Request):
    """What an audit without a policy is asked."""

    qi: list[str] | None = option(
        "--qi A,B", "Without a policy: columns that an attacker could know."
    )
    subject: str | None = option("--subject", "With --qi: the column that names the person.")
    sensitive: list[str] | None = option("--sensitive C,D", "With --qi: sensitive columns.")
    l: int | None = option("--l", "With --sensitive: least number of distinct values.")
    t: float | None = option("--t", "With --sensitive: the bound of t-closeness.")

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
