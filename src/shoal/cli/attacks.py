"""Options that publish and audit share: which attacks are tried, beside which other releases."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand

from shoal.cli.options import grouped, option
from shoal.errors import InputError

if TYPE_CHECKING:
    import numpy as np

    from shoal.attacks.beside.audit import BesideQuestion
    from shoal.attacks.beside.guard import BesideGuard
    from shoal.attacks.beside.sources import NamedRelease
    from shoal.attacks.run.earlier import Earlier
    from shoal.attacks.run.request import AttackRequest
    from shoal.data.progress import Progress
    from shoal.policy.policy import Policy


# Releases that are out, beside which a table is published: options of `shoal publish`.


NONE = "-"


@dataclass(frozen=True)
class Guard:
    """Releases that are out, and what stands behind them in the same order."""

    beside: Annotated[
        list[str] | None,
        option(
            "--beside FILE|LEDGER",
            "A release of the same people: nobody may be singled out by both; repeatable.",
        ),
    ] = None
    beside_policy: Annotated[
        list[str] | None,
        option("--beside-policy FILE", "The policy of each --beside but ledgers."),
    ] = None
    beside_original: Annotated[
        list[str] | None,
        option("--beside-original FILE", "The original of each --beside but ledgers."),
    ] = None
    beside_trace: Annotated[
        list[str] | None,
        option("--beside-trace FILE", "The trace of each --beside but ledgers, '-' for none."),
    ] = None
    attacker: Annotated[
        str | None,
        option(
            "--attacker presence|own",
            "With --beside: knows who is in which release (default), or of one person only.",
        ),
    ] = None
    strict: Annotated[
        bool,
        option("--strict", "With --beside: guards those who are missing here, too."),
    ] = False

    @property
    def releases(self) -> list[NamedRelease]:
        """The releases with their files; raises InputError where these are too few or too many."""
        if not (self.beside or self.beside_policy or self.beside_original or self.beside_trace):
            return []
        from shoal.attacks.beside.sources import NamedRelease, is_ledger

        names = self.beside or []
        files = [name for name in names if not is_ledger(name)]
        given = {
            "--beside-policy": self.beside_policy or [],
            "--beside-original": self.beside_original or [],
            "--beside-trace": self.beside_trace or [],
        }
        for name, values in given.items():
            is_optional = name == "--beside-trace" and not values
            if len(values) != len(files) and not is_optional:
                releases = (
                    "1 release of --beside that is not a ledger"
                    if len(files) == 1
                    else f"{len(files)} releases of --beside that are not ledgers"
                )
                raise InputError(
                    f"{name}: {len(values)} for {releases}; give one for each, in the same order"
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
        for name, given in (("--strict", self.strict), ("--attacker", self.attacker)):
            if given and not self.beside:
                raise InputError(f"{name}: is about other releases; name them with --beside")
        if not self.releases:
            return None
        from shoal.attacks.beside.guard import guard_of

        return guard_of(self.releases, self.attacker, self.strict, progress)


_OPTION = "--beside"


def _or_none(name: str) -> str | None:
    return None if name == NONE else name


NO_GUARD = Guard()
with_guard = grouped("guard", Guard)
"""A command with these options in place of its parameter `guard`."""


# Other releases of the same people, each with what stands behind it on the command line.


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
        option(
            f"{WITH} FILE|LEDGER",
            "Another release of the same people, judged together; repeatable. Its -p,"
            " --original and --trace stand behind it.",
        ),
    ] = None
    attacker: Annotated[
        str | None,
        option(
            "--attacker presence|own",
            "With --with: knows who is in which release (default), or of one person only.",
        ),
    ] = None
    same: Annotated[
        list[str] | None,
        option(
            "--same A=B", "With --with: columns of one attribute that never changes; repeatable."
        ),
    ] = None

    def with_files(self, context: typer.Context) -> Beside:
        """These options with the files that stand behind each --with."""
        behind = context.meta.get(_META, [])
        return Beside(self.with_, self.attacker, self.same, tuple(behind))


@dataclass(frozen=True)
class Beside(Named):
    """What a release is judged together with, and the files behind each --with by parameter."""

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
        from shoal.attacks.beside.sources import NamedRelease

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
    if not (text.isascii() and text.isdigit() and len(text) < 10 and int(text)):
        raise InputError("--record-lines: is a number of lines, 1 or more")
    return int(text)


NO_BESIDE = Beside()
NONE_NAMED = Named()
with_others = grouped("others", Named)
"""A command with these options in place of its parameter `others`."""


@dataclass(frozen=True)
class Attacks:
    """What attacks are tried on a release, and what they are given."""

    attack: Annotated[
        list[str] | None,
        option("--attack all|NAME,...", "Try these attacks; an audit needs --original."),
    ] = None
    control: Annotated[
        str | None,
        option("--control FILE", "People who are not in the release, for comparison."),
    ] = None
    external: Annotated[
        str | None,
        option("--external FILE", "A list of people that an attacker may hold."),
    ] = None
    earlier: Annotated[
        list[str] | None,
        option("--earlier FILE", "Another release of the same people; repeatable."),
    ] = None
    earlier_policy: Annotated[
        list[Path] | None,
        option("--earlier-policy FILE", "The policy of each --earlier, if another."),
    ] = None
    earlier_trace: Annotated[
        list[str] | None,
        option(
            "--earlier-trace FILE",
            "The trace of each --earlier, where these are of the same records.",
        ),
    ] = None
    folds: Annotated[
        int | None,
        option("--folds", "How often other people are left out as the control; 1.", min=1, max=5),
    ] = None

    @property
    def files(self) -> list[str]:
        """All files that are read."""
        single = [name for name in (self.control, self.external) if name is not None]
        others = [*(self.earlier or []), *(self.earlier_trace or [])]
        return [*single, *others, *map(str, self.earlier_policy or [])]

    @property
    def names(self) -> tuple[str, ...]:
        """The attacks that are named."""
        from shoal.attacks.run.request import attack_names

        return attack_names(self.attack) if self.attack else ()

    def given(self) -> dict[str, object]:
        """What attacks on one table are given besides, by option; None where it isn't."""
        return {
            "--control": self.control,
            "--external": self.external,
            "--earlier": self.earlier,
            "--earlier-policy": self.earlier_policy,
            "--earlier-trace": self.earlier_trace,
            "--folds": self.folds,
        }

    def request(self, policy: Policy) -> AttackRequest:
        """What is asked, with its tables; raises InputError."""
        from shoal.attacks.run.request import AttackRequest
        from shoal.policy.binding.files import read_beside

        given = self.files or ([] if self.folds is None else ["--folds"])
        if not self.attack and given and not policy.model.accept:
            raise InputError(
                "--control, --external, --earlier and --folds: belong to attacks; name them with"
                " --attack"
            )
        control, external = (
            None if name is None else read_beside(name, policy, f"file '{name}'")
            for name in (self.control, self.external)
        )
        return AttackRequest(self.names, control, external, self._earlier(policy), self.folds or 1)

    def _earlier(self, policy: Policy) -> tuple[Earlier, ...]:
        if not (self.earlier or self.earlier_policy or self.earlier_trace):
            return ()
        from shoal.attacks.run.earlier import Earlier
        from shoal.auditor.audit import as_certified
        from shoal.policy.binding.files import read_released
        from shoal.policy.policy import Policy

        names, paths = self.earlier or [], self.earlier_policy or []
        if len(paths) not in (0, 1, len(names)):
            raise InputError(
                f"--earlier-policy: {len(paths)} policies for {len(names)} earlier releases; give"
                " one for all, or one for each"
            )
        policies = [Policy.load(path) for path in paths] or [policy]
        policies = policies * len(names) if len(policies) == 1 else policies
        found = []
        for name, own, rows in zip(names, policies, self._traced_rows(), strict=True):
            released = read_released(name, own)
            own = as_certified(own, name, released.sha256)
            found.append(Earlier(released.table, own, rows))
        return tuple(found)

    def _traced_rows(self) -> list[np.ndarray | None]:
        """By earlier release, the record behind each of its rows, where a trace tells."""
        from shoal.connectors.traces import traced_rows

        names, traces = self.earlier or [], self.earlier_trace or []
        if traces and len(traces) != len(names):
            raise InputError(
                f"--earlier-trace: {len(traces)} traces for {len(names)} earlier releases; give one"
                " for each, or none"
            )
        return [traced_rows(trace) for trace in traces] or [None] * len(names)


NO_ATTACKS = Attacks()
with_attacks = grouped("attacks", Attacks)
"""A command with these options in place of its parameter `attacks`."""
