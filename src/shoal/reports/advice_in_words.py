"""Advice in words: profiles, risk, proposals, costs of columns, attackers' views, estimates."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import chain
from typing import TYPE_CHECKING, Any

from shoal.advise.risk import percent, share_text
from shoal.data.findings import some_named
from shoal.data.language import printable
from shoal.data.room import size_text
from shoal.data.warnings import unpublished
from shoal.policy.consistency import quoted
from shoal.reports.linked import exposure_text
from shoal.reports.pages import known_text
from shoal.reports.text import counted_text, table_lines

if TYPE_CHECKING:
    from shoal.advise.estimate import Estimate
    from shoal.advise.marginal import Marginal
    from shoal.advise.matching import HierarchyMatch
    from shoal.advise.profile import Candidate, Profile, TakenForPeople
    from shoal.advise.propose import Order, Proposal, ProposedColumn
    from shoal.advise.risk import Risk
    from shoal.advise.special_uniques import SpecialUniques
    from shoal.advise.views import AttackerView, KnownRows, Learnt, PossibleValue
    from shoal.streams.stream_status import StreamStatus

MOST_VALUES = 5


def marginal_lines(found: Marginal) -> Iterator[str]:
    """What each column loses, and the others with and without it."""
    k = "" if found.k is None else f", k = {found.k}"
    yield f"{found.method}{k}: {percent(found.loss)} of the detail lost"
    rows: list[tuple[str, ...]] = [("column", "lost", "exact", "others now", "others without it")]
    for price in found.columns:
        without = "-" if price.why_not is not None else percent(price.others_without)
        shares = (price.loss, price.exact, price.others)
        rows.append((price.name, *(percent(share) for share in shares), without))
    yield from table_lines(rows, left=1)
    for price in found.columns:
        if price.why_not is not None:
            yield f"without {price.name}: {price.why_not}"
    if found.smaller_k is not None:
        yield f"k = {found.smaller_k.k}: {percent(found.smaller_k.loss)} lost"


def level_lines(found: Mapping[str, Any]) -> list[str]:
    """Levels of a global recoding and their neighbours: whether each is safe, what it loses."""
    node = found["node"]
    here = ", ".join(f"{name} {level}" for name, level in node["levels"].items())
    rows: list[tuple[str, ...]] = [("levels", "safe", "would break a promise", "lost")]
    rows.append((here, *_level(node)))
    for one in found["neighbours"]:
        step = "coarser" if one["step"] > 0 else "finer"
        rows.append((f"{one['attribute']} a step {step}", *_level(one)))
    return list(table_lines(rows, left=2))


def _level(measured: Mapping[str, Any]) -> tuple[str, str, str]:
    is_safe = "yes" if measured["is_safe"] else "no"
    return is_safe, f"{measured['breaking']:,} records", percent(measured["loss"])


def attacker_lines(view: AttackerView) -> Iterator[str]:
    """What the attacker knows, whom they find, and what those could have."""
    yield f"row {view.row:,}"
    yield f"known: {_cells(view.known)}"
    yield from chain.from_iterable(map(_known_lines, view.tables))
    if view.shown is not None:
        yield f"published: {_cells(view.shown)}"
    if not view.people:
        yield "nobody is found by it: the row is withheld, or no class fits"
        return
    yield f"who looks the same: {view.people:,} {view.unit}"
    if view.fitting_classes > 1:
        yield (
            f"{view.fitting_classes:,} classes fit what is known, with {view.fitting_people:,}"
            f" {view.unit} in all"
        )
    for learnt in view.learnt:
        yield ""
        yield from _learnt_lines(learnt, view.people)


def _known_lines(known: KnownRows) -> Iterator[str]:
    """What is known of a person's rows in one table, row by row."""
    rows = counted_text(known.rows, "row")
    yield f"{known.table}: {rows}; known: {known_text(known.known)}"
    for cells in known.cells:
        yield f"  {_cells(dict(zip(known.columns, cells, strict=True)))}"


