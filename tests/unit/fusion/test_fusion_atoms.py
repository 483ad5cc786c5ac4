"""Whoever knows all classes and absences of a person is left with k people, after any fusions."""

import hashlib
import json
from collections import Counter

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fusion_cases import Case
from naive_party_mondrian import groups_of
from shoal.data.schema import IndexedRequirement, Taxonomy
from shoal.errors import InputError
from shoal.fusion.ledger import PastFusions, Recalled
from shoal.fusion.methods.party_mondrian import PartyMondrian
from shoal.fusion.methods.party_tds import PartyTds

PEOPLE = 60


def fused(ids, atoms, k, rng, rule):
    """The published class of each of these people, by two owners of fresh columns."""
    taxonomies = (Taxonomy(12, is_number=True), Taxonomy(12, is_number=True))
    codes = tuple(rng.integers(0, 12, len(ids)) for _ in taxonomies)
    classes = rng.integers(0, 2, len(ids))
    case = Case(("a", "b"), codes, taxonomies, classes, (IndexedRequirement((0, 1), k),))
    together = case.in_turns if rule.takes_turns else case.together
    parties, _ = together(rule, [[0], [1]], atoms=atoms)
    shown = [[column[1].tolist() for column in map(p.published, (0, 1))] for p in parties]
    assert shown[0] == shown[1]
    if rule.takes_turns:
        expected = [rows for rows, _ in groups_of(case, atoms=atoms)]
        assert sorted(tuple(r.tolist()) for r in parties[0].rows.values()) == expected
    return np.unique(np.array(shown[0]).T, axis=0, return_inverse=True)[1].reshape(-1)


@settings(max_examples=30, deadline=None)
@given(
    st.integers(0, 10**6), st.integers(2, 5), st.sampled_from([PartyMondrian(), PartyTds(ahead=2)])
)
def test_classes_and_absences_of_all_fusions_leave_k_people(seed, k, rule):
    rng = np.random.default_rng(seed)
    past = PastFusions()
    known = {f"p{i}": [] for i in range(PEOPLE)}  # what an attacker knows of each person
    for _ in range(4):
        here = np.flatnonzero(rng.random(PEOPLE) < rng.choice([0.3, 0.8, 0.97, 1.0]))
        ids = [f"p{i}" for i in rng.permutation(here)]
        recalled = Recalled.of(past, ids, k)
        kept = [id_ for id_, ok in zip(ids, recalled.published, strict=True) if ok]
        assert recalled.withheld == len(ids) - len(kept)
        if not kept:
            continue
        classes = fused(kept, recalled.atoms[recalled.published], k, rng, rule)
        after = recalled.after(pl.DataFrame({"class": classes}), b"agreement")
        past = PastFusions.unpack(after.packed(), "ledger")
        class_of = dict(zip(kept, classes.tolist(), strict=True))
        for id_, seen in known.items():
            seen.append(class_of.get(id_))
        published = {
            id_: tuple(seen) for id_, seen in known.items() if any(s is not None for s in seen)
        }
        alike = Counter(published.values())
        assert min(alike.values()) >= k
        atoms = {}
        for id_, seen in published.items():
            atoms.setdefault(seen, set()).add(past.atom_of[id_])
        assert all(len(numbers) == 1 for numbers in atoms.values())
        assert past.sizes[0] == 0
        assert Counter(past.atom_of.values()) == {
            a: n for a, n in enumerate(past.sizes.tolist()) if n
        }


def test_a_worked_example():
    """k = 2: of {a, b, c} c is absent alone, so a, b are withheld; {d, e} stay; f, g are new."""
    past = PastFusions("x", 1, np.array([0, 3, 2]), {"a": 1, "b": 1, "c": 1, "d": 2, "e": 2})
    recalled = Recalled.of(past, list("abdefg"), 2)
    assert recalled.published.tolist() == [False, False, True, True, True, True]
    after = recalled.after(pl.DataFrame({"class": [0, 0, 1, 1]}), b"")
    groups = {}
    for id_, atom in after.atom_of.items():
        groups.setdefault(atom, set()).add(id_)
    assert sorted(map(sorted, groups.values())) == [["a", "b", "c"], ["d", "e"], ["f", "g"]]


def test_one_newcomer_alone_is_withheld():
    past = PastFusions("x", 1, np.array([0, 2]), {"a": 1, "b": 1})
    assert Recalled.of(past, ["a", "b", "c"], 2).published.tolist() == [True, True, False]


@pytest.mark.parametrize("known", ["C{}", "00C{}.0", "٠c{}"])
def test_people_who_come_again_under_another_spelling_are_refused(known):
    known = [known.format(i) for i in (1, 2)]
    past = PastFusions(atom_of=dict.fromkeys(known, 1), sizes=np.array([0, 2]))
    assert Recalled.of(past, [*known, "d3", "d4"], 2).withheld == 0
    with pytest.raises(InputError, match="2 of its people are those of earlier fusions"):
        Recalled.of(past, ["c1", "c2", "d3", "d4"], 2)


def stored(people: list, **about) -> bytes:
    """A ledger of fusions in a file, whose hashes are right."""
    lines = "".join(json.dumps(entry) + "\n" for entry in people).encode()
    sha256 = hashlib.sha256(lines).hexdigest()
    head = {"hash": "h", "fusions": 1, "sizes": [0, 2], "sha256": sha256} | about
    return json.dumps(head).encode() + b"\n" + lines


TWO = [[1, "a"], [1, "b"]]


@pytest.mark.parametrize(
    "content",
    [
        stored(TWO, sizes=[]),
        stored(TWO, sizes=[0]),
        stored(TWO, sizes=[0, 3]),
        stored(TWO, sizes=[[0, 2]]),
        stored(TWO, fusions="many"),
        stored([[-1, "a"], [-1, "b"]]),
        stored([[10**30, "a"], [10**30, "b"]]),
        stored([[2**40, "a"], [2**40, "b"]]),
        stored([[1.5, "a"], [1.5, "b"]]),
        stored([[None, "a"], [None, "b"]]),
        b"[" * 100_000 + b"\n",
    ],
)
def test_a_ledger_that_does_not_count_its_own_people_is_damaged(content):
    assert PastFusions.unpack(stored(TWO), "x").atom_of == {"a": 1, "b": 1}
    with pytest.raises(InputError, match="is damaged"):
        PastFusions.unpack(content, "x")
