"""The joint audit, from frames and from files.

Each release is audited alone first: its rows must be those of its original, or nobody could be
found again in it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from shoal.attacks.beside.audit import PRESENCE, BesideQuestion, Source, audit_sources
from shoal.attacks.beside.sources import is_ledger, of_audited, of_ledger
from shoal.auditor.audit import AuditResult, audit_file, audit_table
from shoal.auditor.stream_trace import (
    StreamSource,
    audit_stream,
    audit_traced,
    read_trace,
)
from shoal.connectors import files
from shoal.connectors.frames import Frame, table_of
from shoal.data.progress import Progress, no_progress
from shoal.data.table import Table
from shoal.errors import InputError
from shoal.policy.binding.files import (
    original_table,
    published_table,
    read_released,
    table_given,
)
from shoal.policy.policy import Policy, PolicyLike

ReleaseLike: TypeAlias = (
    tuple[Frame, PolicyLike, Frame] | tuple[Frame, PolicyLike, Frame, str | Path] | str | Path
)
"""A table or a stream with what stands behind it, or the folder of a ledger."""


@dataclass(frozen=True)
class BesideAudit:
    """What several releases about the same people give away together."""

    found: Mapping[str, Any]

    @property
    def holds(self) -> bool:
        """Whether every release keeps its promises, and enough people and values remain."""
        return bool(self.found["holds"])

    def report(self) -> dict[str, Any]:
        """As JSON states it: counts, and never who."""
        return dict(self.found)


def audit_beside(
    *releases: ReleaseLike,
    k: int | None = None,
    l: int | None = None,
    same: str | Iterable[str] = (),
    attacker: str = PRESENCE,
    progress: Progress = no_progress,
) -> BesideAudit:
    """Whether everybody who is in several releases stays among k people and l values in all.

    releases: of a table, a tuple of the released frame, its policy and its original; of a stream
    its trace besides; of a ledger its folder. k, l: by default the least that the policies ask.
    same: attributes that never change, such as `disease=diagnosis`; by default all sensitive ones
    of the same name. attacker: `presence` knows who is in which release, `own` only of one person.
    Raises InputError where people can't be found again.
    """
    texts = (same,) if isinstance(same, str) else tuple(same)
    question = BesideQuestion(attacker, texts, k, l)
    question.check()
    sources = []
    for number, release in enumerate(releases, 1):
        progress(f"auditing release {number}")
        sources.append(source_of_frames(release, f"release {number}", progress))
    return BesideAudit(audit_sources(sources, question, progress))


def source_of_frames(release: ReleaseLike, what: str, progress: Progress) -> Source:
    """A release as Python names it, audited alone."""
    if isinstance(release, str | Path):
        return Source(of_ledger(release, what), what)
    if not isinstance(release, tuple) or len(release) not in (3, 4):
        raise InputError(
            f"{what}: is not a tuple of the released frame, its policy and its original, and of a"
            " stream its trace; a ledger is named by its folder"
        )
    released, original = release[0], release[2]
    policy = Policy.of(release[1])
    policy.refuse_two_tables(what)
    if len(release) == 4:
        lines = read_trace(str(release[3]))
        table = table_of(released)
        source = table_given(original, policy).frame
        read = StreamSource(source, np.arange(source.height), None)
        result = audit_traced(table, policy, read, lines, progress)
        return Source(of_audited(result, table, policy, what, "stream"), what, result)
    table, _ = published_table(table_of(released), policy)
    result = audit_table(
        table, policy, original_table(table_given(original, policy), policy), progress
    )
    return Source(of_audited(result, table, policy, what), what, result)


@dataclass(frozen=True)
class NamedRelease:
    """A release by its files; a ledger by its folder alone."""

    released: str
    policy: str | None = None
    original: str | None = None
    trace: str | None = None
    record_lines: int | None = None
    option: str = "--with"

    @property
    def files(self) -> list[str]:
        """All files that are read."""
        named = (self.released, self.policy, self.original, self.trace)
        return [name for name in named if name is not None]

    def check(self) -> None:
        """Raises InputError, before anything is read, for what can't be judged."""
        if is_ledger(self.released):
            if len(self.files) > 1 or self.record_lines is not None:
                raise InputError(
                    f"{self.option} '{self.released}': is a ledger, which has its own policy and"
                    " private part; leave out its -p, --original and --trace"
                )
            return
        lacking = [
            option
            for option, given in (("-p", self.policy), ("--original", self.original))
            if given is None
        ]
        if lacking:
            raise InputError(
                f"{self.option} '{self.released}': needs {' and '.join(lacking)} behind it; write"
                " --with RELEASED -p POLICY --original ORIGINAL"
            )

    def source(self, what: str, progress: Progress) -> Source:
        """The release as it was read, audited alone."""
        self.check()
        if is_ledger(self.released):
            return Source(of_ledger(self.released, what), what)
        assert self.policy is not None
        assert self.original is not None
        policy = Policy.load(Path(self.policy))
        if self.trace is None:
            result = audit_file(self.released, policy, self.original, progress=progress)
        else:
            if policy.model.method is None:
                policy = policy.with_method("fads")
            result = audit_stream(
                self.released,
                policy,
                self.original,
                self.trace,
                record_lines=self.record_lines,
                progress=progress,
            )
        return source_of(result, self.released, policy, what, is_stream=self.trace is not None)


def source_of(
    result: AuditResult, released: str, policy: Policy, what: str, *, is_stream: bool
) -> Source:
    """A file that was audited, beside others."""
    if is_stream:
        table = Table(files.read(released).frame)
    else:
        table = Table(read_released(released, policy).frame)
    kind = "stream" if is_stream else "table"
    return Source(of_audited(result, table, policy, what, kind), what, result)


def audit_named(
    first: Source,
    others: Sequence[NamedRelease],
    question: BesideQuestion,
    progress: Progress = no_progress,
) -> dict[str, Any]:
    """The `beside` part of the certificate of the first release."""
    sources = [first]
    for other in others:
        progress(f"auditing {other.released}")
        sources.append(other.source(f"--with '{other.released}'", progress))
    return audit_sources(sources, question, progress)


def ledger_source(path: str | Path, what: str) -> Source:
    """A ledger, beside others."""
    return Source(of_ledger(path, what), what)