def _learnt_lines(learnt: Learnt, people: int) -> Iterator[str]:
    if not learnt.values:
        yield f"{learnt.attribute}: no published value is known to be of anybody who looks the same"
        return
    rows = [(learnt.attribute, "who look the same", "in the release")]
    rows += [
        (one.value, f"{one.people:,} of {people:,}", percent(one.base))
        for one in learnt.values[:MOST_VALUES]
    ]
    yield from table_lines(rows, left=1)
    others = learnt.values[MOST_VALUES:]
    if others:
        count = counted_text(len(others), "other")
        yield f"and {count}, {others[0].people:,} of {people:,} at most"
    best = learnt.best
    if best is not None:
        yield (
            f"best guess: {best.value}, right with {percent(best.share)}; in the whole release"
            f" {percent(best.base)}; {_truth(learnt, best)}"
        )


def _truth(learnt: Learnt, best: PossibleValue) -> str:
    """The truth beside the best guess, and whether it is published of those who look the same."""
    if not learnt.true_values:
        return "the truth is that they have no such row"
    said = "the truth" if best.value == learnt.truth else f"the truth is {learnt.truth}"
    if learnt.is_possible:
        return said
    which = "which is not" if learnt.true_values == 1 else "not all of which are"
    return f"{said}, {which} published of those who look the same"


def _cells(cells: Mapping[str, str]) -> str:
    return ", ".join(f"{name} {cell!r}" for name, cell in cells.items())


# What a publish would cost, for people to read.


def estimate_lines(found: Estimate) -> list[str]:
    """CPU and wall seconds, memory, disk, and where the model stops."""
    what, method = "records", "the rounded partition, not refined"
    if found.is_linked:
        what, method = "people with rows in several tables", "bundles"
    lines = [
        f"{found.records:,} {what}, {found.quasi} quasi-identifiers, k = {found.k}, by {method}",
        f"CPU {duration(found.cpu_seconds)}: "
        + ", ".join(f"{name} {duration(seconds)}" for name, seconds in found.seconds.items()),
        "wall, on idle cores: "
        + ", ".join(
            f"{duration(seconds)} on {cores}" for cores, seconds in sorted(found.wall.items())
        ),
        f"memory {_memory(found)}",
        *_past_memory(found),
        f"disk {size_text(found.bytes_in)} read, {size_text(found.bytes_out)} written;"
        f" {size_text(found.temporary)} of them as a temporary file beside the output",
    ]
    return [*lines, "where this stops:", *(f"  {stop}" for stop in found.stops)]


def _past_memory(found: Estimate) -> list[str]:
    if found.least_memory is None or found.nameless is None:
        return []
    return [
        f"past memory: --memory of {size_text(found.least_memory)} or more, and up to"
        f" {size_text(found.nameless)} of nameless files"
    ]


def _memory(found: Estimate) -> str:
    if found.memory is None:
        return "not measured: this system does not report it"
    needed = f"at most about {size_text(found.memory)}"
    if found.machine_memory is None:
        return needed
    verdict = "" if found.fits else ", which is too little"
    return f"{needed}; this machine has {size_text(found.machine_memory)}{verdict}"


def duration(seconds: float) -> str:
    """Seconds as people say them, in two figures or whole units."""
    if seconds < 10:
        return f"{seconds:.1f} s"
    if seconds < 120:
        return f"{seconds:.0f} s"
    if seconds < 7200:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"


# Hierarchy tables and the columns that they fit, in words.


