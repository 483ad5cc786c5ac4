"""The dossier of a release as a page that prints on A4; shows no value of the data."""

import hashlib
import json
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from shoal.auditor.dossier.context import (
    SHOWN,
    UNMATCHED,
    ContextLike,
    Rating,
    accepted_in_words,
    as_point,
    parts_of,
    signed_off_by,
    words_of,
)
from shoal.auditor.dossier.dossier import (
    ANSWERED,
    ATTACKS,
    NOT_ACCEPTABLE,
    NOT_JUDGED,
    QUESTION,
    REJECTED,
    Dossier,
    build_dossier,
    field_words,
)
from shoal.auditor.verdict import fails_beside, fails_together, is_only_unjudged
from shoal.auditor.verify import FAILS
from shoal.connectors import files, outputs
from shoal.data.certificate import Certificate
from shoal.data.language import capitalised, gettext, ngettext, printable
from shoal.data.progress import Progress, no_progress
from shoal.data.regular_files import path_text
from shoal.data.warnings import GRAVE, OPEN
from shoal.errors import InputError
from shoal.policy.policy import PolicyLike
from shoal.reports import attacks
from shoal.reports.charts import risks_chart, shortened
from shoal.reports.in_short import ROLES, in_short
from shoal.reports.limits import linked_rows, people_of, row_order
from shoal.reports.linked import entities_of, entity_picture, loss_of_people
from shoal.reports.pages import Content, listed, percent_text, render_template, write_page
from shoal.reports.release import named_promise
from shoal.reports.text import alone_if_known

RISKS = {
    "alone": gettext("People whom nobody else looks like"),
    "mean": gettext("Chance to find a person, on average"),
    "max": gettext("Chance to find a person, at most"),
}


def dossier(
    released: str | Path,
    certificate: str | Path | None = None,
    *,
    context: ContextLike,
    output: str | Path | None = None,
    policy: PolicyLike | None = None,
    original: str | Path | None = None,
    trace: str | Path | None = None,
    profiles: Sequence[str] = (),
    trust: Sequence[str | Path] = (),
    progress: Progress = no_progress,
) -> Dossier:
    """The dossier of a released file, from its certificate and a context file or its content.

    output: a page of HTML; the same as JSON is written beside it. original: tells the initial risk.
    trace: as of `shoal.verify`. profiles: by name; `gdpr` by default. trust: public keys. Raises
    PromiseError where the file fails `verify`, and InputError.
    """
    InputError.raise_for(outputs.misplaced("release", [path_text(released, "released")], output))
    found = _with_attacks(
        build_dossier(
            released,
            certificate,
            context=context,
            policy=policy,
            original=original,
            trace=trace,
            profiles=profiles,
            trust=trust,
            progress=progress,
        )
    )
    if output is not None:
        write_dossier(found, Path(path_text(output, "output")))
    return found


def _with_attacks(found: Dossier) -> Dossier:
    """What is open once what attacks found is known, too, and what is accepted in words."""
    certificate = Certificate(found.content["certificate"])
    much = [
        {"kind": attacks.MUCH, "about": "attack", "text": row.says, "clauses": []}
        for row in attacks.must_be_accepted(certificate)
    ]
    known = [
        *(row.says for row in attacks.rows_of(certificate)),
        *(w.text for w in certificate.warnings),
    ]
    return found.decided(much, known)


def json_path(page: Path) -> Path:
    """Where the same is written as JSON."""
    return page.with_suffix(".json")


def write_dossier(found: Dossier, path: Path) -> None:
    """The page, and JSON with its hash, so a signature of that is of both; whole or not at all."""
    shown = {**_content(found), "json_name": json_path(path).name}
    page = render_template("dossier.html.j2", shown)
    signed = {"name": path.name, "sha256": hashlib.sha256(page.encode()).hexdigest()}
    found = replace(found, content={**found.content, "page": signed})
    files.write_text(json_path(path), found.to_json())
    outputs.remove_stale_signature(json_path(path))
    write_page(page, path)


