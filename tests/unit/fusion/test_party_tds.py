"""Several owners end with the table of one, in few rounds, and refuse nonsense."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fusion_cases import Case, cases, owners_of, paper_case
from shoal.data.hierarchies.hierarchy import Hierarchy
from shoal.data.schema import IndexedRequirement, Taxonomy
from shoal.errors import PartyError
from shoal.fusion.ground import pack, packed_size, unpack
from shoal.fusion.methods.party_tds import (
    MOST_LABELS,
    PartyTds,
    batch_roots,
    decode_steps,
    final_nodes,
)
from shoal.search.specialization import UNIT
from shoal_papers.baselines.party_tds_variants import PartyTdsLiteral, PartyTdsStepwise

SCORES = ["gain-ratio", "gain", "gain-per-loss"]


@settings(max_examples=110, deadline=None)
@given(st.data(), cases(), st.sampled_from([1, 2, 8, 64]), st.sampled_from(SCORES))
def test_any_parties_take_the_steps_of_one_owner_in_the_same_order(data, case, ahead, score):
    owners = data.draw(owners_of(len(case.codes)))
    state, steps = case.alone(score)
    rules = [PartyTdsStepwise(score=score)]
    if score != "gain-per-loss":  # which serves step by step alone
        rules.append(PartyTds(score=score, ahead=ahead))
    for rule in rules:
        parties, _ = case.together(rule, owners)
        for party in parties:
            assert party.steps == steps
            for j in range(len(case.codes)):
                assert np.array_equal(party.state.nodes(j), state.nodes(j))


@settings(max_examples=60, deadline=None)
@given(st.data(), cases())
def test_the_literal_rule_is_valid_and_maximal_too(data, case):
    parties, _ = case.together(PartyTdsLiteral(), data.draw(owners_of(len(case.codes))))
    first = parties[0]
    assert all(groups.least >= groups.qid.k for groups in first.state.groups)
    assert all(party.bid()[0] == 0 for party in parties)
    for party in parties:
        assert [party.state.cut(j) for j in range(len(case.codes))] == [
            first.state.cut(j) for j in range(len(case.codes))
        ]


@settings(max_examples=60, deadline=None)
@given(st.data(), cases())
def test_a_winner_that_is_told_the_runner_up_does_what_enough_hidden_plans_would(data, case):
    owners = data.draw(owners_of(len(case.codes)))
    shown, batches = case.together(PartyTdsLiteral(), owners)
    hidden, planned = case.together(PartyTdsLiteral(runner_up="hidden", ahead=64), owners)
    assert shown[0].steps == hidden[0].steps
    assert batches == planned


@settings(max_examples=60, deadline=None)
@given(st.data(), cases())
def test_batches_take_no_more_rounds_than_steps(data, case):
    owners = data.draw(owners_of(len(case.codes)))
    batches = len(case.together(PartyTds(ahead=64), owners)[1])
    assert batches <= len(case.together(PartyTdsStepwise(), owners)[1])


@settings(max_examples=80, deadline=None)
@given(st.data(), cases(), st.sampled_from([2, 8, 64]))
def test_where_the_literal_rule_takes_the_same_steps_batches_take_no_more_rounds(data, case, ahead):
    """Whoever is further on the same steps, against a runner-up no better, ends no earlier."""
    owners = data.draw(owners_of(len(case.codes)))
    parties, batches = case.together(PartyTds(ahead=ahead), owners)
    literal, others = case.together(PartyTdsLiteral(ahead=ahead, runner_up="hidden"), owners)
    if literal[0].steps == parties[0].steps:
        assert len(batches) <= len(others)


def test_the_literal_rule_may_take_fewer_rounds_where_it_bars_its_own_way():
    """Once a is split, its child goes before the better b: then neither b nor d can be."""
    a = Hierarchy.from_paths([["x1", "x", "*"], ["x2", "x", "*"], ["y", "*"]])
    halves = Hierarchy.from_paths([["h1", "*"], ["h2", "*"]])
    case = Case(
        ("a", "b", "d"),
        (
            a.leaf_codes(["x1", "x1", "x2", "x2", "y", "y", "y", "y"]),
            np.array([0, 1, 0, 1, 0, 1, 0, 1]),
            np.array([0, 1, 0, 1, 1, 0, 0, 1]),
        ),
        tuple(Taxonomy.of_tree(tree) for tree in (a, halves, halves)),
        np.array([1, 1, 1, 1, 0, 1, 0, 1]),
        (IndexedRequirement((0, 1), 2), IndexedRequirement((0, 2), 2)),
    )
    parties, batches = case.together(PartyTds(), [[0, 1], [2]])
    literal, others = case.together(PartyTdsLiteral(), [[0, 1], [2]])
    assert [step.attribute for step in parties[0].steps] == [0, 1, 2]
    assert [step.attribute for step in literal[0].steps] == [0, 0]
    assert (len(batches), len(others)) == (2, 1)


@settings(max_examples=40, deadline=None)
@given(cases())
def test_a_party_that_loses_is_as_before(case):
    own = {j: case.codes[j] for j in range(len(case.codes))}
    party = PartyTds().party(case.ground([own]), own)
    first = party.bid()
    party.lose()
    assert party.bid() == first
    assert first == sorted(first, reverse=True)
    assert max(first) < 1 << (PartyTds().worth_bits(len(own)) - 1)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 5000), st.sampled_from([1, 2, 3, 5, 16, 17, 300, 65536]), st.integers(0, 99))
def test_packed_codes_come_back(rows, nodes, seed):
    codes = np.random.default_rng(seed).integers(0, nodes, rows).astype(np.uint16)
    packed = pack(codes, nodes)
    assert len(packed) == packed_size(rows, nodes)
    assert np.array_equal(unpack(packed, rows, nodes), codes)


def test_codes_of_two_children_take_a_bit_each():
    assert packed_size(8_000, 2) == 1_000
    assert packed_size(8_000, 5) == 3_000
    assert packed_size(8_000, 1) == 0


def test_bids_of_the_most_labels_fit_the_bits():
    assert PartyTds().worth_bits(3) >= int(np.log2(MOST_LABELS) * UNIT * 3).bit_length() + 1


@settings(max_examples=60, deadline=None)
@given(st.data(), cases(), st.integers(0, 999))
def test_raw_values_swapped_within_final_nodes_leave_every_message_byte_for_byte(data, case, seed):
    """Among rows of one final node and class, so that all counts and scores stay."""
    owners = data.draw(owners_of(len(case.codes)))
    parties, batches = case.together(PartyTds(), owners)
    rng = np.random.default_rng(seed)
    swapped = []
    for j, codes in enumerate(case.codes):
        mixed = codes.copy()
        for lo, hi in parties[0].state.cut(j):
            for label in np.unique(case.classes):
                rows = np.flatnonzero((lo <= codes) & (codes <= hi) & (case.classes == label))
                mixed[rows] = codes[rng.permutation(rows)]
        swapped.append(mixed)
    others, said = replace(case, codes=tuple(swapped)).together(PartyTds(), owners)
    # what is never chosen may be valid now: then the trace is another one
    if others[0].steps == parties[0].steps:
        assert said == batches


@settings(max_examples=60, deadline=None)
@given(st.data(), cases())
def test_the_length_of_a_batch_follows_from_what_everybody_knows(data, case):
    owners = data.draw(owners_of(len(case.codes)))
    replay = case.state()
    for _, batch in case.together(PartyTds(), owners)[1]:
        steps, packed = decode_steps(batch)
        expected = 0
        for root in batch_roots(steps):
            under = len(replay.rows[root.attribute][root.lo, root.hi])
            expected += packed_size(under, len(final_nodes(root, steps)))
        assert len(packed) == expected
        assert all(replay.step(step) for step in steps)


def follower():
    case = paper_case()
    return PartyTds().party(case.ground([{0, 1}, {2}]), {2: case.codes[2]})


def test_a_batch_says_its_steps_and_one_with_more_behind_it_is_refused():
    (winner, batch), *_ = paper_case().together(PartyTds(), [[0], [1], [2]])[1]
    steps, packed = decode_steps(batch)
    assert winner == 1
    assert [(s.attribute, s.starts) for s in steps] == [(1, (0, 36))]
    assert len(packed) == packed_size(34, 2)
    with pytest.raises(PartyError, match="wrong length"):
        follower().apply(batch + b"\0")


def numbers(*values):
    return np.array(values, dtype="<u4").tobytes()


@pytest.mark.parametrize(
    "batch",
    [
        numbers(1, 2, 0, 1, 2, 0, 1) + bytes(5),  # on an attribute of one's own
        numbers(1, 9, 0, 1, 2, 0, 1) + bytes(5),  # on no attribute
        numbers(1, 1, 0, 50, 2, 0, 1) + bytes(5),  # on a node that is not there
        numbers(1, 1, 0, 98, 2, 5, 40) + bytes(5),  # children that don't cover the node
        numbers(1, 1, 0, 98, 2, 0, 99) + bytes(5),  # a child outside of it
        numbers(1, 0, 0, 6, 2, 0, 5) + bytes(5),  # children that the hierarchy has not
        numbers(1, 1, 0, 98, 2, 0, 36) + bytes(5),  # everybody on one side, which is valid ...
    ],
)
def test_a_step_that_fits_nothing_agreed_is_refused(batch):
    if batch[4:8] == numbers(1) and batch.endswith(numbers(0, 36) + bytes(5)):
        batch = batch[:-5] + b"\x80" + bytes(4)  # ... but not one person alone
    with pytest.raises(PartyError):
        follower().apply(batch)
