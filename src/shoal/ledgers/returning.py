"""The next release of people who come again: who of an increment is whom, and what becomes of all.

A person has one record: that of the increment, else the one that waits. Where values are carried,
people who are absent get a record, too: their own sensitive values, and the quasi-identifiers of
somebody who is here and in their group, so that it widens no class.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl

from shoal.auditor.ledger.terms import mode_of
from shoal.connectors.ledger import private
from shoal.connectors.ledger.private import DeferredRecords, KnownPeople, PanelState
from shoal.data import ledger_view
from shoal.data.findings import counted_records
from shoal.data.progress import Progress, no_progress
from shoal.data.table import Table
from shoal.errors import ANOTHER_LEDGER, InputError, PromiseError
from shoal.ledgers import increment
from shoal.ledgers.increment import CandidateRecords, Terms
from shoal.ledgers.planned_release import PlannedRelease, partition_table, place, recoded
from shoal.policy.binding.table import BoundTable
from shoal.policy.model import PolicyModel
from shoal.privacy.promises import infeasible_promises

NO_GROUP = "no group can be published yet"
WITHHELD = "records left out, as their people can't be published again"
NOBODY = "nobody in it is in a group that is still published"


@dataclass(frozen=True, kw_only=True)
class ReturningRecords(CandidateRecords):
    """One record for each person who has one, and those that are carried for the absent.

    person: (n,) int32 place in the panel, -1 for newcomers, whose records alone may have waited.
    is_carried: (n,) bool. superseded: how many waiting records others replaced. withheld: how many
    can't be published.
    """

    subject: str
    person: np.ndarray
    is_carried: np.ndarray
    superseded: int
    withheld: int

    def wait(
        self, is_waiting: np.ndarray, reasons: tuple[str, ...], state: PanelState
    ) -> DeferredRecords:
        """Some of the records wait. state: with the groups as they are then."""
        waiting = self.only(is_waiting)
        return DeferredRecords(waiting.table.frame, reasons, panel=state, waited=waiting.waited)


@dataclass(frozen=True)
class ReturningPlan:
    """Who of an increment is shown, and in which classes.

    founded: (n,) the new group of the person of each record, -1 for people who have one, or wait.
    state: with the groups as they are afterwards, without the new people. stated: what the
    certificate says of them.
    """

    people: ReturningRecords
    bound: BoundTable
    placed: ledger_view.Placement
    founded: np.ndarray
    state: PanelState
    stated: Mapping[str, Any]
    seconds: float


def plan_returning(
    frame: pl.DataFrame, deferred: DeferredRecords, terms: Terms, progress: Progress
) -> tuple[PlannedRelease | None, DeferredRecords]:
    """The next release, None where there is none; and the records that wait.

    Raises InputError, PromiseError or InfeasibleError.
    """
    state = _state(terms)
    subject = terms.policy.subject
    assert subject is not None  # checked with the policy
    increment.operations_of(frame, terms)  # nothing but new records
    arriving, rows = in_order_of_names(frame, subject)
    arriving = increment.with_tokens(arriving, terms)
    people = records_of(arriving, rows, deferred, state, terms.policy.model)
    _refuse_strangers(people, terms)
    arrivals = deferred.arrivals_with(frame.height)
    found, waiting = place_returning(people, state, arrivals, terms, progress)
    if found is None:
        return None, waiting
    progress("recoding")
    return _released(found, waiting, terms)


def place_returning(
    people: ReturningRecords,
    state: PanelState,
    arrivals: tuple[int, ...],
    terms: Terms,
    progress: Progress = no_progress,
) -> tuple[ReturningPlan | None, DeferredRecords]:
    """Which of these records are published, None where none are; and those that wait.

    arrivals: records of the last increments. Raises InputError for bad records.
    """
    if not len(people.person):
        return None, DeferredRecords(None, (NOBODY,), panel=state)
    progress(f"finding classes by {terms.policy.method_name}")
    bound = terms.bound(people.table)
    obstacles = infeasible_promises(terms.policy.build_promises(), bound.whole_table)
    if obstacles:
        return None, people.wait(~people.is_carried, increment.without_ways_out(obstacles), state)
    view = ledger_view.LedgerView(
        panel=state.panel,
        person=people.person,
        is_carried=people.is_carried,
        waited=people.waited,
        arrivals=sum(arrivals) / len(arrivals),
        partition=partition_table,
    )
    placed, seconds = place(bound.matrix(), view, bound.whole_table, terms)
    assert placed.panel is not None
    is_waiting, stated = _outcome(people, placed.labels >= 0, placed.panel, state)
    after = replace(state, panel=placed.panel.after)
    reasons = (NO_GROUP,) if stated["waiting"] else ()
    if stated["withheld"]:  # and never will be published
        reasons = (*reasons, f"{WITHHELD}: {stated['withheld']}")
    waiting = people.wait(is_waiting, reasons, after)
    if not placed.count:
        return None, waiting
    founded = placed.panel.founded
    return ReturningPlan(people, bound, placed, founded, after, stated, seconds), waiting


def refuse_panel(terms: Terms) -> None:
    """Raises InputError where a ledger of people who come again would lose their groups."""
    if (terms.ledger.last_folder / private.MEMBERS).exists():
        raise InputError(
            f"method '{terms.method.name}': publishes each person once, and the ledger's people"
            f" come again; go on with its method, or {ANOTHER_LEDGER}"
        )


def _state(terms: Terms) -> PanelState:
    """What the ledger knows of people; InputError where it never knew whose group is whose."""
    mode = mode_of(terms.policy.model)
    state = PanelState.read(terms.ledger.last_folder, mode)
    if state is None and terms.ledger.releases():
        raise InputError(
            f"method '{terms.method.name}': the ledger's earlier releases are of a method that"
            f" publishes each person once, and keeps no groups; {ANOTHER_LEDGER}"
        )
    return state or PanelState(ledger_view.Panel(mode))


# Who is whom


def in_order_of_names(frame: pl.DataFrame, subject: str) -> tuple[pl.DataFrame, np.ndarray]:
    """The records, which are text, by the names of their people, and the row of each.

    Names break ties between people who are alike: tokens would, otherwise in each ledger, and
    values must not.
    """
    order = pl.arg_sort_by(subject, maintain_order=True, nulls_last=True)
    rows = frame.select(order.cast(pl.Int32)).to_series().to_numpy()
    return frame[rows], rows


def records_of(
    arriving: pl.DataFrame,
    rows: np.ndarray,
    deferred: DeferredRecords,
    state: PanelState,
    model: PolicyModel,
) -> ReturningRecords:
    """The records that can be published or wait, one a person. arriving: people as tokens. rows:
    (n,) int32, where each stands in the increment.

    Raises InputError where people have no name, or several records.
    """
    subject = model.person or model.subject_columns[0]
    _check_one_record(arriving[subject], rows)
    waiting = deferred.frame_like(arriving)
    stays = ~waiting[subject].is_in(arriving[subject].to_list())
    # a newer record is as old as the one that it replaces: it is people who wait
    since = dict(zip(waiting[subject].to_list(), deferred.increments_waited.tolist(), strict=True))
    everybody = pl.concat([waiting.filter(stays), arriving])
    places = np.full(everybody.height, -1, dtype=np.int32)
    places[everybody.height - len(rows) :] = rows
    person = state.places(private.as_numbers(everybody[subject]))
    may_show = _may_show(everybody, person, state, model.sensitive)
    here, person = everybody.filter(may_show), person[may_show]
    carried, absent = _for_the_absent(here, person, state, subject)
    shown, person = pl.concat([here, carried]), np.concatenate([person, absent])
    waited = np.array([since.get(p, 0) for p in shown[subject].to_list()], dtype=np.int32)
    people = ReturningRecords(
        table=Table(shown),
        records=np.append(state.records, -1)[person],
        rows=np.append(places[may_show], np.full(carried.height, -1, dtype=np.int32)),
        subject=subject,
        changed=np.zeros(len(person), dtype=bool),
        waited=np.where(person < 0, waited, np.int32(0)),
        person=person,
        is_carried=np.arange(len(person)) >= here.height,
        superseded=int((~stays).sum()),
        withheld=everybody.height - here.height,
    )
    # by quasi-identifiers alone: an order by values would make groups depend on them where people
    # are alike
    return people.ordered_by([name for name in arriving.columns if name in model.quasi])


def _check_one_record(people: pl.Series, rows: np.ndarray) -> None:
    nobody = rows[people.is_null().to_numpy()]
    several = rows[(people.is_not_null() & ~people.is_first_distinct()).to_numpy()]
    findings = []
    if len(nobody):
        what = f"increment: records without a '{people.name}'"
        why = "their people could not be recognized in a later release"
        findings.append(counted_records(what, nobody, why))
    if len(several):
        what = "increment: further records of people who have one already"
        remedy = "people who come again have one record a release, so sum theirs up"
        findings.append(counted_records(what, several, remedy))
    InputError.raise_for(findings)


def _refuse_strangers(people: ReturningRecords, terms: Terms) -> None:
    """Raises PromiseError where people were published of whom no group is known."""
    newcomers = people.only(people.person < 0)
    known = KnownPeople(terms.ledger).holds(
        private.as_numbers(newcomers.table.frame[people.subject])
    )
    if known.any():
        what = "history: people of the increment who were published without a group"
        remedy = f"'{terms.method.name}' can't publish them again; leave their records out"
        raise PromiseError(counted_records(what, newcomers.rows[known], remedy))


def _may_show(
    arriving: pl.DataFrame, person: np.ndarray, state: PanelState, names: list[str]
) -> np.ndarray:
    """(n,) bool: newcomers and live people; where `names` are carried, with the same values."""
    may_show = person < 0
    known = np.flatnonzero(~may_show)
    may_show[known] = state.panel.status[person[known]] == ledger_view.LIVE
    if state.values is not None and len(known):
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
        pl.Series(subject, tokens, dtype=pl.String), *state.values[absent].get_columns()
    )
    return rows, absent


# What becomes of them


def _outcome(
    people: ReturningRecords,
    is_shown: np.ndarray,
    change: ledger_view.PanelChange,
    state: PanelState,
) -> tuple[np.ndarray, dict[str, Any]]:
    """Which records wait, (n,) bool; and what the certificate says of the panel afterwards."""
    after, founded = change.after, change.founded[change.founded >= 0]
    is_known = people.person >= 0
    goes_on = ~is_known
    goes_on[is_known] = after.status[people.person[is_known]] == ledger_view.LIVE
    waiting = ~is_shown & ~people.is_carried & goes_on
    groups = after.group[people.person[is_known & is_shown]]
    counts = np.bincount(after.status, minlength=3)
    return waiting, {
        "mode": after.mode,
        "people": state.panel.people + len(founded),
        "rounds": len(np.unique(groups)),
        "founded": len(np.unique(founded)),
        "waiting": int(waiting.sum()),
        "superseded": people.superseded,
        "withheld": people.withheld + int((~is_shown & ~people.is_carried & ~goes_on).sum()),
        "retired": int(counts[ledger_view.RETIRED]),
        "closed": int(counts[ledger_view.CLOSED]),
        "carried": int((is_shown & people.is_carried).sum()),
    }


def _released(
    found: ReturningPlan, waiting: DeferredRecords, terms: Terms
) -> tuple[PlannedRelease, DeferredRecords]:
    """The rows of all who are shown, in the policy's order; and who waits, with the groups then."""
    kept = found.placed.labels >= 0
    planned = recoded(found.people, found.bound, kept, found.placed, terms)
    names, is_carried = terms.policy.model.sensitive, found.state.panel.mode == ledger_view.CARRIED
    values = planned.originals.select(names) if is_carried else None
    founded = found.founded[kept][planned.truth.rows]
    tokens, records = planned.identities.subjects, planned.identities.records
    assert tokens is not None  # checked with the policy
    release = terms.ledger.last_step().releases + 1
    panel = found.state.published(release, tokens, records, founded, values)
    planned = replace(planned, seconds=found.seconds, panel=found.stated)
    return planned, replace(waiting, panel=panel)
