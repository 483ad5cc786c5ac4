"""What was found, in sentences for people: summaries on the command line, lines of a report."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from shoal.data.certificate import Certificate
from shoal.data.certificate_shape import span_text, unit
from shoal.data.language import gettext, printable_lines
from shoal.data.warnings import fault_sentences, unpublished, with_grave
from shoal.errors import UNREADABLE, InputError

if TYPE_CHECKING:
    from shoal.auditor.ledger.history import LedgerAudit
    from shoal.ledgers.what_if import Prospect, Rehearsal


OF_SAMPLE = ("global-risk", "individual-risk")


def summary(certificate: Certificate, written: str | None = None) -> str:
    """Promises asked and measured, classes and loss. written: the files, where there are any."""
    classes, records = certificate["classes"], certificate["records"]
    lines = [f"wrote {written}"] if written else []
    lines += promise_lines(certificate)
    many = f"{records['out']} records, {records['suppressed']} suppressed"
    if records.get("withheld"):
        many += f", {records['withheld']} of these withheld"
    if left_out := unpublished(records):
        many += f", {left_out}"
    if groups := certificate.get("groups"):
        lines.append(
            f"two tables, {counted_text(groups['count'], 'group')} of {span_text(groups)} records;"
            " quasi-identifiers as they are: who is in the table is disclosed"
        )
    if classes["count"]:
        span = f"{span_text(classes)} {unit(certificate).first_of(classes['max'])}"
        lines.append(
            f"{classes['count']} class{'es' if classes['count'] > 1 else ''} of {span}, {many}"
        )
    elif _is_by_release(certificate):
        least = f"{classes['min']} {unit(certificate).first_of(classes['min'])}"
        lines.append(f"classes of at least {least}, measured release by release, {many}")
    else:
        lines.append(f"no class: {many}")
    lines += _risk_lines(certificate)
    if starred := certificate.get("starred"):
        counts = ", ".join(f"{name} {records:,}" for name, records in starred.items())
        lines.append(f"single cells suppressed: {counts}")
    for name, gap in certificate.get("plan", {}).get("uncovered", {}).items():
        lines.append(
            f"the plan does not cover {gap['values']} value{'s' if gap['values'] > 1 else ''} of"
            f" '{name}': {gap['records']} records suppressed"
        )
    lines.append(f"information loss (gcp) {_loss_text(certificate)}")
    if certificate["utility"].get("query_error") is not None:
        error = certificate["utility"]["query_error"]
        lines.append(f"mean relative error of counts by sensitive value {100 * error:.1f} %")
    lines += _panel_lines(certificate.get("panel"))
    lines += [f"{sentence}: DOES NOT HOLD" for sentence in fault_sentences(certificate)]
    if any(2 * count > records["out"] for count in certificate.get("faults", {}).values()):
        lines.append(
            "most records differ: was the release made of that table, in that order? a stream needs"
            " its --trace"
        )
    if certificate.grave:
        lines.append(with_grave(certificate.verdict[0], len(certificate.grave)))
    return printable_lines(lines)


def promise_lines(certificate: Certificate) -> Iterator[str]:
    """What was asked and measured of every promise, and whether it holds."""
    for promise in certificate["promises"]:
        over = f" over {', '.join(promise['attributes'])}" if promise["attributes"] else ""
        over += " to the reference" if promise.get("to") == "reference" else ""
        found = "not measured" if promise["holds"] is None else "measured nothing (no class)"
        if promise["measured"] is not None:
            found = f"measured {promise['measured']:.6g}"
            if (without := promise.get("measured_without_missing")) is not None:
                found += f" ({without:.6g} if a missing value is not counted)"
        elif _is_by_release(certificate):
            found = "checked in each release"
        over += " with households" if promise.get("households") else ""
        over += f" by {promise['estimator']}" if promise.get("estimator") else ""
        asked = f"{promise['model']}{over}: asked {promise['asked']}"
        yield f"{asked}, {found}: {_verdict(promise['holds'])}"


def _risk_lines(certificate: Certificate) -> Iterator[str]:
    """The risks by the weights of a sample, where no promise states them."""
    risks = certificate.get("individual_risk")
    if risks is None or any(p["model"] in OF_SAMPLE for p in certificate["promises"]):
        return
    for key, who in (("own", "each person"), ("household", "with the household")):
        if key in risks:
            mean, most = risks[key]["mean"], risks[key]["max"]
            yield f"risk by the weights, {who}: {mean:.6g} on average, at most {most:.6g}"


def _is_by_release(certificate: Certificate) -> bool:
    """Whether a stream's classes were measured as they left, and not counted at the end."""
    classes = certificate["classes"]
    return classes["count"] is None and classes["min"] is not None


