"""Sign-off: what a decision is over, and which decisions are over what is there now; and the other
releases that a draft has to be judged with.
"""

from __future__ import annotations

import hashlib
import json
import re
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
import polars as pl

from shoal.attacks.beside.audit import (
    Question,
    ReleaseBeside,
    ShownValues,
    audit_together,
    check_spelling,
    stripped,
)
from shoal.attacks.beside.sources import LEAST_VALUES, least_values_of, values_of
from shoal.auditor.linked.audit import has_exact_gaps
from shoal.auditor.linked.reading import read_linked_tables
from shoal.connectors.files import atomic_write
from shoal.connectors.linked_tables import LinkedSource
from shoal.data.certificate import Certificate
from shoal.data.certificate_shape import BesideReport
from shoal.data.language import gettext
from shoal.data.linked import PEOPLE as OF_PEOPLE
from shoal.data.regular_files import file_sha256
from shoal.data.table import Table, as_text
from shoal.data.warnings import GRAVE, PLAIN_SINGLES_OUT
from shoal.errors import InputError
from shoal.policy.binding.linked import read_linked, read_linked_release
from shoal.policy.linked import attributes_of
from shoal.policy.loading import tables_named_in
from shoal.policy.problem import LinkedProblem
from shoal.reports.attacks import ALL_PLAIN, must_be_accepted
from shoal.web import policy_text
from shoal.web.policy_text import Context, Entry, read, sha256, written
from shoal.web.project import ASKED, CERTIFICATE, RELEASE, TRACE, Project, Run, tables_in

SIGNED, UNSIGNED = "signed.json", "unsigned.json"
KNOWN_RELEASES = Path(".ui", "released")
"""What the project keeps of each release by its name: its people, and which draft it was."""
ACCEPT, REJECT = "accept", "reject"
FEWEST_SIGNS, FEWEST_LETTERS = 15, 6
"""Of the words that accept a grave finding, and different ones among them: "ok" tells readers of
the dossier nothing, and neither does a key that is held down.
"""
SAID_ELSEWHERE = gettext("the same words stand at another line; say something of this one alone")
TOO_SHORT = gettext("say why in at least {fewest} characters", fewest=FEWEST_SIGNS)
MEASURED = {"certificate": CERTIFICATE, "report": "report.html"}


class Point(NamedTuple):
    """A finding that must be accepted in words, or all of a column, which the same words accept."""

    findings: list[str]
    column: str | None = None

    def words(self, accepted: Context) -> str:
        """What accepts it; empty where its findings are not accepted alike."""
        said = {accepted.get(finding) or "" for finding in self.findings}
        return said.pop() if len(said) == 1 else ""


def to_accept(run: Run) -> list[Point]:
    """Columns that name people or single some out; then what else is grave or attacks found."""
    certificate = Certificate(run.certificate)
    columns = {column["name"] for column in certificate.get("columns") or ()}
    found: dict[str, list[str]] = {}
    for one in certificate.warnings:
        singles_out = one.code == PLAIN_SINGLES_OUT
        if one.severity == GRAVE or (singles_out and one.column):
            about = one.column or (ALL_PLAIN if singles_out else one.text)
            found.setdefault(about, []).append(one.text)
    for row in must_be_accepted(certificate):
        about = row.attribute if row.attribute in found else row.says
        found.setdefault(about, []).append(row.says)
    return [Point(said, about if about in columns else None) for about, said in found.items()]


def shortcomings(points: Sequence[Point], accepted: Context) -> list[str]:
    """What the words for each point lack, which say something of it alone; empty where they do."""
    columns = [(point.column or "").casefold() for point in points]
    names = [max(re.findall(r"\w+", column), key=len, default="") for column in columns]
    found, known = [], set()
    for point, name in zip(points, names, strict=True):
        words = point.words(accepted).casefold()
        own = " ".join(part for part in re.findall(r"\w+", words) if part not in names)
        is_short = len(words) < FEWEST_SIGNS or len(set(own)) < FEWEST_LETTERS
        nameless = gettext("name {column}, and say why it may leave as it is", column=point.column)
        why = nameless if name not in words else SAID_ELSEWHERE if own in known else ""
        found.append(TOO_SHORT if is_short else why)
        known.add(own)
    return found


def context_of(project: Project) -> Context:
    """release.yaml: who gets it, why, under which controls, and who signed off."""
    text = policy_text.text_of(project.folder / RELEASE)
    return {"version": 1} if not text else read(text, RELEASE)


