"""Other releases of this project about the same people: who is in them, by keyed hashes alone.

Every draft keeps the hashed numbers of its people and the class that each is in, so that it can be
judged together with a later one whatever has become of the table since.
"""

from __future__ import annotations

import hashlib
import json
import secrets
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from shoal.connectors.files import atomic_write

if TYPE_CHECKING:  # jobs alone import these
    from shoal.attacks.beside.audit import ReleaseBeside
    from shoal.auditor.audit import AuditResult
    from shoal.data.certificate_shape import BesideReport
    from shoal.policy.policy import Policy

PEOPLE = "people.npz"
STATED = ("kind", "count", "sensitive", "k", "least_values", "holds", "sha256")


def project_key(place: Path) -> bytes:
    """The key of a project's hashes, made when it is first needed; it never leaves the project."""
    if not place.exists():
        with atomic_write(str(place), is_private=True) as unfinished:
            unfinished.write_bytes(secrets.token_bytes(32))
    return place.read_bytes()


def keep(folder: Path, key: bytes, result: AuditResult, policy: Policy) -> None:
    """Writes who is in which class of a draft; raises InputError where nobody is known again."""
    from shoal.attacks.beside.others import Audited, OtherRelease

    own = Audited(result, OtherRelease(release=folder / "data.csv"), policy).beside("the draft")
    names = [hashlib.blake2b(n.encode(), digest_size=16, key=key).hexdigest() for n in own.subjects]
    stated = {name: getattr(own, name) for name in STATED}
    stated["values"] = {name: shown.texts for name, shown in own.values.items()}
    values = {
        f"{part} {name}": getattr(shown, part)
        for name, shown in own.values.items()
        for part in ("classes", "codes")
    }
    with (folder / PEOPLE).open("wb") as file:
        np.savez_compressed(
            file,
            stated=np.array(json.dumps(stated)),
            names=np.array(names, dtype="S32"),
            people=own.people,
            labels=own.labels,
            **values,
        )


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


def overlaps(own: Path, released: Path) -> list[Overlap]:
    """The releases that share people with a draft. released: a folder of one file each."""
    if not own.is_file():
        return []
    found = []
    for place in sorted(released.glob("*.npz")):
        ours, theirs = _names(own, own.stat().st_mtime_ns), _names(place, 0)
        shared = len(ours[0] & theirs[0])
        if shared:
            found.append(Overlap(place.stem, place, shared, len(ours[0]), theirs[1]))
    return found


@lru_cache(maxsize=32)
def _names(place: Path, stamp: int) -> tuple[frozenset[bytes], str | None]:
    with np.load(place, allow_pickle=False) as found:
        return frozenset(found["names"].tolist()), json.loads(str(found["stated"]))["sha256"]


def judged_together(own: Path, others: list[str]) -> BesideReport | None:
    """The `beside` part of a draft's certificate; None where no release shares people with it."""
    from shoal.attacks.beside.audit import Question, audit_together

    if not others:
        return None
    releases = [kept(Path(place), f"releases/{Path(place).stem}") for place in others]
    return audit_together([kept(own, "the draft"), *releases], Question())