def _panel_lines(panel: Mapping[str, Any] | None) -> list[str]:
    """What became of people who come again; the records that wait are reported elsewhere."""
    if panel is None:
        return []
    counted = (
        ("rounds", "groups are published again"),
        ("founded", "groups of newcomers"),
        ("carried", "records are carried for people who are absent"),
        ("withheld", "records are left out: nothing can show them safely"),
    )
    return [f"{panel[key]} {words}" for key, words in counted if panel[key]]


MOST_NAMED = 3


def alone_if_known(certificate: Certificate) -> dict[str, int]:
    """The columns that no promise covers, and how many people are alone if one is known."""
    found = {c["name"]: c.get("alone_if_known") for c in certificate.get("columns") or []}
    return {name: count for name, count in found.items() if count is not None}


def worst_columns(certificate: Certificate) -> list[tuple[str, float]]:
    """The columns that lose more than the mean, worst first, with their losses; at most three."""
    losses = [
        (str(column["name"]), float(column["loss"]))
        for column in certificate.get("columns") or []
        if column.get("loss") is not None
    ]
    if not losses:
        return []
    mean = sum(loss for _, loss in losses) / len(losses)
    above = [one for one in losses if one[1] > mean * (1 + 1e-9)]
    return sorted(above, key=lambda one: -one[1])[:MOST_NAMED]


def _loss_text(certificate: Certificate) -> str:
    """The mean loss and where most of it lies."""
    loss = certificate["utility"]["gcp"]
    if not certificate["records"]["out"]:
        return "can't be measured: no row was published"
    if loss is None and certificate.get("policy", {}) is None:
        return "can't be measured without a policy, which says what cells stand for"
    if loss is None:
        return f"can't be measured on the release alone{_unmeasured(certificate)}; give --original"
    worst = ", ".join(f"{name} {100 * lost:.1f} %" for name, lost in worst_columns(certificate))
    return f"{100 * loss:.2f} %" + (f", most in {worst}" if worst else "")


def _unmeasured(certificate: Certificate) -> str:
    """Why it is not known how wide cells are, by column."""
    of_column = {
        str(column["name"]): _HIDDEN.get(str(column["technique"]), _MADE)
        for column in certificate.get("columns") or []
        if column["role"] == "quasi" and column.get("loss") is None
    }
    reasons = [
        f"{', '.join(name for name, mine in of_column.items() if mine == reason)}: {reason}"
        for reason in dict.fromkeys(of_column.values())
    ]
    return f" ({'; '.join(reasons)})" if reasons else ""


_MADE = "how wide its cells are depends on values of the original"
_HIDDEN = {
    "mean": "means hide their ranges",
    "median": "medians hide their ranges",
    "mode": "modes hide what they stand for",
    "interval": "no 'domain' is declared",
    "mean-and-interval": "no 'domain' is declared",
}


