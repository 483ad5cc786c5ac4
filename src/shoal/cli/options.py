"""Options that several verbs share, and how they change a policy."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

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
Seed = Annotated[int | None, typer.Option("--seed", help="Overrides the policy's seed.")]
Json = Annotated[bool, typer.Option("--json", help="Print the certificate on standard output.")]
Report = Annotated[
    Path | None, typer.Option("--report", metavar="FILE.html", help="Write a report to hand on.")
]
Quiet = Annotated[bool, typer.Option("-q", "--quiet", help="No progress, no summary.")]

PAGES = (".html", ".htm")


def check_outputs(
    *outputs: Path | str | None, inputs: Sequence[str | None], report: Path | None = None
) -> None:
    """Raises InputError before any work is done where an output can't be written or is a file that
    is read.

    report: an output that is a page, which its name must say.
    """
    if report is not None and report.suffix.lower() not in PAGES:
        raise InputError(
            f"--report '{report}': a report is a page of HTML; give it a name that ends in .html"
        )
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


def policy_with(
    path: Path,
    k: int | None,
    method: str | None,
    settings: list[str] | None,
    seed: int | None,
    default_method: str | None = None,
) -> Policy:
    """The policy in the file with the command's overrides; raises InputError.

    default_method: the verb's own, where neither the command nor the policy names one.
    """
    from shoal.policy.policy import Policy

    policy = Policy.load(path)
    if k is not None:
        policy = policy.with_k(k)
    if method is None and policy.model.method is None:
        method = default_method
    if method is not None or settings:
        policy = policy.with_method(method, parsed(settings or []))
    return policy if seed is None else policy.with_seed(seed)


def parsed(settings: list[str]) -> dict[str, str]:
    """PARAM=VALUE texts as a mapping; raises InputError with every one that is none."""
    findings = [
        f"--set '{text}': is no PARAM=VALUE; write for instance --set preset=paper"
        for text in settings
        if "=" not in text
    ]
    if findings:
        raise InputError.from_findings(findings)
    return {
        name.strip(): value.strip() for name, _, value in (text.partition("=") for text in settings)
    }