def match_lines(found: Sequence[HierarchyMatch]) -> Iterator[str]:
    """A row for each table, then what is wrong with it and what somebody has to choose."""
    heads = ("file", "fits, by its values", "found in it", "rows covered", "steps")
    yield from table_lines([heads, *(_row(match) for match in found)], left=3)
    for match in found:
        yield from (f"{match.file}: {finding}" for finding in match.findings)
        others = [one.column for one in match.fits[1:] if one.rows == match.fits[0].rows]
        if others:
            yield f"{match.file}: {', '.join(others)} would fit as well; choose"
        if match.also_fits:
            also = ", ".join(match.also_fits)
            yield f"{match.file}: {also} covers as much of {match.column}; choose"


def _row(match: HierarchyMatch) -> tuple[str, ...]:
    own = match.coverage
    column, rows = ("no column", 0.0) if own is None else (own.column, own.rows)
    return match.file, column, _found(match), f"{100 * rows:.1f} %", str(match.steps)


def _found(match: HierarchyMatch) -> str:
    said = []
    if match.coverage is not None and match.coverage.missing:
        missing, rows = match.coverage.missing, match.coverage.missing_rows
        said.append(f"{counted_text(missing, 'value')} missing, {counted_text(rows, 'row')}")
    if not match.is_sound:
        said.append("faulty")
    return "; ".join(said) or "sound"


# A proposed policy in words: why each role, who is alone with what, and what is to be decided.


NO_SUBJECT = "no column numbers people{}: every record is taken to be its own person"
DOUBTED = (
    "no column is taken to number people, though {} may: every record is taken to be its own"
    " person; if one does, give it the role 'subject'"
)
UNSEEN = "nothing would show that somebody has several {}"


def question_lines(proposal: Proposal) -> Iterator[str]:
    """What somebody has to decide before anything is published."""
    yield from open_question_lines(proposal.questions)
    if proposal.subject is None and not proposal.asks_who:
        unseen = f", and {UNSEEN.format('records')}" if proposal.may_recur else ""
        named = some_named(proposal.doubted)
        yield DOUBTED.format(named) if named else NO_SUBJECT.format(unseen)


def open_question_lines(questions: Mapping[str, str]) -> Iterator[str]:
    """The open questions of a proposed policy, by column or table."""
    if questions:
        answer = (
            "answer it and delete its" if len(questions) == 1 else "answer them and delete each"
        )
        count = counted_text(len(questions), "open question")
        yield f"{count}; {answer} 'ask', or nothing is published:"
        yield from (f"  {_one_line(name)}: {_one_line(ask)}" for name, ask in questions.items())


def explanation_lines(proposal: Proposal) -> list[str]:
    """A table of all columns, then who is alone in few columns."""
    heads = ("column", "role", "alone", "adds", "why")
    rows = [heads, *(_proposed_row(column) for column in proposal.columns)]
    widths = [max(len(row[i]) for row in rows) for i in range(4)]
    lines = [
        f"{row[0]:<{widths[0]}}  {row[1]:<{widths[1]}}  {row[2]:>{widths[2]}}"
        f"  {row[3]:>{widths[3]}}  {row[4]}"
        for row in rows
    ]
    many = sum(column.role == "quasi" for column in proposal.columns)
    together = share_text(proposal.together)
    lines.append(f"all {many} quasi-identifiers: {together} of {proposal.unit} unique")
    order = proposal.order
    return [*lines, *([] if order is None else _order_lines(order, proposal.unit))]


def _proposed_row(column: ProposedColumn) -> tuple[str, ...]:
    shares = ["" if share is None else share_text(share) for share in (column.alone, column.adds)]
    role = column.role if column.ask is None else f"{column.role} (ask)"
    return _one_line(column.name), role, *shares, _one_line(column.reason)


def _one_line(text: str) -> str:
    return printable(" ".join(text.split()))


def _order_lines(order: Order, unit: str) -> Iterator[str]:
    if order.pairs:
        pairs = (
            f"{_one_line(a)} and {_one_line(b)} {share_text(share)}" for a, b, share in order.pairs
        )
        yield f"worst pairs: {', '.join(pairs)} of {unit} unique"
    if order.steps:
        steps = (f"{_one_line(name)} {share_text(share)}" for name, share in order.steps)
        yield f"{', + '.join(steps)} of {unit} unique"