def carried_over(project: Project) -> Context:
    """By finding, the words that accept it already, and the draft that they were written for."""
    last = project.last_draft
    if last is None:
        return {}
    earlier = last.about.get("carried_over") or {}
    return {
        finding: earlier[finding]
        if earlier.get(finding, {}).get("words") == words
        else {"words": words, "draft": last.number}
        for finding, words in (context_of(project).get("accepted") or {}).items()
    }


def ask_for_releases(project: Project) -> None:
    """Asks anew whether there is any other release, where the last draft has become one."""
    last = project.last_draft
    given = context_of(project)
    if given.get("other_releases") == "none-known" and last and released_as(project, last):
        others = {key: value for key, value in given.items() if key != "other_releases"}
        said = gettext("other releases: open again, now that draft {last} is one", last=last.number)
        project.edit(said, {RELEASE: written(others)}, None)


def signed(run: Run) -> list[Context]:
    """Every decision about a draft, over which hashes."""
    return policy_text.json_of(run.folder / SIGNED, [])


def decision(entry: Context, own: Context) -> Context:
    """What somebody has decided over these hashes now; raises InputError without a name."""
    if entry["decision"] not in (ACCEPT, REJECT) or not entry["name"]:
        raise InputError("sign-off: needs a name and a decision")
    when = datetime.now().astimezone().isoformat(timespec="seconds")
    return {**entry, "at": when, "hashes": own}


def hashes(project: Project, run: Run) -> Context:
    """What a decision is over: all that is released or was decided by, but for the decisions."""
    answers = _answers(context_of(project))
    return {
        "data": _sha(run.data),
        **{what: _sha(run.folder / name) for what, name in MEASURED.items()},
        "policy": run.about.get("policy_sha"),
        "hierarchies": run.about.get("hierarchies_sha"),
        "table": run.about.get("table_sha"),
        "answers": sha256(json.dumps(answers, sort_keys=True, default=str)),
    }


def _answers(given: Context) -> Context:
    """What release.yaml says but for the decisions."""
    return {key: value for key, value in given.items() if key != "sign_off"}


def digest(own: Context) -> str:
    """All hashes in one but the answers': the form that carries it carries release.yaml's, too."""
    return sha256(json.dumps({**own, "answers": None}, sort_keys=True))


def decisions(project: Project, run: Run) -> list[Context]:
    """The decisions over exactly what is there now, the last one last."""
    own = hashes(project, run)
    return [one for one in signed(run) if one["hashes"] == own]


def standing(project: Project, run: Run) -> tuple[str, str]:
    """Who has accepted what is there now, by the last decision over it; and why nobody has."""
    found = decisions(project, run)
    if not found and signed(run):
        return "", gettext("something has changed since; sign off again")
    if not found:
        return "", gettext("not yet")
    last = found[-1]
    if last["decision"] != ACCEPT:
        return "", gettext("refused")
    return ("", gettext("by who asked for it")) if is_own(project, last) else (last["name"], "")


def undoable(project: Project) -> Entry | None:
    """The last change, where undo would take something back: a sign-off stays with its draft."""
    last = project.history.last()
    if last is None or {*last.files} != {RELEASE}:
        return last
    try:
        before = project.history.way_back(project.texts(), last.parent)[RELEASE]
    except InputError:  # said by whoever undoes
        return last
    is_sign_off = _answers(read(before or "version: 1", RELEASE)) == _answers(context_of(project))
    return None if is_sign_off else last


def is_own(project: Project, one: Context) -> bool:
    """Whether somebody accepts what they asked another to sign off: it does not count."""
    asker = project.about.get("asked_by")
    names = {" ".join(str(name).split()).casefold() for name in (asker, one["name"])}
    return bool(asker) and one["decision"] == ACCEPT and len(names) == 1


def with_sign_offs(project: Project, run: Run) -> Context:
    """The answers, and the decisions over them and this draft; none of an earlier draft."""
    kept = ("name", "role", "decision", "comment")
    counted = [one for one in decisions(project, run) if not is_own(project, one)]
    own = [{**{key: one[key] for key in kept}, "date": one["at"][:10]} for one in counted]
    return {**context_of(project), "sign_off": own}


def is_copy(run: Run, released: Path) -> bool:
    """Whether a draft's file and this one of its name are the same."""
    return _sha(run.folder / released.name) == _sha(released)


