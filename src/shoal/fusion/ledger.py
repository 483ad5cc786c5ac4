"""The ledger of fusions: what an owner keeps of them, so that the next one fits the earlier ones.

Promise: the next fusion keeps k together with all that the ledger holds, or does not happen.
(`fusion/ledger.py` says how.) A ledger is private to its owner: it names people by its
ids. All owners of a ledger know the same of the people in common, so their hashes are equal.

The file is one line of JSON about the ledger, and one for each person: its atom and id.
"""

import hashlib
import json
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from shoal.connectors import files
from shoal.data.person_names import refuse_spelling, taken_for_others
from shoal.errors import UNREADABLE, InfeasibleError, InputError
from shoal.fusion.conversation import Conversation
from shoal.fusion.wire.messages import MessageKind

START = "start"
_LEDGER = b"L"  # journal: the ledger as it was before this fusion


@dataclass(frozen=True)
class PastFusions:
    """What an owner knows of earlier fusions.

    hash: of the ledger; what the next agreement names as `before`. sizes: (atoms + 1,) people.
    """

    hash: str = START
    fusions: int = 0
    sizes: np.ndarray = field(default_factory=lambda: np.zeros(1, dtype=np.int64))
    atom_of: dict[str, int] = field(default_factory=dict)

    @classmethod
    def load(cls, path: Path, before: str, party: str) -> bytes:
        """The ledger that an agreement continues, as it is stored; raises InputError."""
        if before == START:
            if path.exists():
                raise InputError(
                    f"party '{party}': ledger '{path}' holds fusions already, so this one is not"
                    " the first; say 'before' with its hash"
                )
            return cls().packed()
        if not path.is_file():
            raise InputError(
                f"party '{party}': has no ledger '{path}'; who lost it can't take part in another"
                " fusion of the same people"
            )
        content = path.read_bytes()
        if cls.unpack(content, str(path)).hash != before:
            raise InputError(
                f"party '{party}': ledger '{path}' is not the one that the agreement continues;"
                " compare 'before' with the last fusion's certificate"
            )
        return content

    @classmethod
    def unpack(cls, content: bytes, name: str) -> "PastFusions":
        """The ledger in a file's content; raises InputError where it is damaged."""
        try:
            head, people = content.split(b"\n", 1)
            about = json.loads(head)
            if hashlib.sha256(people).hexdigest() != about["sha256"]:
                raise ValueError
            atom_of = {id_: atom for atom, id_ in map(json.loads, people.splitlines())}
            if {0: 0} | Counter(atom_of.values()) != dict(enumerate(about["sizes"])):
                raise ValueError
            sizes = np.array(about["sizes"], dtype=np.int64)
            return cls(str(about["hash"]), int(about["fusions"]), sizes, atom_of)
        except UNREADABLE:
            raise InputError(
                f"ledger '{name}': is damaged; restore it, who lost it can't take part in another"
                " fusion of the same people"
            ) from None

    def packed(self) -> bytes:
        lines = (json.dumps([atom, id_]) + "\n" for id_, atom in sorted(self.atom_of.items()))
        people = "".join(lines).encode()
        about = {
            "hash": self.hash,
            "fusions": self.fusions,
            "sizes": self.sizes.tolist(),
            "sha256": hashlib.sha256(people).hexdigest(),
        }
        return json.dumps(about).encode() + b"\n" + people


NO_FUSIONS = PastFusions()


@dataclass(frozen=True)
class Recalled:
    """The people in common as the ledger knows them.

    atoms: (n,) of every row. published: (n,) bool, who is not withheld.
    """

    past: PastFusions
    ids: list[str]
    atoms: np.ndarray
    published: np.ndarray

    @classmethod
    def of(cls, past: PastFusions, ids: list[str], k: int) -> "Recalled":
        """Raises InputError where people come again under ids that are spelled otherwise."""
        known, people = (pl.Series([*names], dtype=pl.String) for names in (past.atom_of, ids))
        refuse_spelling("earlier fusions", "this fusion", taken_for_others(people, known))
        atoms = np.array([past.atom_of.get(id_, 0) for id_ in ids], dtype=np.int64)
        return cls(past, ids, atoms, may_be_published(atoms, past.sizes, k))

    @property
    def withheld(self) -> int:
        return int((~self.published).sum())

    @property
    def digest(self) -> bytes:
        """What all owners must agree on: the ledger, and the atom of every row."""
        said = hashlib.sha256(self.past.hash.encode())
        said.update(self.past.sizes.astype("<i8").tobytes())
        said.update(self.atoms.astype("<i8").tobytes())
        return said.digest()

    def after(self, quasi: pl.DataFrame, agreement: bytes) -> PastFusions:
        """The ledger after the fusion. quasi: the quasi-identifiers of all who are published.

        Its hash follows from what all owners know.
        """
        cells = np.stack([column.to_physical().to_numpy() for column in quasi], axis=1)
        classes = np.unique(cells, axis=0, return_inverse=True)[1].reshape(-1)
        new, of_absent, sizes = next_atoms(self.atoms[self.published], classes, self.past.sizes)
        atom_of = {id_: int(of_absent[atom]) for id_, atom in self.past.atom_of.items()}
        here = [id_ for id_, is_here in zip(self.ids, self.published, strict=True) if is_here]
        atom_of |= dict(zip(here, new.tolist(), strict=True))
        said = hashlib.sha256(self.digest + agreement)
        said.update(sizes.astype("<i8").tobytes())
        said.update(new.astype("<i8").tobytes())
        return PastFusions(said.hexdigest(), self.past.fusions + 1, sizes, atom_of)

    def facts(self, after: PastFusions) -> dict[str, Any]:
        known = {"before": self.past.hash, "now": after.hash}
        return {**known, "fusions": after.fusions, "withheld": self.withheld}


