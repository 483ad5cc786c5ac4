"""Options that several verbs share, and how they change a policy."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from shoal.cli.grouped import grouped
from shoal.errors import InputError

if TYPE_CHECKING:
    from shoal.policy.policy import Policy

PolicyFile = Annotated[
    Path, typer.Option("-p", "--policy", help="The policy (YAML, JSON or TOML).")
]
K = Annotated[int | None, typer.Option("--k", help="Overrides the policy's k.")]
Method = Annotated[
    str | None, typer.Option("--method", help="Overrides the policy's method; see 'shoal methods'.")
]
Settings = Annotated[
    list[str] | None,
    typer.Option(
        "--set", metavar="PARAM=VALUE", help="Sets a parameter of the method; repeatable."
    ),
]
Read = Annotated[
    list[str] | None,
    typer.Option(
        "--read",
        metavar="KEY=VALUE",
        help="How the input is written, such as encoding=cp1252, decimal=,; repeatable.",
    ),
]
Write = Annotated[
    list[str] | None,
    typer.Option(
        "--write",
        metavar="KEY=VALUE",
        help="How the release is written, such as encoding=utf-8, delimiter=;; repeatable.",
    ),
]
Seed = Annotated[int | None, typer.Option("--seed", help="Overrides the policy's seed.")]
Json = Annotated[bool, typer.Option("--json", help="Print the certificate on standard output.")]
Report = Annotated[
    Path | None, typer.Option("--report", metavar="FILE.html", help="Write a report to hand on.")
]
RequireTogether = Annotated[
    bool,
    typer.Option(
        "--require-together",
        help="Fails unless the largest k holds over all quasi-identifiers together.",
    ),
]
Quiet = Annotated[bool, typer.Option("-q", "--quiet", help="No progress, no summary.")]

PAGES = (".html", ".htm")


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
        typer.Option(
            "--qi", metavar="A,B", help="Without a policy: columns that an attacker could know."
        ),
    ] = None
    subject: Annotated[
        str | None, typer.Option("--subject", help="With --qi: the column that names the person.")
    ] = None
    sensitive: Annotated[
        list[str] | None,
        typer.Option("--sensitive", metavar="C,D", help="With --qi: sensitive columns."),
    ] = None
    l: Annotated[
        int | None,
        typer.Option("--l", help="With --sensitive or --with: least number of distinct values."),
    ] = None
    t: Annotated[
        float | None, typer.Option("--t", help="With --sensitive: the bound of t-closeness.")
    ] = None

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
    if findings:
        raise InputError.from_findings(findings)


_OF_TEXT = {
    "--read": ("encoding", "delimiter", "sheet", "header"),
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
    from shoal.policy.interchange import keys_and_values

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
    if findings:
        raise InputError.from_findings(findings)
    return {name: value for name, _, value in pairs}
