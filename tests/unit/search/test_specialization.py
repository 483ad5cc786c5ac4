"""Top-down specialization keeps every k, stops only where nothing more is valid, and equals its
plain twin.
"""

import numpy as np
import polars as pl
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

import shoal
from fusion_cases import Case, cases
from naive_specialization import NaiveTds
from sample_policies import content_of
from shoal.data.schema import IndexedRequirement, Taxonomy
from shoal.search.specialization import SCORES, Specialization, Step, spans_of, without_implied


def naive_of(case, score):
    trees = [
        None
        if t.is_number
        else {at: spans_of(Step(0, *at, tuple(s.tolist()))) for at, s in t.children.items()}
        for t in case.taxonomies
    ]
    rows = list(zip(*(codes.tolist() for codes in case.codes), strict=True))
    qids = [(qid.attributes, qid.k) for qid in case.qids]
    cells = [t.cells for t in case.taxonomies]
    return NaiveTds(rows, case.classes.tolist(), trees, cells, qids, score)


def tree(cells: int, splits: dict) -> Taxonomy:
    return Taxonomy(cells, {node: np.array(at) for node, at in splits.items()})


HALVES = {(0, 3): [0, 2], (0, 1): [0, 1], (2, 3): [2, 3]}
EIGHT = {(0, 7): [0, 4, 6], **HALVES, (4, 5): [4, 5], (6, 7): [6, 7]}
IMPLIED = Case(
    names=("a0", "a1"),
    codes=(np.array([10, 7, 6, 3, 3, 0, 0, 0]), np.array([1, 6, 5, 7, 4, 4, 7, 5])),
    taxonomies=(Taxonomy(12, {}, is_number=True), tree(8, EIGHT)),
    classes=np.array([1, 2, 1, 1, 0, 0, 1, 0]),
    qids=(IndexedRequirement((0, 1), 1), IndexedRequirement((0,), 1)),
)
PAIRS = np.array([0, 0, 1, 1])
HALF_EMPTY = Case(("a",), (PAIRS,), (tree(4, HALVES),), PAIRS, (IndexedRequirement((0,), 2),))


@settings(max_examples=60)
@example(IMPLIED, "gain-per-loss")  # the second QID is implied by the first
@example(HALF_EMPTY, "gain-ratio")  # a node without records is left alone
@given(cases(), st.sampled_from(SCORES))
def test_the_columns_take_the_steps_of_the_plain_twin_and_stop_where_none_keeps_every_k(
    case, score
):
    assume(all(qid.k <= len(case.classes) for qid in case.qids))
    state, steps = case.alone(score)
    naive = naive_of(case, score).run()
    assert [tuple(step) for step in steps] == naive.steps
    assert [state.cut(j) for j in range(len(case.codes))] == naive.cuts
    assert all(naive.least(qid, naive.cuts) >= k for qid, k in naive.qids)


@settings(max_examples=40)
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


def test_a_qid_within_another_of_no_smaller_k_is_dropped():
    first, both, second = (((0,), 3), ((0, 1), 3), ((1,), 5))
    qids = [IndexedRequirement(*qid) for qid in (first, both, second, second)]
    assert without_implied(qids) == (qids[1], qids[2])


AGE = {"role": "quasi", "type": "number", "domain": [0, 99]}
SEX = {"role": "quasi", "hierarchy": {"tree": ["f", "m"]}}
K3 = {"model": "k-anonymity", "k": 3}
DISTINCT = {"model": "l-diversity", "attribute": "ill", "l": 3, "kind": "distinct"}


def published(rows, *promises, ill="sensitive", **more):
    frame = pl.DataFrame(rows, schema=["age", "sex", "ill", "who"], orient="row")
    roles = {"age": AGE, "sex": SEX, "ill": ill, "who": "subject"}
    words = {"promises": [*promises], "method": {"name": "tds"}} | more
    return shoal.publish(frame, content_of(roles, **words)).certificate


def test_without_a_label_tds_says_what_it_needs():
    with pytest.raises(shoal.InputError, match="label"):
        published([[1, "f", "u", i] for i in range(5)], K3, ill="plain")


def test_tds_keeps_promises_beyond_k_at_every_step():
    rows = [[a, "mf"[a % 2], "uvw"[a % 3], a] for a in range(30)]
    certificate = published(rows, K3, DISTINCT, label="ill")
    assert certificate.holds
    assert certificate["classes"]["count"] > 1


@pytest.mark.parametrize(
    "promise",
    [{"model": "k-anonymity", "k": 2}, {"model": "sample-uniqueness", "threshold": 0}],
    ids=["k", "alone"],
)
def test_two_records_of_one_person_count_once_for_tds(promise):
    rows = [[a // 2, "f", "uv"[a % 2], a // 4] for a in range(12)]
    assert published(rows, promise, label="ill").holds