def releases(project: Project) -> list[str]:
    """The project's releases, the last first."""
    folder = project.folder / "releases"
    return sorted((path.name for path in folder.glob("2*") if path.is_dir()), reverse=True)


def next_release(folder: Path) -> str:
    """The name of a release of today in this folder; another release of the day keeps its own."""
    day = date.today().isoformat()
    places = (day, *(f"{day}-{number}" for number in range(2, 100)))
    return next(place for place in places if not (folder / place).exists())


def released_as(project: Project, run: Run) -> str | None:
    """The last release of this draft, not of another with the same bytes; None without one."""
    for name in releases(project):
        of_draft = policy_text.text_of(project.folder / KNOWN_RELEASES / f"{name}.draft")
        released = project.folder / "releases" / name / run.data.name
        if of_draft == run.name and is_copy(run, released):
            return name
    return None


def _sha(path: Path) -> str | None:
    """The hash of a file, or of a folder's files as certificates state it; None without any."""
    if path.is_dir():
        tables = {one.stem: _file_sha(one) for one in tables_in(path)}
        return sha256("".join(f"{name}\t{tables[name]}\n" for name in sorted(tables)))
    return _file_sha(path)


def _file_sha(path: Path) -> str | None:
    try:
        stat = path.stat()
    except OSError:
        return None
    return _hashed(path, stat.st_mtime_ns, stat.st_size)


@lru_cache(maxsize=32)
def _hashed(path: Path, stamp: int, size: int) -> str:
    return file_sha256(path)


# Copies of hierarchies as they are when a user asks for work that may start later.
#
# The tables below hierarchies/, which the page edits, are copied. A policy that its owner wrote
# may name tables elsewhere: then all tables are read where they lie, since its paths are relative
# to the project.


FOLDER = "hierarchies"


def take(project: Project, into: Path) -> None:
    """Copies the project's hierarchies into a folder."""
    for name, text in project.texts().items():
        if name.startswith(f"{FOLDER}/") and text is not None:
            policy_text.made(into / FOLDER)
            policy_text.write(into / name, text)


def take_aside(project: Project, name: str) -> Path:
    """A copy of the hierarchies for work that has no folder of its own; delete it afterwards."""
    place = policy_text.made(project.folder / ".ui" / f"{ASKED}{name}")
    take(project, place)
    return place


def base_of(project: Project, policy: Context, taken: Path) -> str:
    """The folder that a policy's paths are relative to: the copy, or the project."""
    is_ours = all(
        Path(holder[key]).is_absolute() or Path(holder[key]).parent == Path(FOLDER)
        for holder, key in tables_named_in(policy)
    )
    return str(taken if is_ours else project.folder)


def trace_of(run: Path) -> str | None:
    """The trace of a draft in this folder; None where it has none."""
    path = run / TRACE
    return str(path) if path.is_file() else None


# Other releases of this project about the same people: who is in them, by keyed hashes alone.
#
# Every draft keeps the hashed numbers of its people and the class that each is in, so that it can
# be judged together with a later one whatever has become of the table since. Watched ledgers are
# kept beside a draft in the same way, each by the hash of its last release.


PEOPLE = "people.npz"
STATED = (
    *("kind", "count", "sensitive", "k", "least_values", "unjudged", "has_exact_gaps"),
    *("holds", "sha256"),
)


def project_key(place: Path) -> bytes:
    """The key of a project's hashes, made when it is first needed; it never leaves the project."""
    if not place.exists():
        with atomic_write(str(place), is_private=True) as unfinished:
            unfinished.write_bytes(secrets.token_bytes(32))
    return place.read_bytes()


