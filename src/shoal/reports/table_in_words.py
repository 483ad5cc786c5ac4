"""A table before anything is done to it, in words: what is in it, who is a person, who is alone."""

from __future__ import annotations

from shoal.advise.proposal.candidates import Candidate
from shoal.advise.proposal.profile import Profile, TakenForPeople
from shoal.data.findings import some_named
from shoal.privacy.table_risk import Risk
from shoal.reports.text_table import table_lines

USUAL_KS = (2, 3, 5, 10, 20, 50)


def profile_lines(profile: Profile) -> list[str]:
    """Columns, then who may be one person and what follows if rows are taken for people."""
    lines = [f"{_rows(profile.rows)}, {_count(len(profile.columns), 'column')}{_written(profile)}"]
    rows = [("column", "kind", "values", "missing")]
    rows += [(c.name, c.kind, f"{c.values:,}", f"{c.missing:,}") for c in profile.columns]
    lines += table_lines(rows, left=2)
    lines += [f"{c.name}: {c.question}" for c in profile.columns if c.question is not None]
    lines += ["", "who is one person?"]
    for number, candidate in enumerate(profile.candidates):
        lines.append(f"  {_candidate(candidate)}")
        if candidate.columns and profile.tried is not None:
            lines.append(f"    {_consequence(profile.tried, number)}")
    lines += [
        f"  what happens if rows are taken for people can't be tried: {w}" for w in profile.why_not
    ]
    return lines


def risk_lines(risk: Risk) -> list[str]:
    """Who is alone, who hides among how many, and what each column gives away."""
    named = ", ".join(risk.quasi)
    lines = [
        f"known together: {named}",
        f"{risk.lone:,} of {risk.people:,} {risk.unit} ({_percent(risk.lone, risk.people)}) are the"
        " only one of their kind",
    ]
    rows = [("column", "alone", "without it")]
    rows += [(name, f"{risk.alone[name]:,}", f"{risk.without[name]:,}") for name in risk.quasi]
    lines += table_lines(rows, left=1)
    lines += [
        f"{name}: harmless by its role; {lone:,} would be alone if others knew it"
        for name, lone in risk.if_known.items()
    ]
    ks = sorted({*USUAL_KS, *([] if risk.k is None else [risk.k])})
    rows = [("k", f"{risk.unit} who hide already", "most classes")]
    rows += [(str(k), f"{risk.hidden(k):,}", f"{risk.most_classes(k):,}") for k in ks]
    return [*lines, "", *table_lines(rows, left=0)]


def _written(profile: Profile) -> str:
    shown = () if profile.dialect is None else ("encoding", "delimiter")
    said = [f"{key} {value!r}" for key, value in profile.read.items() if key not in shown]
    if profile.dialect is not None:
        said = [f"{profile.dialect['encoding']}, delimiter {profile.dialect['delimiter']!r}", *said]
    return f"; {', '.join(said)}" if said else ""


def _candidate(candidate: Candidate) -> str:
    if not candidate.columns:
        return f"every row: {_count(candidate.people, 'person', 'people')}"
    text = (
        f"{' + '.join(candidate.columns)}: {_count(candidate.people, 'person', 'people')},"
        f" {candidate.repeated:,} of them with several rows, {candidate.most_rows:,} at most"
    )
    if candidate.without:
        text += f"; {_rows(candidate.without)} without a value"
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


def _rows(rows: int) -> str:
    return _count(rows, "row")


def _count(number: int, one: str, many: str = "") -> str:
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def _percent(part: int, whole: int) -> str:
    return f"{100 * part / whole:.0f} %" if whole else "0 %"
