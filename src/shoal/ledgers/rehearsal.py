"""Rehearsal: what would have been published of people who came again, by mode, size and patience.

In memory and without an audit: no release leaves, so nothing is promised of it.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import polars as pl

from shoal.auditor.ledger import terms
from shoal.connectors.files import SourceFile
from shoal.connectors.frames import Frame
from shoal.connectors.ledger.panel import PanelState
from shoal.data.ledger_view import CARRIED, LOCKSTEP, TOGETHER, Panel, Placement
from shoal.data.partition import Partition
from shoal.data.progress import Progress, no_progress
from shoal.errors import InputError
from shoal.ledgers.increment import LAST_INCREMENTS, DeferredRecords, tokens_of, waits_for_a_price
from shoal.ledgers.methods.sticky import Sticky
from shoal.ledgers.planned_release import PlannedPanel
from shoal.ledgers.republish import (
    check_increment,
    increment_of,
    read_increment,
    with_defaults,
)
from shoal.ledgers.returning import Again, in_order_of_names, placed_again, records_of
from shoal.policy.policy import Policy, PolicyLike
from shoal.search.segments import loss_of

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
    return _rehearsed([increment_of(frame, policy) for frame in frames], policy, progress)


def rehearse_files(
    paths: Sequence[str], policy: Policy, *, progress: Progress = no_progress
) -> list[Rehearsal]:
    """As `rehearse`, with the increments in files."""
    return _rehearsed([read_increment(path, policy) for path in paths], policy, progress)


def as_json(rehearsals: Sequence[Rehearsal]) -> str:
    """All of it, for programs."""
    return json.dumps([rehearsal.report() for rehearsal in rehearsals], indent=2) + "\n"


def _rehearsed(
    sources: Sequence[SourceFile], policy: Policy, progress: Progress
) -> list[Rehearsal]:
    if policy.subject is None:
        raise InputError("rehearsal: needs a subject, by which people are recognized")
    policy = with_defaults(policy).with_method(METHOD)
    for source in sources:
        check_increment(source, policy)
    key = secrets.token_bytes(32)  # people are as good by any name
    frames = [tokens_of(in_order_of_names(source.frame, policy), policy, key) for source in sources]
    found = []
    for mode, method, asked in _settings(policy):
        progress(f"rehearsing {mode}, size {method.size}")
        found.append(_rehearsal(frames, mode, method, asked))
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
    sensitive = terms.sensitive_names(policy)
    for name, attribute in content["attributes"].items():
        if name in sensitive:
            attribute["over_time"] = OVER_TIME[mode]
        elif attribute["role"] == "plain" and mode != LOCKSTEP:
            attribute["role"] = "drop"
    if content.get("other") == "plain":
        content["other"] = "drop"
    asked = Policy.from_dict(content, policy.base)
    terms.check_policy(asked, asked.build_method("republish"))
    return asked


def _rehearsal(
    frames: Sequence[pl.DataFrame], mode: str, method: Sticky, policy: Policy
) -> Rehearsal:
    """One setting, from the first increment to the last."""
    run = Run(policy, method, PanelState(Panel(mode)))
    for frame in frames:
        run.step(frame)
    patience = method.patience if mode == LOCKSTEP else None
    arrived = sum(frame.height for frame in frames)
    return Rehearsal(mode, method.size, patience, arrived, run.published, run.served, run.gcp)


@dataclass
class Run:
    """What a ledger would hold after some increments, and what was published until then."""

    policy: Policy
    method: Sticky
    state: PanelState
    waiting: DeferredRecords = field(default_factory=DeferredRecords)
    releases: int = 0
    published: int = 0
    served: float = 0.0
    gcp: float | None = None

    def step(self, frame: pl.DataFrame) -> None:
        """One increment, people as tokens."""
        people = records_of(frame, self.waiting, self.state, self.policy)
        self.served = 0.0
        arrivals = (*self.waiting.arrivals, frame.height)[-LAST_INCREMENTS:]
        if not len(people.person):
            self.waiting = DeferredRecords(arrivals=arrivals)
            return
        again = placed_again(people, self.state, self.policy, self.method, arrivals)
        self.waiting = replace(again.deferred, arrivals=arrivals)
        if waits_for_a_price(self.method):
            self.waiting = self.waiting.after(self.method.deadline, arrivals)
        if again.placed is None or again.panel is None:
            return
        self.state = replace(self.state, panel=again.panel.change.after)
        if again.placed.count:
            self._publish(frame, again, again.placed, again.panel)

    def _publish(
        self, frame: pl.DataFrame, again: Again, placed: Placement, planned: PlannedPanel
    ) -> None:
        people, shown = again.people, placed.labels >= 0
        own = people.frame.filter(shown & ~people.is_carried)
        self.releases += 1
        self.published += own.height
        subject = self.policy.subject
        assert subject is not None
        self.served = int(own[subject].is_in(frame[subject].to_list()).sum()) / frame.height
        loss = loss_of(again.bound.matrix(), Partition(placed.labels, placed.count))
        self.gcp = loss / (int(shown.sum()) * max(len(self.policy.quasi), 1))
        tokens = people.tokens[shown]
        values = None
        if self.state.panel.mode == CARRIED:
            values = people.frame.filter(shown).select(terms.sensitive_names(self.policy))
        founded, numbers = planned.founded[shown], np.zeros(len(tokens), dtype=np.int64)
        self.state = self.state.published(self.releases, tokens, numbers, founded, values)
