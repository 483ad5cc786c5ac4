"""What if: each method's next release of a ledger, audited as if published, and thrown away; and
what `sticky` would have published of a series of increments.
"""

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
from shoal.auditor.ledger.terms import check_policy, mode_of
from shoal.auditor.verdict import what_fails
from shoal.connectors.files import SourceFile
from shoal.connectors.frames import Frame
from shoal.connectors.ledger import Ledger
from shoal.connectors.ledger.private import DeferredRecords, PanelState
from shoal.data.certificate import Certificate
from shoal.data.ledger_view import CARRIED, LOCKSTEP, TOGETHER, Panel
from shoal.data.notebook import Figures, figures_of
from shoal.data.numba_kernels import always
from shoal.data.partition import Partition
from shoal.data.progress import Progress, no_progress
from shoal.data.regular_files import path_text
from shoal.data.table import Table, texts_of
from shoal.errors import InputError, ShoalError
from shoal.ledgers import republish
from shoal.ledgers.increment import INSERT, Terms, tokens_of
from shoal.ledgers.methods.sticky import Sticky
from shoal.ledgers.next_release import plan, write_and_audit
from shoal.ledgers.returning import ReturningPlan, in_order_of_names, place_returning, records_of
from shoal.policy import registry
from shoal.policy.binding.columns import check_increment
from shoal.policy.model import PolicyModel
from shoal.policy.policy import Policy, PolicyLike
from shoal.search.segments import loss_of

WARM = 200
"""Records that the kernels are compiled with."""


@dataclass(frozen=True, repr=False)
class Prospect(Figures):
    """What one method would do with an increment.

    certificate: of its release, None where there would be none. told: why there would be none, or
    which promises it breaks and what breaks the history.
    """

    method: str
    certificate: Certificate | None
    findings: Sequence[HistoryFinding] = ()
    waiting: int = 0
    told: Sequence[str] = ()

    def _figures(self) -> dict[str, object]:
        return {**figures_of(self), "outcome": self.outcome}

    @property
    def outcome(self) -> str:
        """In a word: published, withheld, waits, or refused."""
        if self.certificate is None:
            return "waits" if self.waiting else "refused"
        is_safe = not any(finding.is_violation for finding in self.findings)
        return "published" if self.certificate.holds and is_safe else "withheld"

    def report(self) -> dict[str, Any]:
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
    frame: Frame, policy: PolicyLike, ledger: str | Path, *, progress: Progress = no_progress
) -> list[Prospect]:
    """What each method of re-publication would do with new records; nothing is published or begun.

    The policy's own method has the parameters that it has there. Raises InputError or LedgerError.
    """
    policy = Policy.of(policy)
    folder = Path(path_text(ledger, "ledger"))
    return prospects(republish.increment_of(frame, policy.tables), policy, folder, progress)


def prospects(
    source: SourceFile, policy: Policy, ledger_path: Path, progress: Progress
) -> list[Prospect]:
    """What each method of re-publication would do with records that were read already."""
    ledger = Ledger(ledger_path)
    source = republish.with_deletions_filled(source, policy)
    policy = republish.with_its_method(policy, ledger).with_shuffled_rows()
    check_increment(source.frame, policy.tables, ledger.exists)
    with tempfile.TemporaryDirectory(prefix="shoal-what-if-") as folder:
        if not ledger.exists:
            ledger = Ledger(Path(folder) / "ledger")  # nothing is begun by asking
        with ledger.locked():
            republish.check_ledger(ledger, policy.tables, looks_back=True)
            names = [m.name for m in registry.methods().values() if m.verb == "republish"]
            methods = [policy.with_method(name, {}) for name in names]
            turns = _some_twice(source.frame, policy.subject, policy.operation)
            for asked in methods:  # kernels are compiled before anything is timed
                with always(compiled=True), suppress(ShoalError):
                    for turn in turns:
                        place = Path(folder) / asked.method_name
                        republish.republish_file(turn, asked, place, allow_leaks=True)
            found = [Terms(asked, asked.build_method("republish"), ledger) for asked in methods]
            return [_prospect(terms, source, progress) for terms in found]


def _some_twice(
    frame: pl.DataFrame, subject: str | None, operation: str | None
) -> list[SourceFile]:
    """Some new records of an increment, and again as those of other people."""
    if operation is not None:
        frame = frame.filter(pl.col(operation).is_null() | (pl.col(operation) == INSERT))
    some = others = frame.head(WARM)
    if subject is not None:
        others = some.with_columns(pl.col(subject).cast(pl.String) + "again")
    return [SourceFile(Table(one), f"{turn}") for turn, one in enumerate((some, others))]