def history_summary(found: LedgerAudit) -> str:
    """What the audit of a ledger found, a line for each release and each finding."""
    lines = [f"{finding}: DOES NOT HOLD" for finding in found.damage]
    for release in found.releases:
        broken = [
            promise["model"] for promise in release.certificate["promises"] if not promise["holds"]
        ]
        loss = release.certificate["utility"]["gcp"]
        lines.append(
            f"release {release.number:04d}: {release.certificate['records']['out']} records, "
            f"{release.certificate['classes']['count']} classes, "
            + (f"gcp {100 * loss:.2f} %, " if loss is not None else "")
            + (f"{', '.join(broken)} DOES NOT HOLD" if broken else "all promises hold")
        )
        lines += [f"  {finding}" for finding in release.violations]
    if not found.knows_people:
        lines.append(
            "the private part is not there: rows were counted, and releases compared only by their"
            " boxes; who is in which class of several releases was not judged"
        )
    if not found.damage:
        is_partly = found.holds and not found.knows_people
        limit = " as far as the published files show" if is_partly else ""
        lines.append(f"history: {_verdict(found.holds)}{limit}")
    return printable_lines(lines)


PROSPECT = "{:14}{:11}{:>9}{:>9}{:>9}{:>8}{:>9}"
REHEARSAL = "{:11}{:10}{:>6}{:>10}{:>11}{:>8}{:>9}"


def prospect_text(prospects: Sequence[Prospect]) -> str:
    """A line for each method, and what stands against its release below it."""
    heads = ("method", "outcome", "records", "classes", "gcp", "CPU s", "waiting")
    lines = [PROSPECT.format(*heads)]
    for one in prospects:
        lines.append(PROSPECT.format(one.method, one.outcome, *_figures(one), one.waiting))
        lines += [f"    {obstacle}" for obstacle in one.told]
    return printable_lines(lines) + "\n"


def _figures(prospect: Prospect) -> tuple[str, str, str, str]:
    """Records, classes, loss and CPU seconds of a release; blank where there would be none."""
    certificate = prospect.certificate
    if certificate is None:
        return "", "", "", ""
    gcp = certificate["utility"]["gcp"]
    return (
        f"{certificate['records']['out']}",
        f"{certificate['classes']['count']}",
        "" if gcp is None else f"{100 * gcp:.2f} %",
        f"{certificate['seconds']['method']:.2f}",
    )


def rehearsal_text(rehearsals: Sequence[Rehearsal]) -> str:
    """A line for each setting of `sticky`."""
    heads = ("over time", "mode", "size", "patience", "published", "served", "gcp")
    lines = [REHEARSAL.format(*heads).rstrip()]
    for found in rehearsals:
        row = (
            *(found.report()["over_time"], found.mode, found.size),
            "" if found.patience is None else found.patience,
            *(f"{100 * share:.0f} %" for share in (found.share, found.served)),
            "" if found.gcp is None else f"{100 * found.gcp:.2f} %",
        )
        lines.append(REHEARSAL.format(*row).rstrip())
    return printable_lines(lines) + "\n"


def fusion_summary(certificate: Certificate, written: str) -> str:
    """The summary of any release; then rounds, bytes, time, and what each party learned."""
    measured = certificate["fusion"]
    sent = ", ".join(f"{kind} {size:,}" for kind, size in measured["bytes"].items())
    spent = ", ".join(f"{phase} {seconds:.2f}" for phase, seconds in measured["seconds"].items())
    lines = [
        f"over {', '.join(qid['attributes'])}:"
        f" {counted_text(qid['groups']['count'], 'class', 'classes')} of"
        f" {span_text(qid['groups'])} people"
        for qid in measured["qids"]
    ]
    lines.append(
        f"{measured['people']} people in common, {measured['rounds']} rounds,"
        f" {measured['steps']} specializations"
    )
    ledger = measured.get("ledger")
    if ledger is not None:
        lines.append(
            f"fusion {ledger['fusions']} of these owners, {ledger['withheld']} people withheld; the"
            f" next agreement says before: {ledger['now']}"
        )
    lines += [f"bytes that {measured['party']} sent: {sent or 'none'}", f"seconds: {spent}"]
    if measured["colluding_parties"] is not None:
        lines.append(
            f"bids stay hidden unless {measured['colluding_parties'] + 1} parties combine their"
            " views"
        )
    for party, facts in measured["learned"].items():
        lines += [f"{party} learned:", *(f"  {fact}" for fact in facts)]
    return f"{summary(certificate, written)}\n{printable_lines(lines)}"


