"""What if: each method's next release of a ledger, audited as if published, and thrown away; and
what `sticky` would have published of a series of increments.
"""

from __future__ import annotations

import json
import secrets
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from shoal.auditor.ledger.release_view import HistoryFinding
from shoal.auditor.ledger.terms import check_policy, sensitive_names
from shoal.connectors.files import SourceFile
from shoal.connectors.frames import Frame
from shoal.connectors.ledger import Ledger
from shoal.connectors.ledger.private import DeferredRecords, PanelState
from shoal.data.certificate import Certificate
from shoal.data.ledger_view import CARRIED, LOCKSTEP, TOGETHER, Panel
from shoal.data.partition import Partition
from shoal.data.progress import Progress, no_progress
from shoal.data.table import Table
from shoal.data.uncompiled import always
from shoal.errors import InputError, ShoalError
from shoal.ledgers.increment import INSERT, Terms, tokens_of
from shoal.ledgers.methods.sticky import Sticky
from shoal.ledgers.next_release import plan, write_and_audit
from shoal.ledgers.republish import (
    check_increment,
    check_ledger,
    increment_of,
    republish_file,
    with_defaults,
)
from shoal.ledgers.returning import ReturningPlan, in_order_of_names, place_returning, records_of
from shoal.policy import registry
from shoal.policy.policy import Policy, PolicyLike
from shoal.search.segments import loss_of

WARM = 200
"""Records that the kernels are compiled with."""


@dataclass(frozen=True)
class Prospect:
    """What one method would do with an increment.

    certificate: of its release, None where there would be none. told: why there would be none, or
    what breaks the history.
    """

    method: str
    certificate: Certificate | None
    findings: Sequence[HistoryFinding] = ()
    waiting: int = 0
    told: Sequence[str] = ()

    @property
    def outcome(self) -> str:
        """In a word: published, withheld, waits, or refused."""
        if self.certificate is None:
            return "waits" if self.waiting else "refused"
        is_safe = not any(finding.is_violation for finding in self.findings)
        return "published" if self.certificate.holds and is_safe else "withheld"

    def report(self) -> dict[str, Any]:
        """As JSON states it."""
        c = self.certificate
        return {
            "method": self.method,
            "outcome": self.outcome,
            "covers": None if c is None else c["covers"],
            "records": None if c is None else c["records"]["out"],
            "classes": None if c is None else c["classes"],
            "gcp": None if c is None else c["utility"]["gcp"],
            "seconds": None if c is None else c["seconds"]["method"],
            "waiting": self.waiting,
            "findings": [finding.report() for finding in self.findings],
            "told": list(self.told),
        }


def what_if(
    frame: Frame,
    policy: PolicyLike,
    ledger: str | Path,
    *,
    progress: Progress = no_progress,
) -> list[Prospect]:
    """What each method of re-publication would do with new records; nothing is published or begun.

    The policy's own method has the parameters that it has there. Raises InputError or LedgerError.
    """
    policy = Policy.of(policy)
    return prospects(increment_of(frame, policy), policy, Path(ledger), progress)


def prospects(
    source: SourceFile, policy: Policy, ledger_path: Path, progress: Progress
) -> list[Prospect]:
    """What each method of re-publication would do with records that were read already."""
    policy = with_defaults(policy)
    check_increment(source, policy)
    with tempfile.TemporaryDirectory(prefix="shoal-what-if-") as folder:
        ledger = Ledger(ledger_path)
        if not ledger.exists:
            ledger = Ledger(Path(folder) / "ledger")  # nothing is begun by asking
        with ledger.locked():
            check_ledger(ledger, policy, looks_back=True)
            names = [m.name for m in registry.methods().values() if m.verb == "republish"]
            for name in names:
                _warm_up(source, policy.with_method(name, {}), Path(folder) / name)
            return [_prospect(name, source, policy, ledger, progress) for name in names]


def _warm_up(source: SourceFile, policy: Policy, folder: Path) -> None:
    """Publish some of the records twice, the second time as other people.

    So kernels are compiled before anything is timed.
    """
    some = source.frame
    if policy.operation is not None:
        some = some.filter(
            pl.col(policy.operation).is_null() | (pl.col(policy.operation) == INSERT)
        )
    some = some.head(WARM)
    others = (
        some
        if policy.subject is None
        else some.with_columns(pl.col(policy.subject).cast(pl.String) + "again")
    )
    with always(compiled=True), suppress(ShoalError):
        for turn, frame in enumerate((some, others)):
            republish_file(SourceFile(Table(frame), f"{turn}"), policy, folder, allow_leaks=True)


def _prospect(
    name: str, source: Any, policy: Policy, ledger: Ledger, progress: Progress
) -> Prospect:
    asked = policy.with_method(name, {})
    terms = Terms(asked, asked.build_method("republish"), ledger)
    try:
        check_policy(asked, terms.method)
        terms = terms.beside_the_table()
        planned, waiting = plan(source.frame, terms, progress)
        if planned is None:
            return Prospect(name, None, waiting=waiting.records, told=waiting.reasons)
        with ledger.draft() as draft:
            audited = write_and_audit(
                planned, waiting.returning, terms, draft.published, source.sha256, progress
            )
    except ShoalError as refused:
        return Prospect(name, None, told=[str(refused.args[0]), *refused.findings])
    told = [str(finding) for finding in audited.violations]
    return Prospect(name, audited.certificate, audited.findings, waiting.records, told)


def as_json(found: Sequence[Prospect | Rehearsal]) -> str:
    """All of it, for programs."""
    return json.dumps([one.report() for one in found], indent=2) + "\n"


