"""The dossier of a release as a page that prints on A4; shows no value of the data."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from shoal.auditor.dossier.dossier import OPEN, Dossier, build_dossier
from shoal.connectors import files
from shoal.connectors.outputs import remove_stale_signature
from shoal.data.certificate import Certificate
from shoal.data.printable import printable
from shoal.data.progress import Progress, no_progress
from shoal.policy.policy import PolicyLike
from shoal.reports import pages
from shoal.reports.attacks import attack_section

JSON = ".json"

ANSWERS = {
    "controller": "Controller",
    "purpose": "Purpose",
    "legal_basis": "Legal basis",
    "recipient": "Recipient",
    "conditions": "Conditions",
    "controls": "Controls",
    "transparency": "What the people concerned are told",
    "harms": "Possible harms",
    "minimisation": "Why not less",
    "other_releases": "Other releases",
    "utility": "Utility",
    "incident": "Incidents",
    "expert": "Expert",
    "grade": "Grade (GB/T 42460)",
    "review_by": "Review by",
    "review_triggers": "Reviewed earlier if",
}
RISKS = {
    "alone": "People whom nobody else looks like",
    "mean": "Chance to find a person, on average",
    "max": "Chance to find a person, at most",
}


def dossier(
    released: str | Path,
    certificate: str | Path | None = None,
    *,
    context: str | Path | dict[str, Any],
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
    trace: as of `shoal.verify`. profiles: by name; all by default. trust: public keys. Raises
    PromiseError where the file fails `verify`, and InputError.
    """
    found = build_dossier(
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
    if output is not None:
        write_dossier(found, Path(output))
    return found


def json_path(page: Path) -> Path:
    """Where the same is written as JSON."""
    return page.with_suffix(JSON)


def write_dossier(found: Dossier, path: Path) -> None:
    """The page, and the same as JSON beside it; each whole or not at all."""
    page = pages.render_template("dossier.html.j2", _content(found))
    with files.atomic_write(str(json_path(path))) as draft:
        draft.write_text(found.to_json(), encoding="utf-8")
    remove_stale_signature(json_path(path))
    pages.write_page(page, path)


def open_fields(found: Dossier) -> dict[str, dict[str, Any]]:
    """What is open, field by field: what it lacks, and the clauses that ask for it."""
    fields: dict[str, dict[str, Any]] = {}
    for clause in found.open:
        field = fields.setdefault(clause["field"], {"lacks": clause["lacks"], "clauses": []})
        field["clauses"].append(f"{clause['profile']} {clause['clause']}")
    return fields


def summary(found: Dossier) -> Iterator[str]:
    """The dossier in lines for a terminal."""
    clauses, still = found.content["clauses"], open_fields(found)
    answered = len(clauses) - len(found.open)
    asked = f"{answered} of {len(clauses)} answers that the clauses ask for are there"
    yield f"{asked}; {'1 thing is' if len(still) == 1 else f'{len(still)} things are'} open"
    for name, field in still.items():
        yield f"open  {name}: {printable(field['lacks'])} ({'; '.join(field['clauses'])})"


def _content(found: Dossier) -> dict[str, Any]:
    content = found.content
    return {
        "dossier": content,
        "certificate": content["certificate"],
        "checks": found.checks,
        "sentences": list(_sentences(found)),
        "risks": list(_risks(content)),
        "columns": list(_columns(content)),
        "answers": list(_answers(content["context"], {c["field"] for c in content["clauses"]})),
        "sign_off": content["context"]["sign_off"],
        "profiles": list(_profiles(found)),
        "open": open_fields(found),
        "verdict": _verdict(found),
        **attack_section(Certificate(content["certificate"]), always=True),
    }


def _verdict(found: Dossier) -> str:
    """The colour of the box: red for a risk above what is accepted or a rejection, amber while
    something is open.
    """
    limits = found.content["threshold"]
    is_above = any(limits[name]["within"] is False for name in ("max", "mean"))
    is_rejected = any(one["decision"] == "reject" for one in found.content["context"]["sign_off"])
    if is_above or is_rejected:
        return "broken"
    return "partly" if found.open else "holds"


def _sentences(found: Dossier) -> Iterator[str]:
    """What somebody needs who reads nothing else."""
    content, records = found.content, found.content["certificate"].get("records") or {}
    promises = content["certificate"].get("promises") or []
    yield f"Published: {content['released']['name']}, {_number(records.get('out'))} records."
    kept = ", ".join(f"{p['model']} {_number(p['asked'])}" for p in promises)
    yield f"Kept, measured on the published file: {kept}."
    before, after = content["initial_risk"], content["residual_risk"]
    if before is not None:
        yield (
            f"Chance to find a person, at most: {share(before['max'])} in the original,"
            f" {share(after['max'])} in the release."
        )
    else:
        yield f"Chance to find a person, at most: {share(after['max'])} in the release."
    for name, words in (("max", "at most"), ("mean", "on average")):
        limit = content["threshold"][name]
        if limit["within"] is not None:
            is_within = "within" if limit["within"] else "above"
            yield (
                f"Accepted {words}: {share(limit['accepted'])};"
                f" the release is {is_within} that, with {share(limit['residual'])}."
            )
    still = len(open_fields(found))
    yield f"Open: {still} things, listed below." if still else "Open: nothing that was asked for."


def _risks(content: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    before, after = content["initial_risk"] or {}, content["residual_risk"]
    for name, words in RISKS.items():
        limit = content["threshold"].get(name) or {}
        yield {
            "words": words,
            "before": share(before.get(name)),
            "after": share(after[name]),
            "accepted": share(limit.get("accepted")),
            "within": limit.get("within"),
        }


def _columns(content: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The columns of the certificate with what the context says of them, or what it alone says."""
    rated = content["context"]["attributes"]
    listed = content["certificate"].get("columns") or [{"name": name} for name in rated]
    for column in listed:
        rating = rated.get(column["name"], {})
        yield {
            "name": column["name"],
            "role": column.get("role") or "–",
            "technique": column.get("technique") or "–",
            "loss": share(column.get("loss")),
            **{
                key: rating.get(key) or "–"
                for key in ("replicable", "available", "distinguishing", "why")
            },
        }


def _answers(
    context: Mapping[str, Any], asked: set[str]
) -> Iterator[tuple[str, list[tuple[str, str]]]]:
    """Answers of the context as pairs of what and how, but for empty ones that nobody asks for."""
    for key, title in ANSWERS.items():
        value = context[key]
        parts = value.values() if isinstance(value, Mapping) else [value]
        if key not in asked and not any(parts):
            continue
        if isinstance(value, Mapping):
            yield title, [(k.replace("_", " "), _text(v)) for k, v in value.items()]
        else:
            yield title, [("", _text(value))]


def _profiles(found: Dossier) -> Iterator[dict[str, Any]]:
    states = {(c["profile"], c["clause"], c["field"]): c for c in found.content["clauses"]}
    for profile in found.profiles:
        clauses = [
            {
                "clause": clause.clause,
                "about": clause.about,
                "fields": [states[profile.name, clause.clause, field] for field in clause.fields],
            }
            for clause in profile.clauses
        ]
        still = sum(f["state"] == OPEN for clause in clauses for f in clause["fields"])
        yield {
            "name": profile.name,
            "title": profile.title,
            "basis": profile.basis,
            "clauses": clauses,
            "open": still,
        }


def share(value: float | None) -> str:
    """A share in per cent; a dash where it is not known."""
    if value is None:
        return "–"
    return f"{100 * value:.2g} %" if 0 < value < 0.01 else f"{100 * value:.1f} %"


def _number(value: Any) -> str:
    return f"{value:,}" if isinstance(value, int) else str(value)


def _text(value: Any) -> str:
    if isinstance(value, list):
        return "; ".join(map(str, value)) or "open"
    return str(value) if value not in (None, "") else "open"