def downstream_sentences(measured: Mapping[str, Any]) -> list[str]:
    """What classifiers and counts lose on a release, in sentences.

    Raises InputError where a certificate states what is not measured so.
    """
    try:
        return [*_downstream(measured)]
    except UNREADABLE:
        raise InputError(
            "certificate: 'downstream' says what this version does not measure; fetch it again"
        ) from None


def _downstream(measured: Mapping[str, Any]) -> Iterator[str]:
    if "models" in measured:
        yield gettext(
            "predicting '{label}' of {tested} original records, wrong answers: {share:.2f} %"
            " by the most frequent answer",
            **measured,
            share=100 * measured["majority"],
        )
        for name, errors in measured["models"].items():
            yield gettext(
                "  {name}: {original:.2f} % trained on the original, {released:.2f} % trained on"
                " the release",
                name=name,
                original=100 * errors["original"],
                released=100 * errors["released"],
            )
    median, mean = (100 * measured["query_error"][key] for key in ("median", "mean"))
    said = gettext("counts over random ranges: off by {median:.1f} % (median), {mean:.1f} % (mean)")
    yield said.format(median=median, mean=mean)


def explanation_sentences(measured: Mapping[str, Any]) -> Iterator[str]:
    """Why a global recoding is as coarse as it is, in sentences."""
    why = measured["suppressed"]
    if why is not None:
        yield gettext(
            "{records} records are suppressed. With nothing suppressed, records in classes that"
            " break",
            **why,
        )
        yield from (f"  {promise}: {count}" for promise, count in why["promises"].items())
        yield gettext("of them would stay if this column were one level higher, or left out:")
        yield from (
            f"  {c['attribute']}: {c['one_level_higher']}, {c['left_out']}" for c in why["columns"]
        )
    for column in measured["generalized"]:
        broken = ", ".join(
            gettext("{promise} for {count} records", promise=promise, count=count)
            for promise, count in column["promises"].items()
            if count
        )
        yield gettext(
            "'{attribute}' is fully generalized; one level lower breaks {broken}",
            attribute=column["attribute"],
            broken=broken or gettext("no promise"),
        )
    for step in measured["looser"]:
        yield gettext(
            "'{attribute}' one level higher suppresses {suppressed}; score {score:.4g}", **step
        )
    for near in measured.get("neighbours", ()):
        if near["step"] > 0:
            continue
        found = gettext(
            " {breaking} records would break a promise, more than may be suppressed", **near
        )
        if near["is_safe"]:
            found = gettext(" safe, loses {loss:.1f} %", loss=100 * near["loss"])
        yield gettext("'{attribute}' one level lower:", **near) + found
    if not measured["cheaper"]:
        yield gettext(
            "nothing cheaper was found: not a k or l lower by one, and no column left out"
        )
    for change in measured["cheaper"]:
        yield gettext(
            "cheaper: {setting} {change}", setting=change["setting"], change=_saving(change)
        )


def _saving(change: Mapping[str, Any]) -> str:
    """What a cheaper setting suppresses and scores, where that is not as it is now."""
    now = change["now"]
    words = {
        "suppressed": gettext("suppresses {suppressed} instead of {now}"),
        "score": gettext("scores {score:.4g} instead of {now:.4g}"),
    }
    return gettext(" and ").join(
        text.format(**{**change, "now": now[key]})
        for key, text in words.items()
        if None not in (change[key], now[key]) and change[key] != now[key]
    )