# A table before anything is done to it, in words: what is in it, who is a person, who is alone.


USUAL_KS = (2, 3, 5, 10, 20, 50)


def profile_lines(profile: Profile) -> Iterator[str]:
    """Columns, then who may be one person and what follows if rows are taken for people."""
    columns = counted_text(len(profile.columns), "column")
    yield f"{counted_text(profile.rows, 'row')}, {columns}{_written(profile)}"
    rows = [("column", "kind", "values", "missing")]
    rows += [(c.name, c.kind, f"{c.values:,}", f"{c.missing:,}") for c in profile.columns]
    yield from table_lines(rows, left=2)
    if profile.missing_values:
        yield f"taken for no value: {quoted(profile.missing_values)}"
    yield from (f"{c.name}: {c.question}" for c in profile.columns if c.question is not None)
    yield ""
    yield "who is one person?"
    for number, candidate in enumerate(profile.candidates):
        yield f"  {_candidate(candidate)}"
        if candidate.repeated and profile.tried is not None:
            yield f"    {_consequence(profile.tried, number)}"
    for why in profile.why_not:
        yield f"  what happens if rows are taken for people can't be tried: {why}"


def risk_lines(risk: Risk) -> Iterator[str]:
    """Who is alone, who hides among how many, and what each column gives away."""
    part = round(100 * risk.lone / risk.people) if risk.people else 0
    yield f"known together: {', '.join(risk.quasi)}"
    yield f"{risk.lone:,} of {risk.people:,} {risk.unit} ({part} %) are alone: nobody is like them"
    rows = [("column", f"{risk.unit} alone by it", f"{risk.unit} alone without it")]
    rows += [(name, f"{risk.alone[name]:,}", f"{risk.without[name]:,}") for name in risk.quasi]
    yield from table_lines(rows, left=1)
    yield from (exposure_text(one._asdict(), risk.k or 2) for one in risk.exposed)
    for name, lone in risk.if_known.items():
        yield f"{name}: plain, so no promise covers it; {lone:,} would be alone if others knew it"
    ks = sorted({*USUAL_KS, *([] if risk.k is None else [risk.k])})
    rows = [("k", f"{risk.unit} in classes of k or more", "classes, at most")]
    rows += [(str(k), f"{risk.hidden(k):,}", f"{risk.most_classes(k):,}") for k in ks]
    yield ""
    yield from table_lines(rows, left=0)
    if risk.special is not None:
        yield ""
        yield from _special_lines(risk, risk.special)


def _special_lines(risk: Risk, found: SpecialUniques) -> Iterator[str]:
    """Whom few columns single out, and how likely who is alone is re-identified."""
    known = {size: count for size, count in found.sizes.items() if count}
    sizes = [f"{count:,} of {counted_text(size, 'column')}" for size, count in known.items()]
    yield (
        f"up to {found.largest} columns single out {found.people:,} {risk.unit}; minimal sets:"
        f" {', '.join(sizes) or 'none'}"
    )
    if found.columns:
        rows = [("column", "share of the scores (SUDA) of sets with it")]
        rows += [(name, f"{100 * share:.0f} %") for name, share in found.columns.items()]
        yield from table_lines(rows, left=1)
    yield from _by_weight_lines(risk)


def _by_weight_lines(risk: Risk) -> Iterator[str]:
    """How likely people of a sample are re-identified in the population, on average and at most."""
    found = risk.individual_risk
    if found is None:
        return
    yield ""
    yield "risk of re-identification in the population, by the weights:"
    rows = [("", "on average (global)", "at most", "expected re-identifications")]
    named = {"each person": found["own"]}
    if "household" in found:
        named["with the household"] = found["household"]
    for who, stated in named.items():
        counted = f"{stated['mean'] * risk.people:,.1f} of {risk.people:,}"
        rows.append((who, f"{stated['mean']:.3g}", f"{stated['max']:.3g}", counted))
    if (alone := risk.alone_by_weight) is not None and len(alone):
        who = f"{risk.lone:,} alone in the sample"
        rows.append((who, f"{alone.mean():.3g}", f"{alone.max():.3g}", f"{alone.sum():,.1f}"))
    yield from table_lines(rows, left=1)


