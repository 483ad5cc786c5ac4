"""Atoms: people whom no fusion so far tells apart, so the next one must not either.

Reconstruction: no paper has this; the argument is ours.
Promise: after any number of fusions, whoever knows for each of them which class a person is in, or
that the person is in none, is left with at least k people, if all fusions ask for this k.
Why: an atom is a set of people with the same classes, or absence, in all fusions so far. A fusion
replaces it by its people in each of the new classes, and by those who are absent; each of these is
empty or has k people. People in none so far are newcomers: no atom, but those of a class are k, as
well.
Reading: where some, but fewer than k, of an atom are present, or absent, all of it is withheld, so
that it stays as it was. Newcomers are withheld where they are fewer than k altogether.

Atoms are numbered from 1; 0 are newcomers.
"""

from __future__ import annotations

import numpy as np

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