def summary(found: Dossier) -> Iterator[str]:
    """The dossier in lines for a terminal."""
    clauses = found.content["clauses"]
    answered = sum(clause["state"] == ANSWERED for clause in clauses)
    asked = f"{answered} of {len(clauses)} answers that the clauses ask for are there"
    yield f"{asked}; {counted_open(found)}"
    findings = [  # one that can be accepted as a key of `accepted` in the context
        one["text"]
        if one["kind"] in NOT_ACCEPTABLE
        else f"{json.dumps(one['text'], ensure_ascii=False)}:"
        for one in found.open
        if one["kind"] != QUESTION
    ]
    for text in (*findings, *_questions(found)):
        yield f"open  {printable(text)}"


SOURCES = {
    ATTACKS: gettext("attacks"),
    "certificate": gettext("another certificate"),
    "initial_risk": gettext("the original"),
    "sign_off": gettext("whoever decides"),
    "": gettext("the context file"),
}
"""What answers a question, by how the name of its field begins."""


def _questions(found: Dossier) -> Iterator[str]:
    """What is not answered, in a line for each that answers it."""
    named: dict[str, list[str]] = {source: [] for source in SOURCES}
    for one in found.open:
        if one["kind"] == QUESTION:
            source = next(start for start in SOURCES if one["about"].startswith(start))
            is_said = source == "sign_off"  # whose sign-off is not of this release
            named[source].append(one["text"] if is_said else gettext(field_words(one["about"])))
    for source, names in named.items():
        if names:
            yield ngettext(
                "{count} question for {source}: {names}",
                "{count} questions for {source}: {names}",
                len(names),
                source=SOURCES[source],
                names="; ".join(names),
            )


KINDS: dict[str, Callable[[int], str]] = {
    FAILS: lambda count: ngettext(
        "{count} promise or check that fails or is missing",
        "{count} promises or checks that fail or are missing",
        count,
    ),
    GRAVE: lambda count: ngettext("{count} grave finding", "{count} grave findings", count),
    REJECTED: lambda count: ngettext("{count} rejection", "{count} rejections", count),
    OPEN: lambda count: ngettext("{count} open finding", "{count} open findings", count),
    attacks.MUCH: lambda count: ngettext(
        "{count} finding of attacks that is, or may be, “much”",
        "{count} findings of attacks that are, or may be, “much”",
        count,
    ),
    UNMATCHED: lambda count: ngettext(
        "{count} accepted sentence that matches no finding",
        "{count} accepted sentences that match no finding",
        count,
    ),
    QUESTION: lambda count: ngettext(
        "{count} unanswered question", "{count} unanswered questions", count
    ),
}


def counted_open(found: Dossier) -> str:
    """How much is open, of each kind."""
    kinds = [one["kind"] for one in found.open]
    named = [words(kinds.count(kind)) for kind, words in KINDS.items() if kind in kinds]
    total = ngettext("{count} point is open", "{count} points are open", len(kinds))
    said = f"{total}: {', '.join(named)}" if kinds else gettext("nothing is open")
    if count := len(accepted_in_words(found.content)):
        said += "; " + gettext("{count} accepted in words", count=count)
    return said


def _accepted_by_words(
    found: Dossier, certificate: Certificate
) -> dict[str, tuple[list[str], list[str]]]:
    """By the words that accept them: the points, the worst first, each with how bad it is; and the
    names of what attacks found, by which the appendix has its figures.
    """
    accepted = accepted_in_words(found.content)
    labels = {row.says: row.label for row in attacks.worst_first(certificate)}
    how_bad = {
        as_point(one.text): f"{gettext(one.severity)}: {one.text}" for one in certificate.warnings
    }
    points = [*how_bad, *(point for point in accepted if point not in how_bad)]
    return {
        words: (
            [
                how_bad.get(point, point).partition(";")[0]  # not what would help: it is accepted
                for point in points
                if point not in labels and accepted.get(point) == words
            ],
            [label for says, label in labels.items() if accepted.get(says) == words],
        )
        for words in dict.fromkeys(accepted.values())
    }


