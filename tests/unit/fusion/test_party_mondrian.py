"""Owners who take turns end with the groups of one owner, and refuse nonsense."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fusion_cases import TREES, Case, cases, owners_of, vetoes
from naive_party_mondrian import groups_of
from shoal.data.schema import IndexedRequirement, Taxonomy
from shoal.errors import PartyError
from shoal.fusion.methods.party_mondrian import PartyMondrian


def groups_at(party, case):
    """As a party ends: rows and published spans of every group."""
    columns = [party.published(j) for j in range(len(case.codes))]
    return sorted(
        (
            tuple(rows.tolist()),
            tuple((int(lo), int(hi)) for lo, hi in (spans[of[rows[0]]] for spans, of in columns)),
        )
        for rows in party.rows.values()
    )


@settings(max_examples=160, deadline=None)
@given(st.data(), cases(), st.booleans(), st.booleans(), st.integers(1, 3), st.booleans())
def test_any_spread_of_columns_ends_with_the_groups_of_one_owner(
    data, case, hulls, weighed, l, judged
):
    """Also where one of them refuses cuts, by values that it alone knows."""
    if weighed:
        weights = st.sampled_from([0.1, 1.0, 3.0])
        case = replace(case, weights=tuple(data.draw(weights) for _ in case.codes))
    owners = data.draw(owners_of(len(case.codes)))
    veto = data.draw(vetoes(len(owners), len(case.classes))) if judged else None
    expected = groups_of(case, labels=l, hulls=hulls, veto=veto and veto[1:])
    diverse = [(case.classes, l)]
    parties, _ = case.in_turns(PartyMondrian(hulls=hulls), owners, veto, diverse=diverse)
    for party in parties:
        assert groups_at(party, case) == expected
    k = max(qid.k for qid in case.qids)
    for rows, _ in expected if len(expected) > 1 else []:
        assert len(rows) >= k
        assert len(set(case.classes[list(rows)])) >= l


def small():
    """Ages 1, 2, 9, 10 of men and women: sex is the wider attribute only when age is cut."""
    trees = (Taxonomy(11, is_number=True), Taxonomy.of_tree(TREES[1]))
    ages, kinds = [1, 1, 2, 2, 9, 9, 10, 10], [0, 0, 1, 1, 2, 2, 2, 2]
    return Case(
        ("age", "kind"),
        (np.array(ages), np.array(kinds)),
        trees,
        np.array([0, 1] * 4),
        (IndexedRequirement((0, 1), 2),),
    )


def test_a_worked_example():
    """Age first (at equal width the name decides), at 6, in the middle of 2 and 9; then kind, which
    is wider in both parts. The older people all have one kind, so it is age's turn again.
    """
    parties, batches = small().in_turns(PartyMondrian(), [[0], [1]])
    assert groups_at(parties[0], small()) == [
        ((0, 1), ((0, 5), (0, 0))),
        ((2, 3), ((0, 5), (1, 1))),
        ((4, 5), ((6, 9), (0, 3))),
        ((6, 7), ((10, 10), (0, 3))),
    ]
    assert [owner for owner, _ in batches] == [0, 1, 0, 1, 0]
    narrowed, _ = small().in_turns(PartyMondrian(hulls=True), [[0], [1]])
    assert groups_at(narrowed[1], small()) == [
        ((0, 1), ((1, 1), (0, 0))),
        ((2, 3), ((2, 2), (1, 1))),
        ((4, 5), ((9, 9), (2, 2))),
        ((6, 7), ((10, 10), (2, 2))),
    ]


def test_a_turn_says_where_groups_are_cut_and_a_bit_for_each_row():
    _, batches = small().in_turns(PartyMondrian(), [[0], [1]])
    first = np.frombuffer(batches[0][1][:-1], dtype="<u4").tolist()
    assert first == [0, 2, 0, 5, 6, 10]  # turn 0: two parts, up to 5 and from 6
    assert batches[0][1][-1:] == b"\x0f"


@settings(max_examples=40, deadline=None)
@given(st.data(), cases(), st.integers(0, 999))
def test_raw_values_swapped_within_groups_leave_every_message_of_its_length(data, case, seed):
    """Without hulls a message says spans and who is in which, so swapped people change no byte."""
    owners = data.draw(owners_of(len(case.codes)))
    parties, batches = case.in_turns(PartyMondrian(), owners)
    rng, codes = np.random.default_rng(seed), [codes.copy() for codes in case.codes]
    for rows in parties[0].rows.values():
        for column in codes:
            column[rows] = column[rng.permutation(rows)]
    again, said = replace(case, codes=tuple(codes)).in_turns(PartyMondrian(), owners)
    if again[0].steps == parties[0].steps:
        assert said == batches


@settings(max_examples=40, deadline=None)
@given(cases(), st.integers(0, 10**6))
def test_a_changed_batch_is_refused_or_keeps_the_promise(case, seed):
    owners = [[0], list(range(1, len(case.codes))), []]
    _, batches = case.in_turns(PartyMondrian(), owners)
    rng = np.random.default_rng(seed)
    follower = PartyMondrian().party(case.ground(owners), {})
    at = int(rng.integers(len(batches))) if batches else 0
    k = max(qid.k for qid in case.qids)
    try:
        for number, (_, batch) in enumerate(batches):
            if number == at:
                mixed = bytearray(batch)
                mixed[int(rng.integers(len(mixed)))] ^= 1 << int(rng.integers(8))
                batch = bytes(mixed)[: len(mixed) - int(rng.integers(2))]
            follower.apply(batch)
    except PartyError:
        return
    assert min(len(rows) for rows in follower.rows.values()) >= min(k, len(case.classes))


def test_a_hull_outside_of_its_group_is_refused():
    parties, _ = small().in_turns(PartyMondrian(hulls=True), [[0], [1]])
    hulls = np.array([(0, 10)] * 4, dtype="<u4").tobytes()
    with pytest.raises(PartyError, match="outside of its group"):
        parties[1].narrow(hulls, [0])
    with pytest.raises(PartyError, match="can't be read"):
        parties[1].narrow(hulls[:-8], [0])