def _prospect(terms: Terms, source: SourceFile, progress: Progress) -> Prospect:
    name, ledger = terms.policy.method_name, terms.ledger
    try:
        republish.with_its_method(terms.policy, ledger)
        check_policy(terms.policy, terms.method)
        terms = terms.beside_the_table()
        planned, waiting = plan(texts_of(source.frame), terms, progress)
        if planned is None:
            return Prospect(name, None, waiting=waiting.records, told=waiting.reasons)
        with ledger.draft() as draft:
            audited = write_and_audit(
                planned, waiting.returning, terms, draft.published, source.sha256, progress
            )
    except ShoalError as refused:
        return Prospect(name, None, told=refused.said)
    by_itself = audited.certificate.extended(history=None)
    told = [*what_fails(by_itself), *map(str, audited.violations)]
    return Prospect(name, audited.certificate, audited.findings, waiting.records, told)


def as_json(found: "Sequence[Prospect | Rehearsal]") -> str:
    return json.dumps([one.report() for one in found], indent=2) + "\n"


# Rehearsal: what would have been published of people who came again, by mode, size and patience.
#
# In memory and without an audit: no release leaves, so nothing is promised of it.


METHOD = "sticky"
PATIENCE = (1, 2, 4)
OVER_TIME = {LOCKSTEP: "any", TOGETHER: "fresh", CARRIED: "steady"}


@dataclass(frozen=True, repr=False)
class Rehearsal(Figures):
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
        return {**vars(self), "share": self.share, "over_time": OVER_TIME[self.mode]}


def rehearse(
    frames: "Sequence[Frame] | Frame", policy: PolicyLike, *, progress: Progress = no_progress
) -> list[Rehearsal]:
    """What `sticky` would have published of these increments, by mode, size and patience.

    frames: the increments in their order, or one. Modes are rehearsed whatever the policy says of
    values over time; plain columns are left out. Raises InputError.
    """
    policy = Policy.of(policy)
    listed = frames if isinstance(frames, Sequence) else [frames]
    return rehearsals(
        [republish.increment_of(frame, policy.tables) for frame in listed], policy, progress
    )


def rehearsals(
    sources: Sequence[SourceFile], policy: Policy, progress: Progress
) -> list[Rehearsal]:
    """What `sticky` would have published of increments that were read already."""
    subject = policy.subject
    if subject is None:
        raise InputError("rehearsal: needs a subject, by which people are recognized")
    policy = policy.with_method(METHOD).with_shuffled_rows()
    for source in sources:
        check_increment(source.frame, policy.tables, is_kept=False)
    key = secrets.token_bytes(32)  # people are as good by any name
    named = [in_order_of_names(texts_of(source.frame), subject) for source in sources]
    frames = [(tokens_of(f, subject, policy.model.no_names, key), rows) for f, rows in named]
    arrived = sum(len(rows) for _, rows in frames)
    found = []
    for mode, terms in _settings(policy):
        method = terms.method
        progress(f"rehearsing {mode}, size {method.size}")
        run = Run(terms, mode)
        for frame, rows in frames:
            run.step(frame, rows)
        patience = method.patience if mode == LOCKSTEP else None
        outcome = run.published, run.served, run.gcp
        found.append(Rehearsal(mode, method.size, patience, arrived, *outcome))
    return found


def _settings(policy: Policy) -> Iterator[tuple[str, Terms]]:
    """Every mode, with sizes from k to twice k."""
    method: Sticky = policy.build_method("republish")
    k = max(policy.required_k or 2, 2)
    for mode in OVER_TIME:
        asked = Policy.from_dict(_content_for(policy.model, mode), policy.base)
        if mode_of(asked.model) != mode:  # no sensitive column asks for it
            continue
        check_policy(asked, asked.build_method("republish"))
        usual = method.size_for(mode, k)
        for size in sorted({k, -(-3 * k // 2), 2 * k, usual}):
            patiences = {*PATIENCE, method.patience} if mode == LOCKSTEP else {method.patience}
            for patience in sorted(patiences):
                own = replace(method, size=size, patience=patience)
                yield mode, Terms(asked, own, Ledger(Path()))  # which is never asked


def _content_for(model: PolicyModel, mode: str) -> dict[str, Any]:
    """A policy's content as if values behaved so over time."""
    content = model.model_dump(exclude_unset=True)
    for name, attribute in content["attributes"].items():
        if name in model.sensitive:
            attribute["over_time"] = OVER_TIME[mode]
        elif attribute["role"] == "plain" and mode != LOCKSTEP:
            attribute["role"] = "drop"
    if content.get("other") == "plain":
        content["other"] = "drop"
    return content


class Run:
    """What a ledger would hold after some increments, and what was published until then."""

    def __init__(self, terms: Terms, mode: str) -> None:
        self._terms = terms
        self.state = PanelState(Panel(mode))
        self._waiting = DeferredRecords()
        self._releases = self.published = 0
        self.served = 0.0
        self.gcp: float | None = None

    def step(self, frame: pl.DataFrame, rows: np.ndarray) -> None:
        """One increment, people as tokens, and the row of each record."""
        terms = self._terms
        people = records_of(frame, rows, self._waiting, self.state, terms.policy.model)
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
            values = shown.table.frame.select(policy.model.sensitive)
        assert shown.subjects is not None
        people = shown.subjects, np.zeros(len(shown.person), dtype=np.int64)
        self.state = self.state.published(self._releases, *people, found.founded[is_shown], values)