# Rehearsal: what would have been published of people who came again, by mode, size and patience.
#
# In memory and without an audit: no release leaves, so nothing is promised of it.


METHOD = "sticky"
PATIENCE = (1, 2, 4)
OVER_TIME = {LOCKSTEP: "any", TOGETHER: "fresh", CARRIED: "steady"}


@dataclass(frozen=True)
class Rehearsal:
    """What one setting would have published of a series of increments.

    patience: None where the mode has none. arrived: records that came. published: of those, how
    many were shown. served: people of the last increment who were shown after it, as a share.
    gcp: mean loss of the last release that anything was shown in, a share of 1; None without one.
    """

    mode: str
    size: int
    patience: int | None
    arrived: int
    published: int
    served: float
    gcp: float | None

    @property
    def share(self) -> float:
        """Published records of those that arrived."""
        return self.published / self.arrived if self.arrived else 0.0

    def report(self) -> dict[str, Any]:
        """As JSON states it."""
        return {**vars(self), "share": self.share, "over_time": OVER_TIME[self.mode]}


def rehearse(
    frames: Sequence[Frame], policy: PolicyLike, *, progress: Progress = no_progress
) -> list[Rehearsal]:
    """What `sticky` would have published of these increments, by mode, size and patience.

    frames: the increments in their order. The modes are rehearsed whatever the policy says of
    values over time; plain columns are left out. Raises InputError.
    """
    policy = Policy.of(policy)
    return rehearsals([increment_of(frame, policy) for frame in frames], policy, progress)


def rehearsals(
    sources: Sequence[SourceFile], policy: Policy, progress: Progress
) -> list[Rehearsal]:
    """What `sticky` would have published of increments that were read already."""
    if policy.subject is None:
        raise InputError("rehearsal: needs a subject, by which people are recognized")
    policy = with_defaults(policy).with_method(METHOD)
    for source in sources:
        check_increment(source, policy)
    key = secrets.token_bytes(32)  # people are as good by any name
    frames = [tokens_of(in_order_of_names(source.frame, policy), policy, key) for source in sources]
    arrived = sum(frame.height for frame in frames)
    found = []
    for mode, method, asked in _settings(policy):
        progress(f"rehearsing {mode}, size {method.size}")
        run = Run(asked, method, mode)
        for frame in frames:
            run.step(frame)
        patience = method.patience if mode == LOCKSTEP else None
        outcome = run.published, run.served, run.gcp
        found.append(Rehearsal(mode, method.size, patience, arrived, *outcome))
    return found


def _settings(policy: Policy) -> Iterator[tuple[str, Sticky, Policy]]:
    """Every mode, with sizes from k to twice k."""
    method: Sticky = policy.build_method("republish")
    k = max(policy.required_k or 2, 2)
    for mode in OVER_TIME:
        asked = _policy_of_mode(policy, mode)
        usual = method.size_for(mode, k)
        for size in sorted({k, -(-3 * k // 2), 2 * k, usual}):
            patiences = {*PATIENCE, method.patience} if mode == LOCKSTEP else {method.patience}
            for patience in sorted(patiences):
                yield mode, replace(method, size=size, patience=patience), asked


def _policy_of_mode(policy: Policy, mode: str) -> Policy:
    """The policy as if values behaved so over time; raises InputError where it is unfit."""
    content = policy.model.model_dump(exclude_unset=True)
    sensitive = sensitive_names(policy)
    for name, attribute in content["attributes"].items():
        if name in sensitive:
            attribute["over_time"] = OVER_TIME[mode]
        elif attribute["role"] == "plain" and mode != LOCKSTEP:
            attribute["role"] = "drop"
    if content.get("other") == "plain":
        content["other"] = "drop"
    asked = Policy.from_dict(content, policy.base)
    check_policy(asked, asked.build_method("republish"))
    return asked


class Run:
    """What a ledger would hold after some increments, and what was published until then."""

    def __init__(self, policy: Policy, method: Sticky, mode: str) -> None:
        self._terms = Terms(policy, method, Ledger(Path()))  # which is never asked
        self.state = PanelState(Panel(mode))
        self._waiting = DeferredRecords()
        self._releases = self.published = 0
        self.served = 0.0
        self.gcp: float | None = None

    def step(self, frame: pl.DataFrame) -> None:
        """One increment, people as tokens."""
        terms = self._terms
        people = records_of(frame, self._waiting, self.state, terms.policy)
        self.served = 0.0
        arrivals = self._waiting.arrivals_with(frame.height)
        found, waiting = place_returning(people, self.state, arrivals, terms)
        if terms.is_priced:
            waiting = waiting.after(terms.method.deadline, arrivals)
        self._waiting = waiting
        assert waiting.panel is not None
        self.state = waiting.panel
        if found is not None:
            self._publish(frame, found)

    def _publish(self, frame: pl.DataFrame, found: ReturningPlan) -> None:
        placed, policy = found.placed, self._terms.policy
        is_shown = placed.labels >= 0
        shown = found.people.only(is_shown)
        own = shown.table.frame.filter(~shown.is_carried)
        self._releases += 1
        self.published += own.height
        here = frame[shown.subject].to_list()
        self.served = int(own[shown.subject].is_in(here).sum()) / frame.height
        loss = loss_of(found.bound.matrix(), Partition(placed.labels, placed.count))
        self.gcp = loss / (len(shown.person) * max(len(policy.quasi), 1))
        values = None
        if self.state.panel.mode == CARRIED:
            values = shown.table.frame.select(sensitive_names(policy))
        assert shown.subjects is not None
        people = shown.subjects, np.zeros(len(shown.person), dtype=np.int64)
        self.state = self.state.published(self._releases, *people, found.founded[is_shown], values)
