"""Other releases of the same people, each with what stands behind it on the command line."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand

from shoal.cli.grouped import grouped
from shoal.errors import InputError

if TYPE_CHECKING:
    from shoal.attacks.beside.audit import BesideQuestion
    from shoal.attacks.beside.beside import NamedRelease

WITH = "--with"
OF_RELEASE = {
    "-p": "policy",
    "--policy": "policy",
    "--original": "original",
    "--trace": "trace",
    "--record-lines": "record_lines",
}
"""What belongs to the release that it follows."""
_META = "shoal.cli.beside"


class OfSeveralReleases(TyperCommand):
    """A command whose -p, --original and --trace belong to the --with before them, if any."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Sets aside what follows each --with, and reads the rest as any command does."""
        own, behind = parted(args)
        ctx.meta[_META] = behind
        return super().parse_args(ctx, own)


def parted(args: Iterable[str]) -> tuple[list[str], list[dict[str, str]]]:
    """The arguments without what belongs to another release, and that, release by release.

    Raises InputError where a release is given something twice.
    """
    own: list[str] = []
    behind: list[dict[str, str]] = []
    rest = iter(args)
    for arg in rest:
        if arg == "--":
            return [*own, arg, *rest], behind
        name, has_value, value = arg.partition("=") if arg.startswith("--") else (arg, "", "")
        if arg.startswith("-p") and len(arg) > 2:
            name, has_value, value = "-p", "=", arg[2:]
        if name == WITH:
            behind.append({})
        if not behind or name not in OF_RELEASE:
            own.append(arg)
            continue
        if OF_RELEASE[name] in behind[-1]:
            raise InputError(
                f"audit {name}: is given twice behind one --with; write it behind the release that"
                " it belongs to, and what belongs to RELEASED before the first --with"
            )
        behind[-1][OF_RELEASE[name]] = value if has_value else next(rest, "")
    return own, behind


@dataclass(frozen=True)
class Named:
    """What a release is judged together with, as options name it."""

    with_: Annotated[
        list[str] | None,
        typer.Option(
            WITH,
            metavar="FILE|LEDGER",
            help=(
                "Another release of the same people, judged together; repeatable. Its -p,"
                " --original and --trace stand behind it."
            ),
        ),
    ] = None
    attacker: Annotated[
        str | None,
        typer.Option(
            "--attacker",
            metavar="presence|own",
            help="With --with: knows who is in which release (default), or of one person only.",
        ),
    ] = None
    same: Annotated[
        list[str] | None,
        typer.Option(
            "--same",
            metavar="A=B",
            help="With --with: columns of one attribute that never changes; repeatable.",
        ),
    ] = None

    def with_files(self, context: typer.Context) -> Beside:
        """The same with the files behind each --with."""
        behind = context.meta.get(_META, [])
        return Beside(self.with_, self.attacker, self.same, tuple(behind))


@dataclass(frozen=True)
class Beside(Named):
    """The same with what stands behind each --with: files by their parameter."""

    behind: Sequence[dict[str, str]] = ()

    @property
    def is_asked(self) -> bool:
        return bool(self.with_)

    def given(self) -> dict[str, object]:
        """What is given, by option."""
        return {WITH: self.with_, "--attacker": self.attacker, "--same": self.same}

    def check(self) -> None:
        """Raises InputError, before anything is read, for what can't be judged."""
        if not self.is_asked and (self.attacker or self.same):
            raise InputError(
                "--attacker and --same: belong to releases that are judged together; name another"
                " with --with"
            )
        for release in self.releases:
            release.check()

    @property
    def releases(self) -> list[NamedRelease]:
        """The other releases with their files."""
        from shoal.attacks.beside.beside import NamedRelease

        return [
            NamedRelease(released, **{key: _number(key, text) for key, text in given.items()})
            for released, given in zip(self.with_ or [], self.behind, strict=True)
        ]

    @property
    def files(self) -> list[str]:
        """All files that are read."""
        return [name for release in self.releases for name in release.files]

    def question(self, k: int | None, l: int | None) -> BesideQuestion:
        """The options of the audit of all of them."""
        from shoal.attacks.beside.audit import PRESENCE, BesideQuestion

        question = BesideQuestion(self.attacker or PRESENCE, tuple(self.same or ()), k, l)
        question.check()
        return question


def _number(key: str, text: str) -> Any:
    if key != "record_lines":
        return text
    if not text.isdigit() or int(text) < 1:
        raise InputError("--record-lines: is a number of lines, 1 or more")
    return int(text)


NO_BESIDE = Beside()
NONE_NAMED = Named()
with_others = grouped("others", Named)
"""A command with these options in place of its parameter `others`."""