def recalled_by_all(
    conversation: Conversation, past: Callable[[], bytes], ids: list[str]
) -> Recalled:
    """What the ledger says of the people in common; PartyError where owners' ledgers differ.

    The journal remembers what `past` read, so that a party that resumes goes on with the same.
    """
    agreement = conversation.agreement
    content = conversation.remember(_LEDGER, past)
    k = max(qid.k for qid in agreement.qids())
    recalled = Recalled.of(PastFusions.unpack(content, conversation.name), ids, k)
    conversation.require_same(
        MessageKind.ATOMS, recalled.digest, "kept another ledger of earlier fusions"
    )
    if len(ids) - recalled.withheld < agreement.least_common:
        raise InfeasibleError(
            f"too few people are left: {recalled.withheld} are withheld, because this fusion and"
            " the earlier ones together would tell them apart; bring more of those who were there"
        )
    return recalled


def ledger_path(folder: Path, party: str) -> Path:
    return folder / f"{party}.ledger"


def write_ledger(path: Path, content: bytes) -> None:
    """Replaces the ledger, as a whole."""
    with files.atomic_write(str(path), is_private=True) as draft:
        draft.write_bytes(content)


# Atoms: people whom no fusion so far tells apart, so the next one must not either.
#
# Reconstruction: no paper has this; the argument is ours. Promise: after any number of fusions,
# whoever knows for each of them which class a person is in, or that the person is in none, is
# left with at least k people, if all fusions ask for this k. Why: an atom is a set of people with
# the same classes, or absence, in all fusions so far. A fusion replaces it by its people in each
# of the new classes, and by those who are absent; each of these is empty or has k people. People
# in none so far are newcomers: no atom, but those of a class are k, as well. Reading: where some,
# but fewer than k, of an atom are present, or absent, all of it is withheld, so that it stays as
# it was. Newcomers are withheld where they are fewer than k altogether.
#
# Atoms are numbered from 1; 0 are newcomers.


ABSENT = -1


def absent_people(atoms: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """How many people of each atom are not here; (atoms + 1,) int64, 0 for newcomers.

    atoms: (n,) atom of each person who is here. sizes: (atoms + 1,) people of each atom.
    """
    absent = sizes - np.bincount(atoms, minlength=len(sizes))
    absent[0] = 0
    return np.asarray(absent)


def may_be_published(atoms: np.ndarray, sizes: np.ndarray, k: int) -> np.ndarray:
    """Who is not withheld; (n,) bool."""
    present = np.bincount(atoms, minlength=len(sizes))
    absent = absent_people(atoms, sizes)
    return (present >= k)[atoms] & ((absent == 0) | (absent >= k))[atoms]


def next_atoms(
    atoms: np.ndarray, classes: np.ndarray, sizes: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The atoms after a fusion.

    classes: (n,) class of each published person. Returns the new atom of each of them; that of the
    absent people of every atom, (atoms + 1,), 0 where there are none; and the sizes of new atoms.
    """
    absent = absent_people(atoms, sizes)
    stayed = np.flatnonzero(absent)
    pairs = np.concatenate(
        [
            np.stack([atoms, classes], axis=1),
            np.stack([stayed, np.full(len(stayed), ABSENT)], axis=1),
        ]
    ).astype(np.int64)
    different, number = np.unique(pairs, axis=0, return_inverse=True)
    number = number.reshape(-1) + 1
    people = np.concatenate([np.ones(len(atoms), dtype=np.int64), absent[stayed]])
    new_sizes = np.zeros(len(different) + 1, dtype=np.int64)
    np.add.at(new_sizes, number, people)
    of_absent = np.zeros(len(sizes), dtype=np.int64)
    of_absent[stayed] = number[len(atoms) :]
    return number[: len(atoms)], of_absent, new_sizes
