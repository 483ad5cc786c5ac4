"""What was found, in sentences for people: summaries on the command line, lines of a report."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from shoal.data.certificate import Certificate
from shoal.data.fault_words import fault_sentences
from shoal.data.people import span_text, unit
from shoal.data.printable import printable_lines

if TYPE_CHECKING:
    from shoal.auditor.ledger.history import LedgerAudit, ReleaseAudit
    from shoal.ledgers.what_if import Prospect, Rehearsal


def summary(certificate: Certificate, written: str | None = None) -> str:
    """Promises asked and measured, classes and loss. written: the files, where there are any."""
    classes, records = certificate["classes"], certificate["records"]
    lines = []
    if written:
        lines.append(f"wrote {written}")
    for promise in certificate["promises"]:
        over = f" over {', '.join(promise['attributes'])}" if promise["attributes"] else ""
        over += " to the reference" if promise.get("to") == "reference" else ""
        verdict = "holds" if promise["holds"] else "DOES NOT HOLD"
        found = f"measured {_number(promise['measured'])}"
        if promise["measured"] is None and _is_by_release(certificate):
            found = "checked in each release"
        lines.append(f"{promise['model']}{over}: asked {promise['asked']}, {found}: {verdict}")
    many = f"{records['out']} records, {records['suppressed']} suppressed"
    if records.get("withheld"):
        many += f", {records['withheld']} of these withheld"
    groups = certificate.get("groups")
    if groups:
        lines.append(
            f"two tables, {_groups(groups)} of {span_text(groups)} records;"
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
    return printable_lines(lines)


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
        lines += [f"  {sentence}" for sentence in history_sentences(release)]
    if not found.knows_people:
        lines.append(
            "the private part is not there: rows were counted, and releases compared only by their"
            " boxes"
        )
    if not found.damage:
        lines.append("history: holds" if found.holds else "history: DOES NOT HOLD")
    return printable_lines(lines)


def history_sentences(release: ReleaseAudit) -> list[str]:
    """Everything by which a release breaks the history, in a sentence each."""
    return [str(finding) for finding in release.violations]


def prospect_text(prospects: Sequence[Prospect]) -> str:
    """A line for each method, and what stands against its release below it."""
    heads = ("method", "outcome", "records", "classes", "gcp", "CPU s", "waiting")
    lines = [_prospect_line(*heads)]
    for prospect in prospects:
        lines.append(
            _prospect_line(
                prospect.method, prospect.outcome, *_figures(prospect), str(prospect.waiting)
            )
        )
        lines += [f"    {obstacle}" for obstacle in prospect.told]
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


def _prospect_line(
    method: str, outcome: str, records: str, classes: str, loss: str, seconds: str, waiting: str
) -> str:
    return f"{method:14}{outcome:11}{records:>9}{classes:>9}{loss:>9}{seconds:>8}{waiting:>9}"


def rehearsal_text(rehearsals: Sequence[Rehearsal]) -> str:
    """A line for each setting of `sticky`."""
    lines = [_rehearsal_line("over time", "mode", "size", "patience", "published", "served", "gcp")]
    for found in rehearsals:
        row = found.report()
        lines.append(
            _rehearsal_line(
                row["over_time"],
                found.mode,
                f"{found.size}",
                "" if found.patience is None else f"{found.patience}",
                f"{100 * found.share:.0f} %",
                f"{100 * found.served:.0f} %",
                "" if found.gcp is None else f"{100 * found.gcp:.2f} %",
            )
        )
    return printable_lines(lines) + "\n"


def _rehearsal_line(
    over_time: str, mode: str, size: str, patience: str, published: str, served: str, gcp: str
) -> str:
    figures = f"{size:>6}{patience:>10}{published:>11}{served:>8}{gcp:>9}"
    return f"{over_time:11}{mode:10}{figures}".rstrip()


def fusion_summary(certificate: Certificate, written: str) -> str:
    """The summary of any release; then rounds, bytes, time, and what each party learned."""
    measured = certificate["fusion"]
    sent = ", ".join(f"{kind} {size:,}" for kind, size in measured["bytes"].items())
    spent = ", ".join(f"{phase} {seconds:.2f}" for phase, seconds in measured["seconds"].items())
    lines = [
        *(
            f"over {', '.join(qid['attributes'])}: {_groups(qid['groups'])} of"
            f" {span_text(qid['groups'])} people"
            for qid in measured["qids"]
        ),
    ]
    lines += [
        (
            f"{measured['people']} people in common, {measured['rounds']} rounds,"
            f" {measured['steps']} specializations"
        ),
        *_of_ledger(measured.get("ledger")),
        f"bytes that {measured['party']} sent: {sent or 'none'}",
        f"seconds: {spent}",
    ]
    if measured["colluding_parties"] is not None:
        lines.append(
            f"bids stay hidden unless {measured['colluding_parties'] + 1} parties combine their"
            " views"
        )
    for party, facts in measured["learned"].items():
        lines += [f"{party} learned:", *(f"  {fact}" for fact in facts)]
    return f"{summary(certificate, written)}\n{printable_lines(lines)}"


def _of_ledger(ledger: dict[str, Any] | None) -> list[str]:
    """How a fusion fits the earlier ones, and what the next agreement has to say."""
    if ledger is None:
        return []
    return [
        f"fusion {ledger['fusions']} of these owners, {ledger['withheld']} people withheld; the"
        f" next agreement says before: {ledger['now']}"
    ]


def downstream_sentences(measured: dict[str, Any]) -> list[str]:
    """What classifiers and counts lose on a release, in sentences."""
    lines = []
    if "models" in measured:
        lines.append(
            f"predicting '{measured['label']}' of {measured['tested']} original records, wrong"
            f" answers: {100 * measured['majority']:.2f} % by the most frequent answer"
        )
        lines += [
            f"  {name}: {100 * errors['original']:.2f} % trained on the original, "
            f"{100 * errors['released']:.2f} % trained on the release"
            for name, errors in measured["models"].items()
        ]
    median, mean = (100 * measured["query_error"][key] for key in ("median", "mean"))
    return [
        *lines,
        f"counts over random ranges: off by {median:.1f} % (median), {mean:.1f} % (mean)",
    ]


def explanation_sentences(measured: dict[str, Any]) -> Iterator[str]:
    """Why a global recoding is as coarse as it is, in sentences."""
    why = measured["suppressed"]
    if why is not None:
        yield (
            f"{why['records']} records are suppressed. With nothing suppressed, records in classes"
            " that break"
        )
        yield from (f"  {promise}: {count}" for promise, count in why["promises"].items())
        yield "of them would stay if this column were one level higher, or left out:"
        yield from (
            f"  {c['attribute']}: {c['one_level_higher']}, {c['left_out']}" for c in why["columns"]
        )
    for column in measured["generalized"]:
        broken = ", ".join(
            f"{promise} for {count} records"
            for promise, count in column["promises"].items()
            if count
        )
        yield (
            f"'{column['attribute']}' is fully generalized; one level lower breaks"
            f" {broken or 'no promise'}"
        )
    for step in measured["looser"]:
        yield (
            f"'{step['attribute']}' one level higher suppresses {step['suppressed']}; score"
            f" {step['score']:.4g}"
        )
    for near in measured.get("neighbours", ()):
        if near["step"] > 0:
            continue
        breaking = near["breaking"]
        yield (
            f"'{near['attribute']}' one level lower:"
            + (
                f" safe, loses {100 * near['loss']:.1f} %"
                if near["is_safe"]
                else f" {breaking} records would break a promise, more than may be suppressed"
            )
        )
    if not measured["cheaper"]:
        yield "nothing cheaper was found: not a k or l lower by one, and no column left out"
    for change in measured["cheaper"]:
        yield f"cheaper: {change['setting']} {_saving(change, change['now'])}"


def _saving(change: dict[str, Any], now: dict[str, Any]) -> str:
    """What a cheaper setting suppresses and scores, where that is not as it is now."""
    changes = []
    if change["suppressed"] != now["suppressed"]:
        changes.append(f"suppresses {change['suppressed']} instead of {now['suppressed']}")
    if None not in (change["score"], now["score"]) and change["score"] != now["score"]:
        changes.append(f"scores {change['score']:.4g} instead of {now['score']:.4g}")
    return " and ".join(changes)


def _number(value: float | None) -> str:
    return "nothing (no class)" if value is None else f"{value:.6g}"


def _groups(groups: Mapping[str, Any]) -> str:
    return "1 group" if groups["count"] == 1 else f"{groups['count']} groups"
