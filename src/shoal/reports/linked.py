"""Linked tables in a picture and in sentences: on a certificate, and before a release."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import date, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from markupsafe import Markup, escape

from shoal.auditor.dossier.context import SHOWN
from shoal.auditor.linked.audit import LinkedAudit
from shoal.data.certificate import Certificate
from shoal.data.certificate_shape import span_text
from shoal.data.language import capitalised, gettext, ngettext, printable
from shoal.data.linked import PEOPLE, Keys
from shoal.data.warnings import fault_sentences
from shoal.policy.loading import as_yaml
from shoal.policy.model import PolicyModel
from shoal.policy.problem import LinkedProblem
from shoal.reports import pages
from shoal.reports.attacks import attack_section
from shoal.reports.charts import shortened
from shoal.reports.distributions import FEWEST, Counts, Distribution, SafeColumn, drawn_of
from shoal.reports.in_short import K_ANONYMITY, ROLES, in_short
from shoal.reports.release import before_and_after
from shoal.reports.text import promise_lines

ONE_DAY = timedelta(days=1)


def linked_lines(certificate: Certificate) -> Iterator[str]:
    """Promises asked and measured, tables, who is betrayed by what, and what was lost."""
    classes, people = certificate["classes"], certificate["records"]
    yield from promise_lines(certificate)
    made = f"{classes['count']} classes of {span_text(classes)} people"
    shown = f"alike in {_known_alike(certificate['linked'])}, {people['out']} people"
    yield f"{made} {shown}, {people['withheld']} of these withheld"
    for table in certificate["tables"]:
        rows = table["rows"]
        withheld = "" if rows["withheld"] is None else f", {rows['withheld']} withheld"
        yield f"table {table['name']}: {rows['published']} rows{withheld}"
    for table in table_findings(certificate):
        yield from table.lines
    found = certificate["linked"]
    if found["matching"] is not None:
        yield _of_attack(found["matching"], certificate["together"]["asked"])
    if found["bundle_loss"] is not None:
        yield f"information loss (bundles) {100 * found['bundle_loss']:.2f} %"
    if found["audited"] == "files":
        yield "measured on the published files alone; --original tries to match people as well"
    yield from (f"{sentence}: DOES NOT HOLD" for sentence in fault_sentences(certificate))


def _known_alike(found: Mapping[str, Any]) -> str:
    """What everybody in a class shows alike, as the policy says what is known. found: `linked`."""
    apart = []
    if most := found.get("known_rows"):
        apart.append(
            ngettext(
                "tables of which any {count} row is known",
                "tables of which any {count} rows are known",
                most,
            )
        )
    if (found.get("anchor") or {}).get("gaps") == "exact":
        apart.append(gettext("dates"))
    if not apart:
        return gettext("all that is known of all tables")
    return gettext("all that is known of all tables, but for {apart}", apart=pages.listed(apart))


def _not_joined(certificate: Certificate) -> list[str]:
    """The tables whose rows no key joins with people."""
    found = certificate["linked"]
    if found.get("keys") != Keys.NONE:
        return []
    judged = {one["table"] for one in found["exposed"]}
    return [table["name"] for table in certificate["tables"] if table["name"] not in judged]


def _of_attack(found: Mapping[str, int], k: int) -> str:
    tried = f"{found['tried']} of {found['people']} people were tried to match with the originals"
    if not found["below"]:
        return f"{tried}: each fits at least {k} published people"
    return (
        f"{tried}: {found['below']} fit fewer than {k} published people, one fits {found['least']}"
    )


# For pages: each table in sentences, a picture of how tables hang together, and the report.


class TableFindings(NamedTuple):
    """One table of a release: what an attacker knows of it, its rows, and what was found."""

    name: str
    known: str
    rows_in: int | None
    published: int
    withheld: int | None
    lines: list[str]


def table_findings(certificate: Certificate, people: str = PEOPLE) -> list[TableFindings]:
    """What was found of each table, people first. people: what their table is called."""
    asked, exposed = certificate["together"]["asked"], certificate["linked"]["exposed"]
    promises = certificate.get("promises") or ()
    is_kept = any(p["model"] == K_ANONYMITY and p["holds"] for p in promises)
    not_joined = _not_joined(certificate)
    found = []
    for table in certificate["tables"]:
        name, rows = table["name"], table["rows"]
        own = [exposure_text(one, asked, is_kept) for one in exposed if one["table"] == name]
        if name in not_joined:
            own.append(
                gettext(
                    "Known rows of {table}: nobody can tell whose they are, so nobody is counted by"
                    " them.",
                    table=name,
                )
            )
        found.append(
            TableFindings(
                people if name == PEOPLE else name,
                gettext("their own cells") if name == PEOPLE else pages.known_text(table["known"]),
                rows["in"],
                rows["published"],
                rows["withheld"],
                own,
            )
        )
    return found


def loss_of_people(certificate: Certificate) -> str:
    """How unevenly the loss falls on people; nothing where that is not known."""
    paid = certificate["linked"].get("paid")
    if paid is None:
        return ""
    return gettext(
        "the tenth of people who lose most lose {tenth} of their detail, over all of their rows;"
        " the half who lose least, {half}",
        tenth=pages.percent_text(paid["tenth"]),
        half=pages.percent_text(paid["half"]),
    )


def paid_lines(certificate: Certificate) -> Iterator[str]:
    """Who pays for a release: how unevenly the loss falls on people, as far as that is known, and
    of each table how many rows are withheld, and of whom.
    """
    if said := loss_of_people(certificate):
        yield f"{capitalised(said)}."
    people = (certificate["linked"].get("paid") or {"people": {}})["people"]
    for table in certificate["tables"]:
        if table["rows"]["withheld"]:
            yield _withheld(table, people.get(table["name"]))


def _withheld(table: Mapping[str, Any], people: Mapping[str, int] | None) -> str:
    """How many rows of a table are withheld. people: of how many, and how many have none left."""
    said = ngettext(
        "{count:,} of {all:,} rows of {table} is withheld: too few people in its class have such a"
        " row.",
        "{count:,} of {all:,} rows of {table} are withheld: too few people in their classes have"
        " such rows.",
        table["rows"]["withheld"],
        all=table["rows"]["in"],
        table=table["name"],
    )
    if people is None:
        return said
    whose = gettext(
        "People who lose such rows: {losing:,}; of these, without any left: {without:,}."
    )
    return f"{said} {whose.format(**people)}"


def exposure_text(one: Mapping[str, Any], k: int, is_kept: bool = False) -> str:
    """How many people hide among fewer than k from whoever knows this part of a table.

    is_kept: whether the promise of k holds, so that whoever betrays people knows more than it says.
    """
    what = gettext("people's own cells")
    if one["table"] != PEOPLE:
        what = gettext("{what} of {table}", what=pages.known_text(one["known"]), table=one["table"])
    if one.get("dates_aside"):
        what = gettext("{known}, dates aside", known=what)
    if one["below"] is None:
        return gettext("Known {what}: not judged, too many choices of rows.", what=what)
    if not one["below"]:
        return gettext("Known {what}: everybody hides among at least {k}.", what=what, k=k)
    few = ngettext(
        "Known {what}: {count:,} person hides among fewer than {k}.",
        "Known {what}: {count:,} people hide among fewer than {k}.",
        one["below"],
        what=what,
        k=k,
    )
    beyond = gettext("The policy promises nothing against whoever knows that.")
    return f"{few} {beyond}" if is_kept else few


class Entity(NamedTuple):
    """A table in the picture. parent: the table that its rows belong to; None for people, and for
    one of which nobody has said it yet. lines: what stands below its name.
    """

    name: str
    parent: str | None
    lines: Sequence[str]
    is_people: bool = False


WIDTH, INDENT, LINE, GAP, LETTER = 340, 30, 18, 16, 7.8


def entity_picture(entities: Sequence[Entity]) -> Markup:
    """Tables below one another as SVG, each indented below the one that its rows belong to, with
    the mark of many rows for one; all of it in words for who does not see it.
    """
    places: dict[str, tuple[int, int, int]] = {}  # left edge, bottom and depth
    drawn, top = [], 1
    for one in _below_one_another(entities):
        above = places.get(one.parent or "")
        left, depth = (1, 0) if above is None else (above[0] + INDENT, above[2] + 1)
        height = 14 + LINE * (1 + len(one.lines))
        middle, width = top + height // 2, WIDTH - left - 1
        if above is not None:
            x = above[0] + 14
            drawn.append(
                f'<path d="M{x} {above[1]}V{middle}H{left}M{left - 8} {middle}l8 -5m-8 5l8 5"/>'
            )
        kind = "people" if one.is_people else "" if one.parent else "loose"
        drawn.append(
            f'<rect class="{kind}" x="{left}" y="{top}" width="{width}" height="{height}" rx="6"/>'
        )
        if one.is_people:
            at = f"translate({WIDTH - 26} {top + 9})"
            head = '<circle cx="8" cy="4" r="4"/><path d="M0 19a8 9 0 0 1 16 0z"/>'
            drawn.append(f'<g class="person" transform="{at}">{head}</g>')
        for number, text in enumerate([one.name, *one.lines]):
            room = int((width - (44 if one.is_people and number < 2 else 20)) / LETTER)
            shown = shortened(text, room)
            mark = ' class="strong"' if not number else ""
            y = top + 21 + LINE * number
            drawn.append(f'<text{mark} x="{left + 11}" y="{y}">{escape(shown)}</text>')
        places[one.name] = (left, top + height, depth)
        top += height + GAP
    label = "; ".join(f"{one.name}: {', '.join(one.lines)}" for one in entities)
    return Markup(
        '<svg class="entities" viewBox="0 0 {} {}" role="img" aria-label="{}">{}</svg>'
    ).format(WIDTH, max(top - GAP + 1, 1), printable(label), Markup("".join(drawn)))


def _below_one_another(entities: Sequence[Entity], parent: str | None = None) -> Iterator[Entity]:
    """Every table behind the one that its rows belong to; those of which that is not known last."""
    for one in entities:
        if one.parent == parent:
            yield one
            yield from _below_one_another(entities, one.name)


def entities_of(certificate: Certificate, people: str = PEOPLE) -> list[Entity]:
    """The tables of a release. people: what the table of people is called."""
    found = []
    for table in certificate["tables"]:
        rows, name = table["rows"], table["name"]
        is_people = name == PEOPLE
        many = (
            ngettext("{count:,} person", "{count:,} people", rows["published"])
            if is_people
            else ngettext("{count:,} row", "{count:,} rows", rows["published"])
        )
        if rows["withheld"]:
            many += gettext(", {count:,} withheld", count=rows["withheld"])
        known = gettext("their own cells") if is_people else pages.known_text(table["known"])
        found.append(
            Entity(
                people if is_people else name,
                people if table["parent"] == PEOPLE else table["parent"],
                [many, gettext("known: {what}", what=known)],
                is_people,
            )
        )
    return found


# Before and after.


def linked_distributions(audit: LinkedAudit, problem: LinkedProblem) -> tuple[Distribution, ...]:
    """Quasi-identifiers of all tables before and after, those that lost most, in the order of their
    tables. Bars are shares of the rows that the original has, so rows that are withheld are lost.

    Days that count from a person's first are numbers. Of tables whose rows nobody can join, and
    without the original of before, nothing is drawn.
    """
    release, truth = audit.release, audit.truth
    quasi = (column for column in audit.certificate["columns"] if column["role"] == "quasi")
    names = drawn_of({column["name"]: column["loss"] for column in quasi})
    least = max(FEWEST, problem.policy.required_k or 0)
    found = []
    for about in filter(release.tree.is_joined, release.tree.tables):
        table = release.tables[about.name]
        rows = None if truth is None else truth.rows[about.name]
        encoded = {} if rows is None else {e.attribute.name: e for e in rows.encoded.attributes}
        owners = None if truth is None else _a_row_of_each(truth.person_of(about.name))
        kept = ~release.withheld[release.view.person_of[about.name]]
        declared = problem.alone(table.declared).model.attributes
        days = release.tree.days_of(about.name)
        for attribute, column in zip(about.schema.quasi, table.columns, strict=True):
            if about.qualified(attribute.name) not in names:
                continue
            count = Counts.of(encoded[attribute.name], owners) if encoded else None
            shown = np.bincount(column.codes[kept], minlength=len(column.cells))
            safe = SafeColumn.of(column, shown, count, least)
            drawn = safe.distribution(attribute, declared[attribute.name])
            drawn = _in_days(drawn) if attribute.name in days else drawn
            all_rows = table.rows if rows is None else rows.count
            found.append(replace(drawn, name=about.qualified(attribute.name), records=all_rows))
    return tuple(found)


def _a_row_of_each(person: np.ndarray) -> np.ndarray:
    """A row of everybody who has one, drawn: first ones may be alike, as days of first visits."""
    drawn = np.random.default_rng(0).permutation(len(person))
    return drawn[np.unique(person[drawn], return_index=True)[1]]


def _in_days(drawn: Distribution) -> Distribution:
    """A distribution over numbers of days with their dates as labels."""
    if drawn.edges is None:
        return drawn
    ends = [date.fromordinal(int(np.clip(end, 1, date.max.toordinal()))) for end in drawn.edges]
    spans = [
        str(low) if high - low == ONE_DAY else gettext("{lo} to {hi}", lo=low, hi=high - ONE_DAY)
        for low, high in pairwise(ends)
    ]
    return replace(drawn, edges=None, labels=(*spans, *drawn.labels[len(spans) :]))


# The report.


def write_linked_report(
    certificate: Certificate,
    asked: PolicyModel,
    path: Path,
    heading: pages.Heading | None = None,
    drawn: Sequence[Distribution] = (),
) -> None:
    """The report of a release of linked tables, written whole or not at all; from its certificate,
    its policy and distributions that are safe to show, so that it says nothing of any person.
    """
    found, names = certificate["linked"], {one.name for one in drawn}
    quasi = [column for column in certificate["columns"] if column["role"] == "quasi"]
    content = {
        "heading": heading or pages.Heading(),
        "certificate": certificate,
        "lines": in_short(certificate),
        "picture": entity_picture(entities_of(certificate)),
        "tables": table_findings(certificate),
        "known_alike": _known_alike(found),
        "paid": list(paid_lines(certificate)),
        "columns": [
            (c["name"], ROLES.get(c["role"], c["role"]), gettext(SHOWN[c["technique"]]), c["loss"])
            for c in certificate["columns"]
            if c["technique"] in SHOWN and c["technique"] != "removed"
        ],
        "loss": pages.percent_text(found["bundle_loss"]),
        "faults": list(fault_sentences(certificate)),
        "anchor": found["anchor"],
        "policy": as_yaml(asked.model_dump(mode="json", exclude_unset=True)),
        **attack_section(certificate),
        **before_and_after(
            drawn,
            sum(one["loss"] is not None or one["name"] in names for one in quasi),
            max(FEWEST, certificate["together"]["asked"]),
            asked.render.suppressed,
        ),
    }
    pages.write_page(pages.render_template("linked.html.j2", content), path)