def counted_text(number: int, one: str, many: str = "") -> str:
    """A number of things, such as "1 row" or "1,200 rows"; many: where an s does not make it."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def table_lines(rows: Sequence[Sequence[str]], left: int) -> list[str]:
    """Lines of even columns. left: how many of them are texts, the others numbers."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return [
        "  ".join(
            cell.ljust(width) if i < left else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


# What measures of utility mean, in tables and reports.


MEASURES = {
    "gcp": gettext(
        "Global certainty penalty: how much of its attribute's domain a published cell"
        " leaves open, on average. 0 % is the original, 100 % is nothing."
    ),
    "generalized_loss": gettext(
        "gcp, against the range that occurs in the release instead of the declared domain."
    ),
    "average_class_size": gettext(
        "Mean class size, divided by the k asked for. 1 is the best possible."
    ),
    "discernibility": gettext(
        "Every record counts the records that can't be distinguished from it; a suppressed"
        " one counts the whole table."
    ),
    "classification": gettext(
        "Records that don't have the most frequent value of their class in the column to be"
        " predicted: the policy's label, or else its only sensitive category."
    ),
    "squared_error": gettext(
        "Sum of squares that is lost when every numeric quasi-identifier is replaced by the"
        " mean of its class."
    ),
}


# What several releases give away together, in sentences.


WORDS = {
    "presence": "an attacker who knows in which releases a person is",
    "own": "an attacker who knows that a person was published, and what others are like",
}


def beside_lines(found: Mapping[str, Any]) -> Iterator[str]:
    """How few people and values remain over all releases, then by pair of them."""
    from shoal.auditor.verdict import unjudged_together

    kinds = ", ".join(
        f"{number} is a {release['kind']}" for number, release in enumerate(found["releases"], 1)
    )
    yield f"releases together ({kinds}), for {WORDS[found['attacker']]}:"
    for number, release in enumerate(found["releases"], 1):
        if not release["holds"]:
            yield f"  release {number}: DOES NOT HOLD even alone"
    if not found["people"]:
        yield "  nobody is in two of them, by the names of their subjects"
        return
    yield f"  {_remaining(found, found['k'])}: {_verdict(not found['below_k'])}"
    for row in found["attributes"]:
        yield f"  {_values(row)}"
    yield from (f"  {text}" for text in unjudged_together(found))
    for pair in found["pairs"]:
        one, other = pair["releases"]
        yield f"  releases {one} and {other} alone: {_remaining(pair, found['k'])}"


def guard_lines(found: Mapping[str, Any]) -> Iterator[str]:
    """What was done to publish beside releases that are out."""
    kinds = ", ".join(f"a {release['kind']}" for release in found["releases"])
    known = "" if found["attacker"] == "presence" else f", for {WORDS[found['attacker']]}"
    yield f"beside {kinds}{known}: {_remaining(found, found['k'])}: {_verdict(found['holds'])}"
    yield f"  {_people(found['withheld'])} withheld, {found['newcomers']:,} in none of the others"


def _remaining(row: Mapping[str, Any], k: int) -> str:
    people = f"{_people(row['people'])} in several"
    if not row["people"]:
        return people
    return (
        f"{people}: {row['below_k']:,} left among fewer than {k}, {row['alone']:,} of these alone;"
        f" the least are {row['least']:,}"
    )


def _values(row: Mapping[str, Any]) -> str:
    name = " = ".join(dict.fromkeys(row["names"]))
    text = f"{name}: certain for {row['certain']:,} of {_people(row['people'])}"
    if row["asked"] is not None:
        below = row["below"]
        text += f", fewer than {row['asked']} values for {below:,}: {_verdict(not below)}"
    if row["none"]:
        text += (
            f"; for {row['none']:,} no value in common: they have several records, or it changed"
        )
    return text


def _people(count: int) -> str:
    return counted_text(count, "person", "people")


def _verdict(holds: bool | None) -> str:
    return "holds" if holds else "open" if holds is None else "DOES NOT HOLD"
