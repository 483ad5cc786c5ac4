"""Releases that are out, beside which a table is published: options of `shoal publish`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from shoal.cli.grouped import grouped
from shoal.errors import InputError

if TYPE_CHECKING:
    from shoal.attacks.beside.beside import NamedRelease
    from shoal.data.beside import BesideGuard
    from shoal.data.progress import Progress

NONE = "-"


@dataclass(frozen=True)
class Guard:
    """Releases that are out, and what stands behind them in the same order."""

    beside: Annotated[
        list[str] | None,
        typer.Option(
            "--beside",
            metavar="FILE|LEDGER",
            help="A release of the same people: nobody may be singled out by both; repeatable.",
        ),
    ] = None
    beside_policy: Annotated[
        list[str] | None,
        typer.Option(
            "--beside-policy", metavar="FILE", help="The policy of each --beside but ledgers."
        ),
    ] = None
    beside_original: Annotated[
        list[str] | None,
        typer.Option(
            "--beside-original", metavar="FILE", help="The original of each --beside but ledgers."
        ),
    ] = None
    beside_trace: Annotated[
        list[str] | None,
        typer.Option(
            "--beside-trace",
            metavar="FILE",
            help="The trace of each --beside but ledgers, '-' for tables.",
        ),
    ] = None
    attacker: Annotated[
        str | None,
        typer.Option(
            "--attacker",
            metavar="presence|own",
            help="With --beside: knows who is in which release (default), or of one person only.",
        ),
    ] = None
    strict: Annotated[
        bool,
        typer.Option("--strict", help="With --beside: guards those who are missing here, too."),
    ] = False

    @property
    def releases(self) -> list[NamedRelease]:
        """The releases with their files; raises InputError where these are too few or too many."""
        if not (self.beside or self.beside_policy or self.beside_original or self.beside_trace):
            return []
        from shoal.attacks.beside.beside import NamedRelease
        from shoal.attacks.beside.sources import is_ledger

        names = self.beside or []
        files = [name for name in names if not is_ledger(name)]
        given = {
            "--beside-policy": self.beside_policy or [],
            "--beside-original": self.beside_original or [],
            "--beside-trace": self.beside_trace or [],
        }
        for option, values in given.items():
            is_optional = option == "--beside-trace" and not values
            if len(values) != len(files) and not is_optional:
                releases = (
                    "1 release of --beside that is not a ledger"
                    if len(files) == 1
                    else f"{len(files)} releases of --beside that are not ledgers"
                )
                raise InputError(
                    f"{option}: {len(values)} for {releases}; give one for each, in the same order"
                )
        policies, originals, traces = (iter(values) for values in given.values())
        return [
            NamedRelease(name, option=_OPTION)
            if is_ledger(name)
            else NamedRelease(
                name, next(policies), next(originals), _or_none(next(traces, NONE)), option=_OPTION
            )
            for name in names
        ]

    @property
    def files(self) -> list[str]:
        """All files that are read."""
        return [name for release in self.releases for name in release.files]

    def built(self, progress: Progress) -> BesideGuard | None:
        """The releases as they were read; None where there are none."""
        for option, given in (("--strict", self.strict), ("--attacker", self.attacker)):
            if given and not self.beside:
                raise InputError(f"{option}: is about other releases; name them with --beside")
        if not self.releases:
            return None
        from shoal.attacks.beside.guard import Against, guard_of_files

        against = Against(self.attacker, self.strict)
        return guard_of_files(self.releases, against, progress)


_OPTION = "--beside"


def _or_none(name: str) -> str | None:
    return None if name == NONE else name


NO_GUARD = Guard()
with_guard = grouped("guard", Guard)
"""A command with these options in place of its parameter `guard`."""