MOST_GRAVE = 2  # findings in the first box
MOST_LETTERS = 150  # of an answer or a finding before the appendix


def _grave(found: Dossier, certificate: Certificate) -> list[str]:
    """What fails, the worst grave findings, releases that were not judged; whether accepted."""
    accepted = accepted_in_words(found.content)
    grave = sorted(certificate.grave, key=lambda one: one.column is not None)
    more = len(grave) - MOST_GRAVE
    failing = [one["text"] for one in found.open if one["kind"] == FAILS]
    lines = [gettext("Fails: {what}.", what=text.partition(";")[0]) for text in failing]
    for one in grave[:MOST_GRAVE]:
        fact = shortened(one.text.partition(";")[0], MOST_LETTERS)
        state = (
            gettext("Grave, accepted") if as_point(one.text) in accepted else gettext("Grave, open")
        )
        lines.append(f"{state}: {fact}.")
    if more > 0:
        lines[-1] += " " + ngettext("{count} more.", "{count} more.", more)
    for text in (*(one["text"] for one in found.open), *accepted):
        if text.startswith(NOT_JUDGED) and text not in failing:
            state = gettext("Accepted") if text in accepted else gettext("Open")
            lines.append(f"{state}: {shortened(text.partition(';')[0], MOST_LETTERS)}.")
    return lines


def _content(found: Dossier) -> Content:
    content = found.content
    certificate, context = Certificate(content["certificate"]), content["context"]
    counted = counted_open(found)
    findings = [one for one in found.open if one["kind"] not in (attacks.MUCH, QUESTION)]
    return {
        "dossier": content,
        "certificate": certificate,
        "light": _light(found, certificate),
        "grave": _grave(found, certificate),
        "counted": f"{capitalised(counted)}.",
        "findings": findings[:MOST_SHOWN],
        "accepted": _accepted_by_words(found, certificate),
        "signers": signed_off_by(content),
        "agreed": [
            (gettext(parts_of("controls")[key]), _at(context, f"controls.{key}")) for key in AGREED
        ],
        "more": len(findings) - MOST_SHOWN,
        "much_open": sum(one["kind"] == attacks.MUCH for one in found.open),
        "questions": list(_questions(found)),
        "open": found.open,
        "promises": [named_promise(promise) for promise in certificate["promises"]],
        "picture": entity_picture(entities_of(certificate)) if certificate.get("linked") else "",
        "lines": [line for line in in_short(certificate) if line.about != gettext("Open")],
        "risks": list(_risks(content)),
        "named": risks_chart(certificate),
        "facts": [
            *((words, _at(context, name)) for name, words in FACTS.items()),
            *_measured_facts(found, certificate),
        ],
        "checks": found.checks,
        "columns": list(_columns(content)),
        "ratings": [gettext(str(Rating.model_fields[key].title)) for key in RATED],
        "answers": list(_answers(context, {c["field"] for c in content["clauses"]})),
        "sign_off": context["sign_off"],
        "profiles": list(_profiles(found, certificate)),
        **attacks.attack_section(certificate, accepted=accepted_in_words(content)),
    }


MOST_SHOWN = 3  # findings before the appendix
AGREED = ("agreement", "no_reidentification", "onward")
FACTS = {
    "controller.name": gettext("controller"),
    "recipient.who": gettext("recipient"),
    "purpose": gettext("purpose"),
    "legal_basis": gettext("legal basis"),
    "controls.agreement": gettext("agreement with the recipient"),
    "review_by": gettext("review by"),
}


