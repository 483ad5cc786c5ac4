"""A release in five lines, for a reader who knows no measure by its name.

What was published, who is protected and how, what was lost and where most, what is not promised,
what is open. From the certificate alone, so that a page and a dossier say the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from shoal.auditor.verdict import fails_beside, is_only_unjudged
from shoal.data.certificate import Certificate
from shoal.data.certificate_shape import (
    ASSUMED,
    BesideReport,
    ColumnReport,
    PromiseReport,
    Unit,
    have_several_rows,
    rows_of_nobody,
    span_text,
    unit,
)
from shoal.data.language import capitalised, gettext, ngettext
from shoal.data.warnings import GRAVE, fault_sentences
from shoal.policy import registry
from shoal.reports.pages import columns_by_table, known_of_linked, listed, number_text, percent_text
from shoal.reports.text import worst_columns

if TYPE_CHECKING:
    from shoal.auditor.ledger.history import LedgerAudit, ReleaseAudit

BY_RELEASE = "release by release"  # how a stream is measured that is not read again as a whole
K_ANONYMITY, CLOSENESS = "k-anonymity", "t-closeness"
ALL = gettext("all that an attacker could know")
ROLES = {
    "quasi": gettext("quasi-identifier"),
    "plain": gettext("plain, no promise"),
    "sensitive": gettext("sensitive"),
    "identifier": gettext("names people"),
    "subject": gettext("says who"),
    "time": gettext("time"),
    "drop": gettext("left out"),
    "derived": gettext("computed"),
}
"""What a column is to the policy."""


class Line(NamedTuple):
    """One of the five lines: what it is about, and what it says."""

    about: str
    says: str


def in_short(certificate: Certificate) -> list[Line]:
    """The five lines, in the order in which they are read."""
    return [
        Line(gettext("Published"), _sentences(_published(certificate))),
        Line(gettext("Protected"), _sentences(_protected(certificate))),
        Line(gettext("Lost"), _sentences(_lost(certificate))),
        Line(gettext("Not promised"), _sentences(_not_promised(certificate))),
        Line(gettext("Open"), _sentences(_open(certificate))),
    ]


def _published(certificate: Certificate) -> Iterator[str]:
    records, counted = certificate["records"], unit(certificate)
    shown = len(_columns(certificate)) - len(certificate.removed)
    people = certificate["subjects"]
    what = ngettext("{count:,} record", "{count:,} records", records["out"])
    if people is not None and counted.many == "people":
        what += gettext(" of {count:,} {people}", count=people, people=gettext(counted.of(people)))
    elif certificate.get("people") == ASSUMED:
        what += gettext(", each taken to be a person")
    if below := [table for table in certificate.get("tables") or () if table["parent"] is not None]:
        rows = [f"{one['rows']['published']:,} in {one['name']}" for one in below]
        what += gettext(", with their rows: {rows}", rows=listed(rows))
        yield what + gettext(
            "; of the original's columns, {columns}", columns=columns_by_table(certificate)
        )
    else:
        yield what + (
            ngettext(", in {count:,} column", ", in {count:,} columns", shown) if shown else ""
        )
    if invented := rows_of_nobody(certificate):
        count = number_text(invented)
        yield gettext("Invented, so that classes are full: {count} of the records", count=count)
    if removed := certificate.removed:
        yield gettext("Removed: {removed}", removed=listed(removed))


def _protected(certificate: Certificate) -> Iterator[str]:
    quasi = [c["name"] for c in _columns(certificate) if c["role"] == "quasi"]
    if certificate.get("presence"):
        yield from _in_two_tables(certificate)
    together = certificate.get("together") or {}
    is_apart = any(p["model"] == K_ANONYMITY and p["attributes"] for p in certificate["promises"])
    if together.get("min") is not None and is_apart:
        yield _all_together(together, unit(certificate))
    for promise in certificate["promises"]:
        if promise["holds"] is None:
            yield gettext(
                "Not measured: {model}, which needs the weights of the original",
                model=promise["model"],
            )
        elif not promise["holds"]:
            yield gettext(
                "Not kept: {model} asked for {asked}, found was {measured}",
                model=promise["model"],
                asked=number_text(promise["asked"]),
                measured=number_text(promise["measured"]),
            )
        elif promise["model"] == K_ANONYMITY:
            yield _alike(certificate, promise, promise["attributes"] or quasi)
        elif promise["measured"] is not None or certificate.get("measured") == BY_RELEASE:
            yield _of_sensitive(certificate, promise)
    if certificate.get("beside"):
        yield _beside(certificate["beside"])


def several_classes(certificate: Certificate) -> str:
    """What the promises leave open of people with rows in several classes; empty where nobody has.

    How many they are stands in it where it was measured.
    """
    if certificate.get("linked") or not have_several_rows(certificate):
        return ""
    found = certificate.get("together") or {}
    if "in_several" in found:
        return _in_several(found["in_several"], found["people"]) if found["in_several"] else ""
    return gettext(
        "Whoever has several rows may be in several classes, and promises hold for one class at a"
        " time: who knows several rows of somebody may be left with fewer people and values"
    )


def _in_several(count: int, people: int) -> str:
    who = ngettext(
        "{count:,} of {people:,} people has rows in several classes",
        "{count:,} of {people:,} people have rows in several classes",
        count,
        people=people,
    )
    why = gettext(
        "and promises hold for one class at a time: whoever knows several rows of somebody, such as"
        " two stays, may be left with fewer people and values; leave out or coarsen what differs"
        " from row to row, keep only the first row of each person, or publish people and rows as"
        " linked tables, which hide people by all their rows"
    )
    return f"{who}, {why}"


def _all_together(found: Mapping[str, Any], counted: Unit) -> str:
    """What is left of everybody where promises are about some columns each."""
    least, alone, people = (number_text(found[key]) for key in ("min", "alone", "people"))
    counted_as = gettext(counted.of(found["min"]))
    return gettext(
        "By {attributes} together: classes of {least}, {alone}",
        attributes=listed(found["attributes"]),
        least=gettext("at least {least} {people}", least=least, people=counted_as),
        alone=gettext("{alone} of {people} alone", alone=alone, people=people),
    )


def _in_two_tables(certificate: Certificate) -> Iterator[str]:
    hidden = [c["name"] for c in _columns(certificate) if c["role"] == "sensitive"]
    groups = certificate["groups"]
    yield gettext("Who is in the table, and whose row it is, is shown")
    yield gettext(
        "Which row has which {hidden} is not: a second table counts its values in {groups} of"
        " {sizes} records",
        hidden=listed(hidden),
        groups=ngettext("{count:,} group", "{count:,} groups", groups["count"]),
        sizes=span_text(groups),
    )


def _beside(found: BesideReport) -> str:
    """What is left where the other releases that were named are read as well."""
    if found["holds"]:
        withheld = found.get("withheld")
        return gettext(
            "Of the people in other releases that were named, {shown:,} are shown here and stay"
            " hidden by all of them, too{withheld}",
            shown=found["people"],
            withheld=gettext(", and {count:,} are withheld", count=withheld) if withheld else "",
        )
    what = fails_beside(found)
    if is_only_unjudged(found):
        return gettext("Not judged in full with the other releases: {what}", what=what)
    return gettext("Not kept with the other releases: {what}", what=what)


def _alike(certificate: Certificate, promise: Mapping[str, Any], known: Sequence[str]) -> str:
    least, counted = promise["measured"], unit(certificate)
    if least is None:
        return gettext("Every record hides {known}", known=ALL)
    if certificate.get("linked"):
        return gettext(
            "Whoever knows of a person {known}, and no more, finds at least {least} people who fit,"
            " and so picks the right one at most {share} of the time",
            known=known_of_linked(certificate),
            least=number_text(least),
            share=percent_text(1 / least),
        )
    more = [
        column["name"]
        for column in _columns(certificate)
        if column["name"] not in {*known, *certificate.removed}
    ]
    who = gettext("who") if counted.many == "people" else gettext("that")
    return gettext(
        "Whoever knows {known} of {whom}{but} finds a class of at least {least} {people} {who}"
        " look alike, and so picks the right one at most {share} of the time",
        known=listed(known) or ALL,
        whom=gettext("one row of a person")
        if several_classes(certificate)
        else gettext("a person"),
        but=gettext(", but nothing of {more},", more=listed(more)) if more else "",
        least=number_text(least),
        people=gettext(counted.of(least)),
        who=who,
        share=percent_text(1 / least),
    )


def is_of_rows_alike(certificate: Certificate, promise: Mapping[str, Any]) -> bool:
    """Whether a promise is about rows below people, measured among those of a class that show the
    same: a class without such rows shows nothing of them.
    """
    below = tuple(f"{table['name']}." for table in (certificate.get("tables") or ())[1:])
    by_rows = promise["model"] != "holder-share"
    return by_rows and any(name.startswith(below) for name in promise["attributes"])


def _of_sensitive(certificate: Certificate, promise: PromiseReport) -> str:
    about, found = listed(promise["attributes"]), promise["measured"]
    among = gettext("Among them")
    if is_of_rows_alike(certificate, promise):
        among = gettext("Among those of their rows that look alike, where a class has such rows")
    found = promise["asked"] if found is None else found  # which held in every release
    model, kind = promise["model"], promise.get("kind")
    if model == "p-sensitive-k-anonymity" or (model, kind) == ("l-diversity", "distinct"):
        return ngettext(
            "{among}, {about} has at least {found} values",
            "{among}, {about} have at least {found} values each",
            len(promise["attributes"]),
            among=among,
            about=about,
            found=number_text(found),
        )
    if model == CLOSENESS:
        whole = gettext("all records")
        if promise.get("to") == "reference":
            whole = gettext("the reference table")
        said = gettext("{among}, {about} is spread as in {whole}, but for at most {found}")
        return said.format(among=among, about=about, whole=whole, found=percent_text(found))
    if model == "individual-risk":
        return gettext(
            "By the weights of the sample, a list of the whole population names nobody with more"
            " than {found}",
            found=percent_text(found),
        )
    if model == "global-risk":
        return gettext(
            "By the weights of the sample, a list of the whole population names {found} of people"
            " on average{by}",
            found=percent_text(found),
            by=gettext(", or somebody of their household") if promise.get("households") else "",
        )
    of = gettext(" of {about}", about=about) if about else ""
    return gettext("{model}{about} holds as well", model=model, about=of)


def _lost(certificate: Certificate) -> Iterator[str]:
    loss = certificate["utility"].get("gcp")
    linked = certificate.get("linked") or {}
    if linked.get("bundle_loss") is not None:  # what is withheld is lost, too
        loss = linked["bundle_loss"]
    if loss is None:
        yield gettext("How much detail is lost can't be told from the release alone")
    else:
        worst = [f"{name} ({percent_text(lost)})" for name, lost in worst_columns(certificate)]
        most = gettext("; most of {worst}", worst=listed(worst)) if worst else ""
        quasi = [column["name"] for column in _columns(certificate) if column["role"] == "quasi"]
        yield gettext(
            "{loss} of the detail of {quasi}, on average{most}",
            loss=percent_text(loss),
            quasi=listed(quasi) or gettext("the quasi-identifiers"),
            most=most,
        )
    if same := [c["name"] for c in _columns(certificate) if c["technique"] == "as-is"]:
        yield gettext("As in the original: {same}", same=listed(same))
    if hidden := certificate["records"]["suppressed"]:
        yield ngettext(
            "{count:,} record hides {known}", "{count:,} records hide {known}", hidden, known=ALL
        )
    withheld = {one["name"]: one["rows"]["withheld"] for one in certificate.get("tables") or ()}
    if any(withheld.values()):
        rows = [f"{count:,} of {name}" for name, count in withheld.items() if count]
        yield gettext(
            "Left out, as too few people in a class have such rows: {rows}", rows=listed(rows)
        )
    absent = {words: certificate["records"].get(key) for key, words in _NOT_PUBLISHED.items()}
    if kinds := [f"{count:,} {words}" for words, count in absent.items() if count]:
        yield gettext("Not published: {kinds}", kinds=listed(kinds))


_NOT_PUBLISHED = {
    "held": gettext("held to the end"),
    "dropped": gettext("dropped"),
    "rejected": gettext("set aside as bad"),
}
"""What became of other records of a stream."""


def _not_promised(certificate: Certificate) -> Iterator[str]:
    columns, together = _columns(certificate), certificate.get("together")
    if together and together["asked"] and together["below"]:
        yield gettext(
            "Whoever knows {attributes} together may be left with fewer than {asked}",
            attributes=listed(together["attributes"]),
            asked=number_text(together["asked"]),
        )
    promised = {name for p in certificate["promises"] for name in p["attributes"]}
    sensitive = [c["name"] for c in columns if c["role"] == "sensitive"]
    if known := [name for name in sensitive if name in promised]:
        yield gettext("Whoever knows somebody's {known} may find them by it", known=listed(known))
    if free := [name for name in sensitive if name not in promised]:
        yield gettext(
            "No promise was asked for {free}, so it may be learned about a person",
            free=listed(free),
        )
    if plain := [c["name"] for c in columns if c["role"] == "plain"]:
        yield gettext("Published as in the table, and not protected: {plain}", plain=listed(plain))
    if several := several_classes(certificate):
        yield several
    yield gettext(
        "Whoever knows more or has another release of the same people may recognise somebody"
    )
    yield gettext("If everybody in a class shares a value, anyone who finds the class learns it")


def _open(certificate: Certificate) -> Iterator[str]:
    yield from map(capitalised, fault_sentences(certificate))
    counted = unit(certificate)
    if counted.many == "rows":
        yield gettext("Rows were counted, not people: the file does not say whose they are")
    elif certificate.get("people") == ASSUMED:
        yield gettext(
            "Whether every record is a person of its own: the policy names no column for that"
        )
    if waiting := certificate["records"].get("waiting"):
        yield ngettext(
            "{count:,} record still waits for a later release",
            "{count:,} records still wait for a later release",
            waiting,
        )
    if certificate.get("measured") == BY_RELEASE:
        yield gettext("Classes were measured as they appeared, not as they have grown since")
    # grave ones stand above these lines, and what is not promised in the one before
    yield from (capitalised(one.text) for one in certificate.warnings if one.severity != GRAVE)
    if "uncovered" not in (certificate.get("faults") or {}):
        yield gettext("The cells were not compared with an original")
    if certificate["verb"] != "audit":
        yield gettext(
            "Whether an attacker could know more than the policy says is its author's judgement"
        )


def _columns(certificate: Certificate) -> list[ColumnReport]:
    return certificate.get("columns") or []


def _sentences(texts: Iterator[str]) -> str:
    return " ".join(f"{text.rstrip('.')}." for text in texts)


# A ledger in the five lines of `in_short`: its published table, and what comparing tells.


# checks of how many share the classes of several releases
SHARED_CELLS = ("cells", "all cells", "atoms")


def ledger_in_short(found: LedgerAudit) -> list[Line]:
    """The five lines of all releases; none where nothing was measured."""
    if not found.releases:
        return []
    more = {
        gettext("Published"): ngettext(
            "Published in {count} release.", "Published in {count} releases.", len(found.releases)
        ),
        gettext("Not promised"): _left_among_few(found.releases),
    }
    if any(release.violations for release in found.releases):
        together = gettext("Not kept: the releases together reveal more than each by itself.")
        more[gettext("Protected")] = together
    elif found.knows_people and len(found.releases) > 1:
        together = gettext("Every check of the releases against one another holds.")
        more[gettext("Protected")] = together
    if not found.knows_people:
        more[gettext("Open")] = gettext(
            "The private part was missing, so the releases were compared by their boxes alone,"
            " as an attacker would."
        )
    return [
        Line(line.about, f"{line.says} {more[line.about]}" if more.get(line.about) else line.says)
        for line in in_short(published_table(found.releases))
    ]


def published_table(releases: Sequence[ReleaseAudit]) -> Certificate:
    """The table that is published as of the last release, under the worst of every promise.

    It is the last whole table, and every increment since.
    """
    whole = [i for i, release in enumerate(releases) if release.certificate["covers"] == "table"]
    parts = [release.certificate for release in releases[whole[-1] if whole else 0 :]]
    last = parts[-1]
    panel = last.get("panel")
    records = {
        key: sum(part["records"][key] for part in parts)
        for key in ("out", "suppressed", "withheld")
    }
    warnings = {w.text: w.report() for r in releases for w in r.certificate.warnings}
    return last.extended(
        records=records | {"in": None},
        # people who come again count once
        subjects=sum(p["subjects"] for p in parts) if panel is None else int(panel["people"]),
        promises=[
            _worst([release.certificate["promises"][i] for release in releases])
            for i in range(len(last["promises"]))
        ],
        together=None,
        utility=last["utility"] | {"gcp": _mean(parts, [p["utility"]["gcp"] for p in parts])},
        columns=_ledger_columns(parts),
        warnings=list(warnings.values()),
    )


def _worst(promises: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    """One promise in all releases: where it fails, else where least is left of it."""
    broken = [promise for promise in promises if not promise["holds"]]
    known = [promise for promise in promises if promise["measured"] is not None]
    if broken or not known:
        return (broken or promises)[0]
    choose = min if registry.models()[known[0]["model"]].higher_is_better else max
    return choose(known, key=lambda promise: promise["measured"])


def _ledger_columns(parts: Sequence[Certificate]) -> list[ColumnReport]:
    """The columns of the last part, with their losses over all."""
    losses = [{c["name"]: c["loss"] for c in part.get("columns") or []} for part in parts]
    return [
        column | {"loss": _mean(parts, [mine.get(column["name"]) for mine in losses])}
        for column in parts[-1].get("columns") or []
    ]


def _mean(parts: Sequence[Certificate], numbers: Sequence[float | None]) -> float | None:
    """The mean over records; None where one part has none."""
    weights = [part["records"]["out"] for part in parts]
    known = [number for number in numbers if number is not None]
    if len(known) < len(parts) or not sum(weights):
        return None
    return sum(w * n for w, n in zip(weights, known, strict=True)) / sum(weights)


def _left_among_few(releases: Sequence[ReleaseAudit]) -> str:
    """What methods that guard signatures leave open: who shares a whole history of classes."""
    few = [
        finding.people or 0
        for release in releases
        for finding in release.findings
        if finding.check in SHARED_CELLS and not finding.is_violation
    ]
    if not any(few):
        return ""
    most, counted = max(few), unit(releases[-1].certificate)
    return gettext(
        "Whoever compares the releases leaves {most} {people} in a class that is smaller"
        " than was asked.",
        most=number_text(most),
        people=gettext(counted.of(most)),
    )
