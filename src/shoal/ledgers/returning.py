"""The next release of people who come again: who of an increment is whom, and what becomes of all.

A person has one record: that of the increment, else the one that waits. Where values are carried,
people who are absent get a record, too: their own sensitive values, and the quasi-identifiers of
somebody who is here and in their group, so that it widens no class.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl

from shoal.auditor.ledger import terms
from shoal.connectors.ledger import Ledger
from shoal.connectors.ledger.identities import as_text, count_known
from shoal.connectors.ledger.panel import PanelState, has_panel
from shoal.data.ledger_view import CARRIED, CLOSED, LIVE, RETIRED, LedgerView, Panel, Placement
from shoal.data.progress import Progress
from shoal.data.table import Table
from shoal.errors import InputError, PromiseError
from shoal.ledgers.increment import (
    CandidateRecords,
    DeferredRecords,
    as_numbers,
    last_arrivals,
    operations_of,
    with_tokens,
)
from shoal.ledgers.placing import bound_table, partition_table, place
from shoal.ledgers.planned_release import PlannedPanel, PlannedRelease
from shoal.ledgers.recoding import recoded
from shoal.policy.binding.table import BoundTable
from shoal.policy.policy import Policy
from shoal.privacy.promises import nearest_feasible

NO_GROUP = "no group can be published yet"
WITHHELD = "records left out, as their people can't be published again"
NOBODY = "nobody in it is in a group that is still published"


@dataclass(frozen=True)
class ReturningRecords:
    """One record for each person who has one, and those that are carried for the absent.

    person: (n,) int32 place in the panel, -1 for newcomers. is_carried: (n,) bool.
    superseded: how many waiting records others replaced. withheld: how many can't be published.
    waited: (n,) int32, how many increments the records of newcomers have waited through.
    """

    frame: pl.DataFrame
    tokens: np.ndarray
    person: np.ndarray
    is_carried: np.ndarray
    superseded: int
    withheld: int
    waited: np.ndarray


@dataclass(frozen=True)
class Again:
    """What becomes of the records of one increment.

    placed: None where promises fail with everybody in one class; `obstacles` are why.
    waiting: (n,) bool, records that wait. panel: of the people afterwards.
    """

    people: ReturningRecords
    bound: BoundTable
    waiting: np.ndarray
    placed: Placement | None = None
    panel: PlannedPanel | None = None
    obstacles: tuple[str, ...] = ()
    seconds: float = 0.0

    @property
    def deferred(self) -> DeferredRecords:
        """Those that wait."""
        people, waiting = self.people, self.waiting
        return DeferredRecords(people.frame.filter(waiting), waited=people.waited[waiting])


def plan_again(
    frame: pl.DataFrame, policy: Policy, method: Any, ledger: Ledger, progress: Progress
) -> PlannedRelease | DeferredRecords:
    """The next release; only the deferred records where there is none.

    Raises InputError, PromiseError or InfeasibleError.
    """
    progress("checking the data against the policy")
    state = _state(policy, method, ledger)
    arriving = with_tokens(in_order_of_names(frame, policy), policy, ledger)
    operations_of(arriving, policy, method)  # nothing but new records
    deferred = DeferredRecords.of(ledger) if ledger.exists else DeferredRecords()
    people = records_of(arriving, deferred, state, policy)
    _refuse_strangers(people.tokens[people.person < 0], method, ledger)
    if not len(people.person):
        return DeferredRecords(None, (NOBODY,), panel=state)
    progress(f"finding classes by {policy.method_name}")
    again = placed_again(people, state, policy, method, last_arrivals(ledger, frame.height))
    waits = again.deferred
    if again.placed is None or again.panel is None:
        return replace(waits, reasons=again.obstacles, panel=state)
    waits = replace(waits, reasons=_reasons(again.panel.stated))
    if not again.placed.count:
        return replace(waits, panel=replace(state, panel=again.panel.change.after))
    progress("recoding")
    release = _released(again, again.placed, again.panel, policy)
    return replace(release, waiting=waits, seconds=again.seconds)


def placed_again(
    people: ReturningRecords,
    state: PanelState,
    policy: Policy,
    method: Any,
    arrivals: tuple[int, ...],
) -> Again:
    """Which of these records are published, in which classes; raises InputError for bad ones.

    arrivals: records of the last increments.
    """
    bound = bound_table(Table(people.frame), policy)
    obstacles = nearest_feasible(policy.build_promises(), bound.whole_table)
    if obstacles:
        reasons = tuple(obstacle.partition("; ")[0] for obstacle in obstacles)
        return Again(people, bound, ~people.is_carried, obstacles=reasons)
    began = time.process_time()
    view = LedgerView(
        panel=state.panel,
        person=people.person,
        is_carried=people.is_carried,
        waited=people.waited,
        arrivals=sum(arrivals) / len(arrivals),
        partition=partition_table,
    )
    placed = place(bound.matrix(), view, bound.whole_table, policy, method)
    seconds = time.process_time() - began
    waiting, panel = _outcome(people, placed, state)
    return Again(people, bound, waiting, placed, panel, seconds=seconds)


def refuse_panel(method: Any, ledger: Ledger) -> None:
    """Raises InputError where a ledger of people who come again would lose their groups."""
    if ledger.exists and has_panel(ledger.step_folder(ledger.last_step().number)):
        raise InputError(
            f"method '{method.name}': publishes each person once, and the ledger's people come"
            " again; go on with its method, or begin another ledger"
        )


def _state(policy: Policy, method: Any, ledger: Ledger) -> PanelState:
    """What the ledger knows of people; InputError where it never knew whose group is whose."""
    mode = terms.mode_of(policy)
    step = ledger.step_folder(ledger.last_step().number)
    state = PanelState.read(step, mode) if ledger.exists else None
    if state is not None:
        return state
    if ledger.exists and ledger.releases():
        raise InputError(
            f"method '{method.name}': the ledger's earlier releases are of a method that publishes"
            " each person once, and keeps no groups; begin another ledger"
        )
    return PanelState(Panel(mode))


# Who is whom


def in_order_of_names(frame: pl.DataFrame, policy: Policy) -> pl.DataFrame:
    """The records as text, by the names of their people.

    Names break ties between people who are alike: tokens would, otherwise in each ledger, and
    values must not.
    """
    assert policy.subject is not None  # checked with the policy
    return as_text(frame).sort(policy.subject, maintain_order=True, nulls_last=True)


def records_of(
    arriving: pl.DataFrame, deferred: DeferredRecords, state: PanelState, policy: Policy
) -> ReturningRecords:
    """The records that can be published or wait, one a person. arriving: people as tokens.

    Raises InputError where people have no name, or several records.
    """
    subject = policy.subject
    assert subject is not None
    _check_one_record(arriving, subject)
    superseded, waiting = 0, deferred.frame
    waited = np.zeros(arriving.height, dtype=np.int32)
    if waiting is not None:
        stays = ~waiting[subject].is_in(arriving[subject].to_list())
        superseded = int((~stays).sum())
        # a newer record is as old as the one that it replaces: it is people who wait
        since = dict(zip(waiting[subject].to_list(), deferred.increments_waited, strict=True))
        arriving = pl.concat([waiting.filter(stays).select(arriving.columns), arriving])
        waited = np.array([since.get(p, 0) for p in arriving[subject].to_list()], dtype=np.int32)
    everybody = arriving.height
    tokens = as_numbers(arriving[subject])
    person = state.places(tokens)
    may_show = _may_show(arriving, person, state, policy)
    waited = np.where(person < 0, waited, 0).astype(np.int32)[may_show]
    arriving, person, tokens = arriving.filter(may_show), person[may_show], tokens[may_show]
    withheld = everybody - arriving.height
    is_carried = np.zeros(len(person), dtype=bool)
    if state.panel.mode == CARRIED:
        rows, absent = _for_the_absent(arriving, person, state, subject)
        arriving = pl.concat([arriving, rows])
        person = np.concatenate([person, absent])
        tokens = np.concatenate([tokens, state.tokens[absent]])
        is_carried = np.arange(len(person)) >= len(is_carried)
        waited = np.concatenate([waited, np.zeros(len(absent), dtype=np.int32)])
    order = _by_quasi(arriving, policy)
    return ReturningRecords(
        arriving[order],
        tokens[order],
        person[order],
        is_carried[order],
        superseded,
        withheld,
        waited[order],
    )


def _check_one_record(arriving: pl.DataFrame, subject: str) -> None:
    nobody = arriving[subject].null_count()
    several = arriving.height - nobody - arriving[subject].drop_nulls().n_unique()
    findings = []
    if nobody:
        findings.append(
            f"increment: records without a '{subject}': {nobody}; their people could not be"
            " recognized in a later release"
        )
    if several:
        findings.append(
            f"increment: further records of people who have one already: {several}; people who come"
            " again have one record a release, so sum theirs up"
        )
    if findings:
        raise InputError.from_findings(findings)


def _refuse_strangers(tokens: np.ndarray, method: Any, ledger: Ledger) -> None:
    """Raises PromiseError where people were published of whom no group is known."""
    known = count_known(ledger, tokens) if ledger.exists else 0
    if known:
        raise PromiseError(
            f"history: people of the increment who were published without a group: {known};"
            f" '{method.name}' can't publish them again; leave their records out"
        )


def _may_show(
    arriving: pl.DataFrame, person: np.ndarray, state: PanelState, policy: Policy
) -> np.ndarray:
    """(n,) bool: records of newcomers and live people; where values are carried, the same ones."""
    may_show = person < 0
    known = np.flatnonzero(~may_show)
    may_show[known] = state.panel.status[person[known]] == LIVE
    if state.values is not None and len(known):
        names = terms.sensitive_names(policy)
        now = arriving[known].select(pl.col(names).fill_null(""))
        before = state.values[person[known]].select(pl.col(names).fill_null(""))
        for name in names:
            may_show[known] &= (now[name] == before[name]).to_numpy()
    return may_show


def _for_the_absent(
    arriving: pl.DataFrame, person: np.ndarray, state: PanelState, subject: str
) -> tuple[pl.DataFrame, np.ndarray]:
    """A record for everybody who is absent from a group of which somebody is here."""
    panel = state.panel
    if state.values is None or not panel.groups:
        return arriving.clear(), np.zeros(0, dtype=np.int32)
    somebody = np.full(panel.groups, -1, dtype=np.int64)
    here = np.flatnonzero(person >= 0)
    somebody[panel.group[person[here]]] = here
    is_absent = panel.is_live & (somebody[panel.group] >= 0)
    is_absent[person[here]] = False
    absent = np.flatnonzero(is_absent).astype(np.int32)
    tokens = [f"{token:016x}" for token in state.tokens[absent].tolist()]
    rows = arriving[somebody[panel.group[absent]]].with_columns(
        pl.Series(subject, tokens, dtype=pl.String),
        *state.values[absent].get_columns(),
    )
    return rows, absent


def _by_quasi(table: pl.DataFrame, policy: Policy) -> np.ndarray:
    """The order in which the method sees the records: by quasi-identifiers alone.

    An order by values would make groups depend on them where people are alike.
    """
    columns = [name for name in table.columns if name in policy.quasi]
    return table.select(pl.arg_sort_by(columns, maintain_order=True)).to_series().to_numpy()


# What becomes of them


def _outcome(
    people: ReturningRecords, placed: Placement, state: PanelState
) -> tuple[np.ndarray, PlannedPanel]:
    """Which records wait, (n,) bool; and the panel after the release."""
    assert placed.panel is not None
    after, is_shown = placed.panel.after, placed.labels >= 0
    is_known = people.person >= 0
    goes_on = ~is_known
    goes_on[is_known] = after.status[people.person[is_known]] == LIVE
    waiting = ~is_shown & ~people.is_carried & goes_on
    groups = after.group[people.person[is_known & is_shown]]
    counts = np.bincount(after.status, minlength=3)
    stated: dict[str, Any] = {
        "mode": after.mode,
        "people": state.panel.people + int((placed.panel.founded >= 0).sum()),
        "rounds": len(np.unique(groups)),
        "founded": len(np.unique(placed.panel.founded[placed.panel.founded >= 0])),
        "waiting": int(waiting.sum()),
        "superseded": people.superseded,
        "withheld": people.withheld + int((~is_shown & ~people.is_carried & ~goes_on).sum()),
        "retired": int(counts[RETIRED]),
        "closed": int(counts[CLOSED]),
        "carried": int((is_shown & people.is_carried).sum()),
    }
    return waiting, PlannedPanel(state, placed.panel, placed.panel.founded, None, stated)


def _reasons(stated: Mapping[str, Any]) -> tuple[str, ...]:
    """Why records are not published now, or never will be."""
    waits = (NO_GROUP,) if stated["waiting"] else ()
    gone = f"{WITHHELD}: {stated['withheld']}"
    return (*waits, gone) if stated["withheld"] else waits


def _released(
    again: Again, placed: Placement, planned: PlannedPanel, policy: Policy
) -> PlannedRelease:
    """The rows of everybody who is shown, in the order that the policy asks for."""
    people, state = again.people, planned.before
    kept = placed.labels >= 0
    person = people.person[kept]
    records = np.full(len(person), -1, dtype=np.int64)
    records[person >= 0] = state.records[person[person >= 0]]
    shown = CandidateRecords(
        Table(people.frame.filter(kept)),
        records,
        people.tokens[kept],
        np.zeros(len(person), dtype=bool),
    )
    bound = again.bound if kept.all() else bound_table(shown.table, policy)
    release = recoded(shown, bound, placed, None, policy)
    row_of = np.argsort(people.tokens[kept], kind="stable")
    tokens = release.identities.subjects
    assert tokens is not None  # they were given
    rows = row_of[np.searchsorted(people.tokens[kept], tokens, sorter=row_of)]
    names = terms.sensitive_names(policy)
    values = release.originals.select(names) if state.panel.mode == CARRIED else None
    panel = replace(planned, founded=planned.founded[kept][rows], values=values)
    return replace(release, panel=panel)