def _measured_facts(found: Dossier, certificate: Certificate) -> Iterator[tuple[str, str]]:
    """Who is one person, how rows stand, which other releases there are, and who certified it."""
    names = ", ".join(c["name"] for c in certificate.get("columns") or [] if c["role"] == "subject")
    people, out = people_of(certificate), certificate["records"]["out"]
    records = ngettext("{count} record", "{count} records", out)
    one = gettext("all records with one value of {names}", names=names) if names else None
    if tables := certificate.get("tables"):  # people are a table of their own
        rows = [(one["name"], one["rows"]["published"]) for one in tables[1:]]
        records = "; ".join(gettext("{count:,} rows of {name}", count=n, name=t) for t, n in rows)
    yield gettext("one person"), f"{one or gettext('every record')}: {people}, {records}"
    yield gettext("can rows of one person be linked?"), linked_rows(certificate)
    hidden = certificate["records"]["suppressed"]
    lost = [gettext("{some} of {all} records", some=hidden, all=out), *_single_cells(certificate)]
    if tables:
        lost = [
            gettext("{some:,} of {all:,} rows of {name} withheld", some=some, all=n["in"], name=t)
            for t, n in ((one["name"], one["rows"]) for one in tables)
            if (some := n["withheld"]) is not None
        ]
    most = loss_of_people(certificate) if tables else gettext("see the report")
    lost.append(gettext("who lost most: {most}", most=most or gettext("not known")))
    yield gettext("suppressed"), "; ".join(lost)
    if order := row_order(certificate):
        yield gettext("order of rows"), order
    named = found.content["context"]["other_releases"]
    known, judged = f"{_text(named)}; ", gettext("not judged together")
    if named == "none-known":
        known, judged = "", gettext("none known, so none was compared")
    if (beside := certificate.get("beside")) is not None:
        judged = gettext("together they hold")
    if failing := "; ".join(fails_together(certificate)):
        judged = gettext("together they fail: {what}", what=failing)
    if beside is not None and is_only_unjudged(beside):
        judged = gettext("not judged in full: {what}", what=fails_beside(beside))
    yield gettext("other releases"), f"{known}{judged}"
    signature = next((check.said for check in found.checks if check.name == "signature"), "")
    yield gettext("signature of the certificate"), signature


def _single_cells(certificate: Certificate) -> Iterator[str]:
    """Cells that are suppressed by themselves, by column, and how many values never appear."""
    columns: Content = {one["name"]: one for one in certificate.get("columns") or []}
    for name, cells in (certificate.get("starred") or {}).items():
        said = gettext("{cells:,} cells of {name}", cells=cells, name=name)
        column = columns.get(name, {})
        before, after = column.get("distinct_in"), (column.get("distinct_out") or 1) - 1
        is_whole = column.get("technique") == "value-or-nothing"  # its mark is no value
        if is_whole and before is not None and after < before:
            gone = before - after
            said += gettext(" ({gone} of {before} values never appear)", gone=gone, before=before)
        yield said


def _at(context: Mapping[str, Any], field: str) -> str:
    """An answer, cut short where it is long: the appendix has it whole."""
    value: Any = context
    for key in field.split("."):
        value = value[key]
    return shortened(" ".join(_text(value).split()), MOST_LETTERS)


def _light(found: Dossier, certificate: Certificate) -> str:
    """The colour of the box: that of the certificate; red also for a risk above what is accepted,
    what fails and a rejection, amber also while something is open and where attacks found much.
    """
    limits = found.content["threshold"]
    is_above = any(limits[name]["within"] is False for name in ("max", "mean"))
    if is_above or any(one["kind"] in (FAILS, REJECTED) for one in found.open):
        return "red"
    is_doubtful = bool(found.open) or attacks.much_found(certificate) is not None
    return "amber" if is_doubtful and certificate.holds else certificate.light


