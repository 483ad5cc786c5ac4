"""Other releases of this project about the same people: who is in them, by keyed hashes alone.

Every draft keeps the hashed numbers of its people and the class that each is in, so that it can be
judged together with a later one whatever has become of the table since. Watched ledgers are kept
beside a draft in the same way, each by the hash of its last release.
"""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from shoal.connectors.files import atomic_write

if TYPE_CHECKING:  # jobs alone import these
    from shoal.attacks.beside.audit import ReleaseBeside
    from shoal.data.certificate import Certificate
    from shoal.data.certificate_shape import BesideReport
    from shoal.policy.binding.linked_files import LinkedSource
    from shoal.policy.problem import LinkedProblem

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
    import polars as pl

    from shoal.attacks.beside.audit import ReleaseBeside, stripped
    from shoal.attacks.beside.sources import LEAST_VALUES, least_values_of, values_of
    from shoal.auditor.linked.audit import has_exact_gaps
    from shoal.auditor.linked.reading import read_linked_tables
    from shoal.data.linked import PEOPLE as OF_PEOPLE
    from shoal.data.table import Table, as_text
    from shoal.policy.binding.linked_files import read_linked, read_linked_release
    from shoal.policy.linked import attributes_of

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
    from shoal.attacks.beside.audit import check_spelling

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
    from shoal.attacks.beside.audit import ReleaseBeside, ShownValues

    with np.load(place, allow_pickle=False) as found:
        stated = json.loads(str(found["stated"]))
        texts = stated.pop("values")
        values = {
            name: ShownValues(found[f"classes {name}"], found[f"codes {name}"], tuple(texts[name]))
            for name in texts
        }
        stated["sensitive"] = tuple(stated["sensitive"])
        subjects = tuple(found["names"].astype(str).tolist())
        return ReleaseBeside(
            what,
            subjects=subjects,
            people=found["people"],
            labels=found["labels"],
            values=values,
            **stated,
        )


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
    from shoal.attacks.beside.audit import Question, audit_together

    if not others:
        return None
    releases = [kept(other.place, other.name) for other in others]
    return audit_together([kept(own, "the draft"), *releases], Question())
