"""One owner refuses what leaves too few of its values; all end with what one owner makes."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fusion_cases import Case, cases, owners_of, shown, values_by_group, vetoes, whether_diverse
from shoal.data.schema import IndexedRequirement, Taxonomy
from shoal.errors import PartyError
from shoal.fusion.ground import REFUSED, VALID
from shoal.fusion.methods.party_mondrian import PartyMondrian
from shoal.fusion.methods.party_tds import PartyTds, decode_steps
from shoal_papers.baselines.party_tds_variants import PartyTdsLiteral, PartyTdsStepwise


@settings(max_examples=120, deadline=None)
@given(
    st.data(),
    cases(),
    st.sampled_from([1, 2, 8, 64]),
    st.sampled_from(["gain-ratio", "gain"]),
    st.booleans(),
)
def test_refused_steps_leave_the_order_of_one_owner_who_knows_all(
    data, case, ahead, score, by_classes
):
    """Whether one of them judges by values that it alone knows, or all do by the classes."""
    case = replace(case, qids=case.qids[:1])  # over all attributes
    owners = data.draw(owners_of(len(case.codes)))
    judge, values, least = data.draw(vetoes(len(owners), len(case.classes)))
    asked = {"veto": (judge, values, least)}
    if by_classes:
        values, asked = case.classes, {"diverse": [(case.classes, least)]}
    state, steps = case.alone(score, whether_diverse(values, least))
    for rule in (PartyTds(score=score, ahead=ahead), PartyTdsStepwise(score=score)):
        parties, batches = case.together(rule, owners, **asked)
        for party in parties:
            assert party.steps == steps
            for j in range(len(case.codes)):
                assert np.array_equal(party.state.nodes(j), state.nodes(j))
        assert len(batches) <= 2 * sum(taxonomy.cells for taxonomy in case.taxonomies)


@settings(max_examples=80, deadline=None)
@given(
    st.data(),
    cases(),
    st.sampled_from([PartyTds(), PartyTdsLiteral(), PartyTdsStepwise(), PartyMondrian()]),
)
def test_every_published_group_has_the_values_that_its_owner_asks(data, case, rule):
    case = replace(case, qids=case.qids[:1])
    owners = data.draw(owners_of(len(case.codes)))
    judge, values, least = data.draw(vetoes(len(owners), len(case.classes)))
    run = case.in_turns if rule.takes_turns else case.together
    parties, _ = run(rule, owners, (judge, values, least))
    for party in parties:
        found = values_by_group(shown(party, len(case.codes)), values)
        assert len(found) == 1 or min(found) >= least


def small() -> Case:
    """Two numbers; halves of the first one have one of `VALUES` each, of the second one both."""
    return Case(
        ("a", "b"),
        (np.array([0, 0, 0, 0, 7, 7, 7, 7]), np.array([0, 0, 7, 7, 0, 0, 7, 7])),
        (Taxonomy(8, is_number=True), Taxonomy(8, is_number=True)),
        np.array([0, 0, 0, 0, 1, 1, 1, 1]),
        (IndexedRequirement((0, 1), 2),),
    )


VALUES = np.array([0, 0, 0, 0, 1, 1, 1, 1])
VETO = (1, VALUES, 2)


def test_a_worked_example_of_steps():
    """a is worth more, but its halves have one value each: refused, and never tried again."""
    parties, batches = small().together(PartyTds(), [[0], [1]], VETO)
    assert [owner for owner, _ in batches] == [0, 1]
    assert decode_steps(batches[0][1], fewest=0) == ([], b"")
    assert [step.attribute for step in parties[0].steps] == [1]
    assert values_by_group(shown(parties[0], 2), VALUES) == [2, 2]


def test_a_worked_example_of_cuts():
    """A refused cut is said as one that can't be made: nobody but the judge can tell why."""
    parties, batches = small().in_turns(PartyMondrian(), [[0], [1]], VETO)
    said = [
        np.frombuffer(batch[: len(batch) // 4 * 4], dtype="<u4").tolist() for _, batch in batches
    ]
    assert said[0] == [0, 0]
    assert said[1][:6] == [1, 2, 0, 3, 4, 7]
    assert values_by_group(shown(parties[1], 2), VALUES) == [2, 2]


def judge_and_owner(rule):
    owner, judge = small().parties(rule, [[0], [1]], VETO)
    if not rule.takes_turns:
        owner.bid()
        return owner, judge, owner.propose(0)
    return owner, judge, owner.propose()


@pytest.mark.parametrize("rule", [PartyTds(), PartyMondrian()], ids=lambda rule: rule.name)
def test_a_proposal_that_can_not_be_read_is_refused(rule):
    _, judge, proposal = judge_and_owner(rule)
    for cut in range(len(proposal)):
        with pytest.raises(PartyError):
            judge.judge(proposal[:cut])
    with pytest.raises(PartyError):
        judge.judge(proposal + b"\0")
    assert judge.judge(proposal) == REFUSED


@pytest.mark.parametrize("verdict", [b"", VALID + VALID, b"\2"])
def test_a_verdict_about_other_cuts_is_refused(verdict):
    owner, _, _ = judge_and_owner(PartyMondrian())
    with pytest.raises(PartyError, match="judges other cuts"):
        owner.decide(verdict)


@pytest.mark.parametrize("rule", [PartyTds(), PartyMondrian()], ids=lambda rule: rule.name)
def test_the_judge_takes_no_batch_that_it_would_refuse(rule):
    owner, judge, _ = judge_and_owner(rule)
    batch = owner.decide(VALID) if rule.takes_turns else owner.specialize(1)
    with pytest.raises(PartyError, match="breaks a promise"):
        judge.apply(batch)


def test_without_a_judge_a_batch_says_a_step():
    owner, follower = small().parties(PartyTds(), [[0], [1]])
    owner.bid()
    with pytest.raises(PartyError, match="can't be read"):
        follower.apply(owner.specialize(0))


@settings(max_examples=40, deadline=None)
@given(st.data(), cases(), st.integers(0, 3))
def test_what_the_judge_accepted_is_undone_before_the_batch(data, case, fewer):
    """A winner that keeps fewer steps than were accepted takes nobody elsewhere."""
    case = replace(case, qids=case.qids[:1])
    everything = list(range(len(case.codes)))
    veto = (1, data.draw(vetoes(2, len(case.classes)))[1], 1)
    winner, judge = case.parties(PartyTds(), [everything, []], veto)
    steps = sum(bid > 0 for bid in winner.bid())
    for number in range(steps):
        assert judge.judge(winner.propose(number)) == VALID
    judge.apply(winner.specialize(max(0, steps - fewer)))
    assert judge.steps == winner.steps
    for j in everything:
        assert np.array_equal(judge.state.nodes(j), winner.state.nodes(j))