def _written(profile: Profile) -> str:
    shown = () if profile.dialect is None else ("encoding", "delimiter")
    said = [f"{key} {value!r}" for key, value in profile.read.items() if key not in shown]
    if profile.dialect is not None:
        said = [f"{profile.dialect['encoding']}, delimiter {profile.dialect['delimiter']!r}", *said]
    return f"; {', '.join(said)}" if said else ""


def _candidate(candidate: Candidate) -> str:
    if not candidate.columns:
        unseen = f"; {UNSEEN.format('rows')}" if candidate.may_recur else ""
        return f"every row: {counted_text(candidate.people, 'person', 'people')}{unseen}"
    words = ("profile",) if candidate.is_profile else ("person", "people")
    people = counted_text(candidate.people, *words)
    text = (
        f"{' + '.join(candidate.columns)}: {people},"
        f" {candidate.repeated:,} of them with several rows, {candidate.most_rows:,} at most"
    )
    if candidate.without:
        text += f"; {counted_text(candidate.without, 'row')} without a value"
    if candidate.agreeing:
        text += f"; rows of one agree on {some_named(candidate.agreeing)}"
    return text


def _consequence(tried: TakenForPeople, number: int) -> str:
    fewer = tried.fewer[number]
    return (
        f"if every row is taken for a person, {fewer:,} of {tried.classes:,} classes of"
        f" {tried.k} hide fewer than {tried.k} of these people, the smallest"
        f" {tried.smallest[number]:,} ({tried.method})"
    )


# How a stream is doing, in words.


def status_lines(status: StreamStatus) -> Iterator[str]:
    """The verdict, counts and figures, then what to look at."""
    verdict, records = status["verdict"], status["records"]
    kept = "every release so far keeps every promise"
    verdict_text = kept if status.holds else "a release broke a promise"
    if not status.holds and status["state"] == "ended":
        verdict_text = "the whole of what was published breaks a promise"
    wait, recent = status["wait"], status["recent"]
    allowed = "" if wait["allowed"] is None else f", {wait['allowed']:,} allowed"
    if status.is_mostly_aside:
        yield f"the source may have changed: {status['mostly_aside']}"
    alive = _time(status.content.get("alive", status["at"]))
    state = f"silent since {alive}" if status.is_silent else status["state"]
    has_committed = status.content.get("commits", 1) > 0
    last = f"last commit {_time(status['at'])}" if has_committed else "nothing committed yet"
    yield f"{state}, {last}"
    yield f"{verdict_text}: {counted_text(verdict['releases'], 'release')}"
    yield (
        f"{records['came']:,} records came, {records['published']:,} published,"
        f" {records['waiting']:,} waiting, {records['suppressed']:,} suppressed,"
        f" {records['set_aside']:,} set aside"
    )
    if left_out := unpublished(records):
        yield left_out
    if records.get("unfiled"):
        yield f"{records['unfiled']:,} of the published rows wait for a file of the folder"
    yield f"loss {percent(recent['loss'])} lately, {percent(status['loss'])} since the start"
    yield f"longest wait {wait['longest']:,} records{allowed}"
    yield f"joined an earlier class: {percent(status['reuse'])}"
    for alarm in status.alarms[status.is_mostly_aside :]:  # that one was said first
        since = "" if alarm.since is None else f", {_time(alarm.since)}"
        yield f"look at this: {alarm.kind}{since}: {alarm.text}"


def _time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
