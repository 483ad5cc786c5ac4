"""What publish, audit and attack are asked."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict

from shoal.data.option import Option, Request, build, check_together, option
from shoal.data.progress import Progress, no_progress
from shoal.data.regular_files import path_text
from shoal.errors import InputError
from shoal.policy import options

if TYPE_CHECKING:
    from shoal.attacks.beside.others import Others, OthersLike
    from shoal.attacks.run.request import AttackRequest
    from shoal.policy.binding.files import PolicyTables
    from shoal.policy.policy import Policy


class OtherReleases(Request):
    """Other releases that a release stands beside."""

    others: str | None = option(
        "--others FILE",
        "A file (YAML) that lists other releases of the same people.",
        needs=("original", "ledger"),
        why="--others: finds people again by the original; give it with --original",
    )

    @cached_property
    def beside(self) -> Others | None:
        """The other releases that a file lists; raises InputError with every finding."""
        if self.others is None:
            return None
        from shoal.attacks.beside.others import Others

        return Others.of(self.others)

    @property
    def files(self) -> list[str]:
        """All files that are read."""
        beside = self.beside
        return [] if self.others is None or beside is None else [self.others, *beside.files]

    @property
    def names(self) -> tuple[str, ...]:
        """The attacks that are asked for."""
        return ()

    def request(self, tables: PolicyTables) -> AttackRequest:
        """What is asked of a release; raises InputError. tables: how its policy reads others."""
        from shoal.attacks.run.request import AttackRequest

        return AttackRequest(self.names, files=tuple(self.files))


class Attacks(OtherReleases):
    """What attacks are tried on a release."""

    attack: list[str] | None = option(
        "--attack all|NAME,...", "Try these attacks; 'shoal attack' tries all."
    )

    @property
    def names(self) -> tuple[str, ...]:
        """The attacks that are named."""
        from shoal.attacks.run.request import attack_names

        return attack_names(self.attack) if self.attack else ()


class AttackersTables(Attacks):
    """What attacks are tried, and what they are given."""

    control: str | None = option(
        "--control FILE", "People who are not in the release, for comparison."
    )
    external: str | None = option("--external FILE", "A list of people that an attacker may hold.")
    folds: int = option(
        "--folds", "How often other people are left out as the control.", 1, low=1, high=5
    )

    @property
    def names(self) -> tuple[str, ...]:
        """The attacks that are named; else all."""
        return super().names or ("all",)

    @property
    def files(self) -> list[str]:
        """All files that are read."""
        return [*super().files, *filter(None, (self.control, self.external))]

    def request(self, tables: PolicyTables) -> AttackRequest:
        """What is asked, with its tables; raises InputError."""
        control, external = (
            None if name is None else tables.read_beside(name, f"file '{name}'")
            for name in (self.control, self.external)
        )
        asked = super().request(tables)
        return replace(asked, control=control, external=external, folds=self.folds)


class TableOptions(Request):
    """What is asked of one table, in a file or a frame."""

    plan: str | None = option(
        "--plan FILE", "Applies the plan in FILE if it exists, else saves it there."
    )
    explain: bool = option(
        "--explain", "Says why records and columns were given up, and what would be cheaper.", False
    )


class TableWords(TypedDict, total=False):
    """`TableOptions` as keywords of Python, for type checkers; a test compares the two."""

    plan: str | Path | None
    explain: bool


class OutputOptions(Request):
    """What is asked where files or linked tables are written."""

    trace: str | None = option(
        "--trace FILE", "Whose row is whose (JSON lines); private. Audits count with it."
    )
    replace: bool = options.REPLACE


class OutputWords(TypedDict, total=False):
    """`OutputOptions` as keywords of Python."""

    trace: str | Path | None
    replace: bool


class PublishOptions(OutputOptions, TableOptions):
    """What the command, Python and the page ask alike; a file is a name as text."""


class PublishWords(TableWords, OutputWords, total=False):
    """`PublishOptions` as keywords of Python."""


def publish_options(words: Mapping[str, Any]) -> PublishOptions:
    """The options among the keywords of a call, or among the texts of a form.

    Raises InputError for what is none of an option's values, and for options that do not go
    together.
    """
    known = PublishOptions.options()
    given = {
        name: path_text(words[name], name) if one.is_file else words[name]
        for name, one in known.items()
        if words.get(name) is not None
    }
    asked: PublishOptions = build(PublishOptions, "publish", given)
    named = {name: replace(one, form=name) for name, one in known.items()}
    check_together("publish", named, vars(asked))
    return asked


class PublishRequest(PublishOptions):
    """All that is asked. require_together: whatever the policy says. attack: what is tried on it.
    others: as in `shoal.publish`.
    """

    require_together: bool = False
    attack: AttackRequest | None = None
    others: OthersLike | None = None
    progress: Progress = no_progress


NOTHING_ELSE = PublishRequest()


class PublishCommand(Request, kw_only=True):
    """What the command is asked, up to what comes with the certificate."""

    input_path: str = option(
        "INPUT",
        "The table: a file, a folder, one in a database; '-' reads CSV. Of linked tables, all.",
        ...,
    )
    policy: Path = options.POLICY
    output: str = option(
        "-o, --output",
        "The release: a file, 'out/' for a folder of Parquet, a table in a database, '-'. Of linked"
        " tables, a new folder, a workbook or a database.",
        ...,
    )
    overrides: options.Overrides
    given: PublishOptions
    table: list[str] | None = options.TABLES
    attacks: Attacks
    dry_run: bool = option(
        "--dry-run",
        "Writes nothing: tells from an invented table of that size which time, memory and disk it"
        " would take here.",
        False,
    )

    def request(self, policy: Policy, progress: Progress) -> PublishRequest:
        """All that is asked of a release by a policy; raises InputError."""
        attack, others = self.attacks.request(policy.tables), self.attacks.beside
        return PublishRequest(**vars(self.given), attack=attack, others=others, progress=progress)


_OF_ONE_TABLE_ALONE = {*TableOptions.options(), "attack", "others", "downstream"}


def of_one_table(*asked: Request) -> dict[str, Option]:
    """What is asked that linked tables have not, by name."""
    given = [pair for one in asked for pair in one.options_given.items()]
    return {name: one for name, one in given if name in _OF_ONE_TABLE_ALONE}


NOT_TOGETHER = (
    ", whose releases are not judged together: publish them once, or each time of other people"
)


def refuse_for_linked(unfit: Iterable[str]) -> None:
    """Raises InputError for what is asked that linked tables have not."""
    if named := ", ".join(unfit):
        way_out = "" if "others" not in named else NOT_TOGETHER
        raise InputError(f"{named}: of one table; leave out for linked tables{way_out}")


# An audit or an attack, of one table unless it is said otherwise.

_NEEDS_ORIGINAL = "--trace: can only be checked against the source; give it with --original"
_OF_POLICY = ("policy", "original", "trace", "downstream")
_OF_ONE_TABLE = (
    *_OF_POLICY,
    *("column", "read", "write"),
    *("control", "external", "folds", "person", "memory"),
)


class ReleasedColumns(Request):
    """What an audit without a policy is asked."""

    column: list[str] | None = option(
        "--column ROLE=A,B",
        "Without a policy: quasi=, columns that an attacker could know; subject=, the person;"
        " sensitive=C[:l=N][:t=T], with l values a class and t-closeness of t. Repeatable.",
        takes_no=(*_OF_POLICY, "others"),
    )

    def of_role(self, role: str) -> list[str]:
        """What is given for a role; raises InputError for columns without a known one."""
        pairs = [text.partition("=")[::2] for text in self.column or []]
        InputError.raise_for(
            f"--column '{known}': is not ROLE=A,B; write quasi=, subject= or sensitive="
            for known, _ in pairs
            if known not in ("quasi", "subject", "sensitive")
        )
        return [text for known, text in pairs if known == role]

    def bounds(self) -> tuple[list[str], int | None, float | None]:
        """The sensitive columns with l and t; raises InputError."""
        parts = [re.split(r":(?=[lt]=)", text) for text in self.of_role("sensitive")]
        settings = {setting for _, *more in parts for setting in more}
        stated = dict(setting.split("=", 1) for setting in settings)
        try:
            if len(stated) < len(settings):
                raise ValueError
            l, t = stated.get("l"), stated.get("t")
            bounds = None if l is None else int(l), None if t is None else float(t)
        except ValueError:
            raise InputError(
                "--column sensitive: needs one whole number as l and one number as t for all"
                " columns; write for instance --column sensitive=disease,ward:l=3:t=0.2"
            ) from None
        return options.names([columns for columns, *_ in parts]), *bounds

    def policy(self, changes: options.Overrides) -> Policy:
        """The policy that the options say; raises InputError.

        changes: k, and how files are written.
        """
        from shoal.auditor.audit import policy_of_columns

        if changes.k is None:
            raise InputError("audit --column: needs --k; say how many people must look alike")
        sensitive, l, t = self.bounds()
        quasi, subject = options.names(self.of_role("quasi")), self.of_role("subject")
        policy = policy_of_columns(quasi, changes.k, subject=subject, sensitive=sensitive, l=l, t=t)
        return policy.with_files(*options.files_options(changes.read, changes.write))


class ReleaseRequest(Request, kw_only=True):
    """Which release is looked at, and what there is beside it."""

    released: str | None = option(
        "RELEASED",
        "The released table, ours or not; else --ledger (or the table in a database that"
        " the ledger writes, with --ledger).",
    )
    policy: Path | None = option(
        "-p, --policy", "The policy (YAML, JSON or TOML); a ledger has its own."
    )
    ledger: Path | None = option(
        "--ledger DIR", "All releases of a ledger, alone and together.", takes_no=_OF_ONE_TABLE
    )
    original: str | None = option(
        "--original", "What it was made of: with --trace, counts people, checks cells."
    )
    trace: str | None = option(
        "--trace",
        "Whose row is whose, as its --trace wrote it; needs --original.",
        needs=("original",),
        why=_NEEDS_ORIGINAL,
    )
    k: int | None = options.K
    read: list[str] | None = options.READ
    write: list[str] | None = options.WRITE
    output: str | None = option("-o, --output", "Write the certificate to this file.")
    replace: bool = options.REPLACE
    attacks: OtherReleases

    @property
    def changes(self) -> options.Overrides:
        """What is changed in the policy."""
        return options.Overrides(k=self.k, read=self.read, write=self.write)

    def policy_asked(self, is_stream: bool) -> Policy:
        """The policy that is given; raises InputError."""
        assert self.policy is not None
        policy = self.changes.policy(self.policy)
        return policy.or_method("fads") if is_stream else policy


class AuditRequest(ReleaseRequest, kw_only=True):
    """What an audit is asked: of a release, of a ledger or of a fusion's messages."""

    trace: str | None = option(
        "--trace",
        "Whose row is whose, as its --trace wrote it; needs --original. Or alone, a folder: prove"
        " that a fusion's messages, as its --transcript kept them, say no more than its table.",
    )
    downstream: bool = option(
        "--downstream", "Train on the release, test on --original; random counts. Extra: ml.", False
    )
    columns: ReleasedColumns

    @property
    def is_of_messages(self) -> bool:
        """Whether it is about the messages of a fusion; raises InputError for a trace alone."""
        if self.trace is None:
            return False
        if self.original is None and not Path(self.trace).is_dir():
            raise InputError(_NEEDS_ORIGINAL)
        return Path(self.trace).is_dir()

    def policy_asked(self, is_stream: bool) -> Policy:
        """The policy that is given, or that the columns say; raises InputError."""
        if self.policy is None:
            return self.columns.policy(self.changes)
        return super().policy_asked(is_stream)


class AttackCommand(ReleaseRequest, kw_only=True):
    """What attackers try on a release."""

    attacks: AttackersTables
    person: str | None = option(
        "--person ROW",
        "Instead, what they see of one person, values included: a row of the original from 1,"
        " 'most-exposed' or 'most-distorted'.",
        takes_no=(
            *("k", "output", "report"),
            *("attack", "control", "external", "folds", "others"),
        ),
    )