def _risks(content: Mapping[str, Any]) -> Iterator[tuple[str, str, str, str, bool | None]]:
    """Each risk in words, before, after, as accepted, and whether it is within that; last the risk
    from who also knows what no promise covers, where there is such a column.
    """
    before, after = content["initial_risk"] or {}, content["residual_risk"]
    for name, words in RISKS.items():
        limit = content["threshold"].get(name) or {}
        shares = before.get(name), after[name], limit.get("accepted")
        was, now, accepted = (percent_text(share, "–") for share in shares)
        yield words, was, now, accepted, limit.get("within")
    certificate = content["certificate"]
    together = certificate.get("together") or {}
    alone, people = together.get("alone_if_known"), together.get("people")
    if alone is not None and people and alone_if_known(Certificate(certificate)):
        words = gettext("People alone, if the columns that no promise covers are known too")
        yield words, "", percent_text(alone / people), "", None


def _columns(content: Mapping[str, Any]) -> Iterator[tuple[str, str, str, str, list[str]]]:
    """The columns of the certificate with what the context says of them, or what it alone says."""
    rated = content["context"]["attributes"]
    for column in content["certificate"].get("columns") or [{"name": name} for name in rated]:
        rating = rated.get(column["name"], {})
        yield (
            column["name"],
            ROLES.get(column.get("role"), column.get("role") or "–"),
            gettext(SHOWN.get(column.get("technique"), "–")),
            percent_text(column.get("loss"), "–"),
            [rating.get(key) or "–" for key in RATED],
        )


OF_OTHER_PARTS = ("version", "title", "attributes", "threshold", "accepted", "sign_off")
RATED = ("replicable", "available", "distinguishing", "why")


def _answers(
    context: Mapping[str, Any], asked: set[str]
) -> Iterator[tuple[str, list[tuple[str, str]]]]:
    """Answers of the context as pairs of what and how, but for empty ones that nobody asks for."""
    for key, value in context.items():
        if key in OF_OTHER_PARTS:
            continue
        title = capitalised(gettext(words_of(key)))
        parts = value.values() if isinstance(value, Mapping) else [value]
        if key not in asked and not any(parts):
            continue
        if isinstance(value, Mapping):
            named = parts_of(key)
            yield title, [(gettext(named[part]), _text(answer)) for part, answer in value.items()]
        else:
            yield title, [("", _text(value))]


OF_GRAVE = "certificate.columns", "certificate.risk"  # fields that grave findings are about


def _profiles(found: Dossier, certificate: Certificate) -> Iterator[Content]:
    grave = sum(one["kind"] == GRAVE for one in found.open)
    for profile in found.profiles:
        fields = [one for one in found.content["clauses"] if one["profile"] == profile.name]
        words: defaultdict[tuple[str, str], list[tuple[str, str]]] = defaultdict(list)
        for one in fields:
            words[one["clause"], one["state"]].append(_answer(certificate, one["field"]))
            if grave and one["field"] in OF_GRAVE:
                words[one["clause"], OPEN].append((KINDS[GRAVE](grave), ""))
        clauses = [
            (one, words[one.clause, ANSWERED], words[one.clause, OPEN]) for one in profile.clauses
        ]
        still = sum(len(words[one.clause, OPEN]) for one in profile.clauses)
        yield {"profile": profile, "clauses": clauses, "open": still}


def _answer(certificate: Certificate, field: str) -> tuple[str, str]:
    """What answers a clause, of attacks with the worst that they found, and its colour."""
    attack = field.removeprefix(f"{ATTACKS}.")
    word, names = attacks.worst_of(certificate, attack), attacks.naming_columns(certificate)
    if field in OF_GRAVE and (count := len(certificate.grave)):
        return f"{gettext(field_words(field))} [{KINDS[GRAVE](count)}]", "bad"
    found = f" [{gettext(word)}]" if word else ""
    if names and attack in ("singling-out", "linkability"):
        found += gettext(" by {names}, published as they are", names=listed(names))
    return f"{gettext(field_words(field))}{found}", attacks.COLOURS.get(word, "answered")


def _text(value: Any) -> str:
    if isinstance(value, list):
        return "; ".join(map(str, value)) or "open"
    if value == "none-known":
        return gettext("none known")
    return str(value) if value not in (None, "") else "open"