def in_tables(
    folder: Path,
    problem: LinkedProblem,
    original: LinkedSource,
    trace: Path,
    certificate: Certificate,
) -> ReleaseBeside:
    """Who is in which class of a release of several tables: whoever is alike in all of them, in
    the values of all rows where some may be known. What classes show is asked of people's own
    columns, as rows of one person may differ; of others only which ones a promise is about.

    trace: which published row was which row of the original.
    """
    published = read_linked_release(folder, problem).tables
    release = read_linked_tables(published, problem)
    people = read_linked(original, problem).tables[OF_PEOPLE].frame
    rows = pl.read_ndjson(trace).filter(pl.col("table") == OF_PEOPLE).sort("row")["seq"]
    subject = problem.policy.subject
    assert subject is not None  # as every policy of several tables names one
    names, person = stripped(as_text(people[subject]).gather(rows).to_list())
    view = release.view.knowing_all if release.tree.known_rows else release.view
    labels, is_kept = view.labels, ~release.withheld
    attributes = problem.model.attributes
    shown = published[OF_PEOPLE].frame
    own = Table(shown.select(name for name in shown.columns if name in attributes))
    promised = {
        name
        for promise in problem.model.promises
        for name in attributes_of(promise)
        if name not in attributes or promise["model"] not in LEAST_VALUES
    }
    sensitive = (
        about.qualified(name)
        for about in release.tree.tables
        for name in release.tables[about.name].sensitive
    )
    return ReleaseBeside(
        "the draft",
        "table",
        names,
        person[is_kept],
        labels[is_kept],
        int(labels.max(initial=-1)) + 1,
        values_of(own, np.where(is_kept, labels, -1), problem.model),
        tuple(name for name in own.names if attributes[name].role == "sensitive"),
        k=problem.policy.required_k,
        least_values=least_values_of(problem.policy.build_promises()),
        unjudged={name: name in promised for name in sensitive},
        has_exact_gaps=has_exact_gaps(problem.model),
        holds=certificate.holds,
        sha256=certificate["output"]["sha256"],
    )


def keep(place: Path, key: bytes, own: ReleaseBeside) -> None:
    """Writes who is in which class of a release."""
    names = [hashlib.blake2b(n.encode(), digest_size=16, key=key).hexdigest() for n in own.subjects]
    stated = {name: getattr(own, name) for name in STATED}
    stated["values"] = {name: shown.texts for name, shown in own.values.items()}
    values = {
        f"{part} {name}": getattr(shown, part)
        for name, shown in own.values.items()
        for part in ("classes", "codes")
    }
    with place.open("wb") as file:
        np.savez_compressed(
            file,
            stated=np.array(json.dumps(stated)),
            names=np.array(names, dtype="S32"),
            people=own.people,
            labels=own.labels,
            **values,
        )


def keep_ledger(place: Path, key: bytes, ledger: ReleaseBeside, draft: ReleaseBeside) -> None:
    """Writes who is in which class of a ledger, the people of a draft by the hashes of their names.

    Raises InputError where the people of one would be taken for others in the other.
    """
    check_spelling([draft, ledger])
    assert ledger.token is not None
    names = {ledger.token(name): name for name in draft.subjects}
    known = tuple(names.get(token, token) for token in ledger.subjects)
    keep(place, key, replace(ledger, subjects=known, token=None))


def unjudged(name: str) -> str:
    """The finding that a ledger can't be judged together with a draft, as far as the reason."""
    return f"{name}: was not judged together with this release"


def kept(place: Path, what: str) -> ReleaseBeside:
    """What `keep` wrote. what: its name in findings."""
    with np.load(place, allow_pickle=False) as found:
        stated = json.loads(str(found["stated"]))
        texts = stated.pop("values")
        values = {
            name: ShownValues(found[f"classes {name}"], found[f"codes {name}"], tuple(texts[name]))
            for name in texts
        }
        stated["sensitive"] = tuple(stated["sensitive"])
        subjects = tuple(found["names"].astype(str).tolist())
        stated |= {"people": found["people"], "labels": found["labels"], "values": values}
        return ReleaseBeside(what, subjects=subjects, **stated)


@dataclass(frozen=True)
class Overlap:
    """A release of which some people are in a draft. people: of the draft."""

    name: str
    place: Path
    shared: int
    people: int
    sha256: str | None


def overlaps(own: Path, others: Mapping[str, Path]) -> list[Overlap]:
    """Those of other releases that share people with a draft, by their names."""
    if not own.is_file():
        return []
    found = []
    for name, place in others.items():
        ours, theirs = _names(own, own.stat().st_mtime_ns), _names(place, 0)
        shared = len(ours[0] & theirs[0])
        if shared:
            found.append(Overlap(name, place, shared, len(ours[0]), theirs[1]))
    return found


@lru_cache(maxsize=32)
def _names(place: Path, stamp: int) -> tuple[frozenset[bytes], str | None]:
    with np.load(place, allow_pickle=False) as found:
        return frozenset(found["names"].tolist()), json.loads(str(found["stated"]))["sha256"]


def judged_together(own: Path, others: list[Overlap]) -> BesideReport | None:
    """The `beside` part of a draft's certificate; None where no release shares people with it."""
    if not others:
        return None
    releases = [kept(other.place, other.name) for other in others]
    return audit_together([kept(own, "the draft"), *releases], Question())
