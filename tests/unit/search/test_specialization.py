"""Top-down specialization keeps every k, stops only where nothing more is valid, and equals its
plain twin.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import shoal
from fusion_cases import Case, cases
from naive_specialization import NaiveTds
from sample_policies import content_of
from shoal.data.taxonomy import IndexedRequirement, Taxonomy
from shoal.search.specialization import (
    SCORES,
    Specialization,
    Step,
    best_split,
    spans_of,
    without_implied,
)


def naive_of(case, score):
    trees = [
        (
            None
            if t.is_number
            else {
                node: spans_of(Step(0, *node, tuple(s.tolist()))) for node, s in t.children.items()
            }
        )
        for t in case.taxonomies
    ]
    rows = list(zip(*(codes.tolist() for codes in case.codes), strict=True))
    qids = [(qid.attributes, qid.k) for qid in case.qids]
    return NaiveTds(
        rows, case.classes.tolist(), trees, [t.cells for t in case.taxonomies], qids, score
    )


TREE = {
    (0, 7): [0, 4, 6],
    (0, 3): [0, 2],
    (0, 1): [0, 1],
    (2, 3): [2, 3],
    (4, 5): [4, 5],
    (6, 7): [6, 7],
}
IMPLIED = Case(
    names=("a0", "a1"),
    codes=(np.array([10, 7, 6, 3, 3, 0, 0, 0]), np.array([1, 6, 5, 7, 4, 4, 7, 5])),
    taxonomies=(
        Taxonomy(12, {}, is_number=True),
        Taxonomy(8, {node: np.array(at) for node, at in TREE.items()}),
    ),
    classes=np.array([1, 2, 1, 1, 0, 0, 1, 0]),
    qids=(IndexedRequirement((0, 1), 1), IndexedRequirement((0,), 1)),
)


@settings(max_examples=60, deadline=None)
@example(IMPLIED, "gain-per-loss")  # the second QID is implied by the first
@given(cases(), st.sampled_from(SCORES))
def test_the_columns_take_the_steps_of_the_plain_twin(case, score):
    if any(qid.k > len(case.classes) for qid in case.qids):
        return
    state, steps = case.alone(score)
    naive = naive_of(case, score).run()
    assert [tuple(step) for step in steps] == naive.steps
    assert [state.cut(j) for j in range(len(case.codes))] == naive.cuts


@settings(max_examples=60, deadline=None)
@given(cases(), st.sampled_from(SCORES))
def test_every_qid_keeps_its_k_and_no_further_step_would(case, score):
    state, _ = case.alone(score)
    naive = naive_of(case, score)
    naive.cuts = [state.cut(j) for j in range(len(case.codes))]
    assert all(naive.least(qid, naive.cuts) >= k for qid, k in naive.qids)
    assert not naive.step()


@settings(max_examples=40, deadline=None)
@given(cases(), st.data())
def test_a_step_taken_back_leaves_no_trace(case, data):
    state = case.state()
    before = [(g.labels.copy(), g.sizes[: g.count].copy()) for g in state.groups]
    done = []
    for j, taxonomy in enumerate(case.taxonomies):
        starts = taxonomy.children.get(taxonomy.root)
        step = Step(j, *taxonomy.root, (0, 5) if starts is None else tuple(starts.tolist()))
        if data.draw(st.booleans()) and (undo := state.step(step)) is not None:
            done.append(undo)
    for undo in reversed(done):
        state.undo(undo)
    for groups, (labels, sizes) in zip(state.groups, before, strict=True):
        assert np.array_equal(groups.labels, labels)
        assert np.array_equal(groups.sizes[: groups.count], sizes)
        assert (groups.slots == -1).all()
    assert all(state.cut(j) == [t.root] for j, t in enumerate(case.taxonomies))


def test_a_step_reads_the_rows_under_its_node_alone():
    state = Specialization(
        [np.array([0] * 90 + [1] * 5 + [2] * 5)], [3], [IndexedRequirement((0,), 5)]
    )
    assert state.step(Step(0, 0, 2, (0, 1)))
    before = state.touched
    assert state.step(Step(0, 1, 2, (1, 2)))
    assert state.touched - before == 10


def test_a_split_begins_at_the_lowest_of_equally_good_values_that_occur():
    counts = np.array([[0, 0], [3, 0], [3, 0], [3, 0], [3, 3], [3, 3]])  # cells 0 and 3 are in use
    assert best_split(counts, 0, 4)[0] == (0, 3)


def test_a_number_of_one_value_is_no_candidate():
    assert best_split(np.array([[0, 0], [0, 0], [5, 2], [5, 2]]), 0, 2)[0] is None


def test_a_qid_within_another_of_no_smaller_k_is_dropped():
    qids = [
        IndexedRequirement((0,), 3),
        IndexedRequirement((0, 1), 3),
        IndexedRequirement((1,), 5),
    ]
    assert without_implied(qids) == (IndexedRequirement((0, 1), 3), IndexedRequirement((1,), 5))
    assert without_implied([IndexedRequirement((0,), 2), IndexedRequirement((0,), 2)]) == (
        IndexedRequirement((0,), 2),
    )


def test_a_category_without_records_under_a_node_is_left_alone():
    taxonomy = Taxonomy(
        4, {(0, 3): np.array([0, 2]), (0, 1): np.array([0, 1]), (2, 3): np.array([2, 3])}
    )
    from fusion_cases import Case

    case = Case(
        ("a",),
        (np.array([0, 0, 1, 1]),),
        (taxonomy,),
        np.array([0, 0, 1, 1]),
        (IndexedRequirement((0,), 2),),
    )
    state, steps = case.alone()
    assert [tuple(s)[1:3] for s in steps] == [(0, 3), (0, 1)]
    assert state.cut(0) == [(0, 0), (1, 1), (2, 3)]


def policy(**more):
    content = content_of(
        {
            "age": {"role": "quasi", "type": "number", "domain": [0, 99]},
            "sex": {"role": "quasi", "hierarchy": {"tree": ["f", "m"]}},
            "ill": {"role": "sensitive"},
        },
        3,
        method={"name": "tds"},
        label="ill",
    )
    return content | more


def frame(rows):
    import polars as pl

    return pl.DataFrame(rows, schema=["age", "sex", "ill"], orient="row")


def test_without_a_label_tds_says_what_it_needs():
    table = frame([[1, "f", "u"]] * 5)
    content = policy()
    content["attributes"]["more"] = {"role": "drop"}
    del content["label"]
    content["attributes"]["ill"]["role"] = "plain"
    del content["attributes"]["more"]
    with pytest.raises(shoal.InputError, match="label"):
        shoal.publish(table, content)


def test_tds_keeps_promises_beyond_k_at_every_step():
    table = frame([[a, "f" if a % 2 else "m", "uvw"[a % 3]] for a in range(30)])
    promises = [
        {"model": "k-anonymity", "k": 3},
        {"model": "l-diversity", "attribute": "ill", "l": 3, "kind": "distinct"},
    ]
    published = shoal.publish(table, policy(promises=promises))
    assert published.certificate.holds
    assert published.certificate["classes"]["count"] > 1


@pytest.mark.parametrize(
    "promise",
    [{"model": "k-anonymity", "k": 2}, {"model": "sample-uniqueness", "threshold": 0}],
    ids=["k", "alone"],
)
def test_two_records_of_one_person_count_once_for_tds(promise):
    table = frame([[a // 2, "f", "uv"[a % 2]] for a in range(12)]).with_columns(
        who=__import__("polars").Series([a // 4 for a in range(12)])
    )
    content = policy(promises=[promise])
    content["attributes"]["who"] = {"role": "subject"}
    published = shoal.publish(table, content)
    assert published.certificate.holds
