"""Global recoding: what a cut shows of every value."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import shoal
from sample_policies import content_of
from shoal.data.partition import Cut, Matrix
from shoal.policy import registry
from strategies import policies_with_tables, without_means


@dataclass(frozen=True)
class Given:
    """A cut that the test hands over as a recipe."""

    name: ClassVar[str] = "given"
    paper: ClassVar[str] = "none"
    recipe: ClassVar = staticmethod(lambda matrix: None)

    def cut(self, matrix, promises, rng, progress=lambda stage: None):
        return Given.recipe(matrix)


@pytest.fixture
def publish_cut(monkeypatch):
    """Publishes by a cut made from the matrix, whatever the policy's method."""
    known = registry.methods() | {"given": registry.Method("given", "publish", "none", Given)}
    monkeypatch.setattr(registry, "methods", lambda: known)

    def publish(frame, content, recipe):
        monkeypatch.setattr(Given, "recipe", staticmethod(recipe))
        return shoal.publish(pl.DataFrame(frame), content | {"method": {"name": "given"}})

    return publish


AT = {"role": "quasi", "hierarchy": {"tree": {"north": ["a", "b"], "south": ["c", "d"]}}}
SEX = {"role": "quasi"}


def levels(*wanted):
    return lambda matrix: Cut.at_levels(matrix, wanted)


AGE = {"role": "quasi", "type": "number", "domain": [0, 120]}
PAY = {"role": "quasi", "type": "number", "domain": [0.5, 9.5]}
GRADE = {"role": "quasi", "type": "ordinal", "order": ["low", "mid", "high"]}


@pytest.mark.parametrize(
    ("settings", "cells", "starts", "shown"),
    [
        (AGE, [3, 9, 40, 41], [0, 37], ["[0, 36]"] * 2 + ["[37, 120]"] * 2),
        (AT, list("abaa"), [0, 2], ["north"] * 4),
        (PAY, ["1.25", "2", "7.5", "9.5"], [0, 250], ["[0.5, 2.99]"] * 2 + ["[3.00, 9.5]"] * 2),
        (GRADE, ["low", "mid", "high", "high"], [0, 2], ["[low, mid]"] * 2 + ["high"] * 2),
    ],
    ids=["number", "tree", "decimals", "order"],
)
def test_every_value_is_generalized_alike_on_its_own_grid(
    publish_cut, settings, cells, starts, shown
):
    cut = Cut((np.array(starts),), np.zeros(4, bool))
    out = publish_cut({"q": cells}, content_of({"q": settings}), lambda matrix: cut)
    assert out.data["q"].to_list() == shown
    assert out.certificate.holds


def test_a_level_bears_the_labels_of_its_column_of_the_table(publish_cut, tmp_path):
    (tmp_path / "h.csv").write_text("a;A;left;*\nb;B;left;*\nc;C;right;*\nd;C;right;*\n")
    content = content_of({"at": {"role": "quasi", "hierarchy": str(tmp_path / "h.csv")}})
    for level, shown in ((1, list("AABBCC")), (3, ["*"] * 6)):
        out = publish_cut({"at": list("aabbcd")}, content, levels(level))
        assert out.data["at"].to_list() == shown


def test_a_suppressed_record_shows_the_mark_and_is_in_no_class(publish_cut):
    content = content_of({"at": AT, "sex": SEX, "ill": "sensitive"})
    frame = pl.DataFrame({"at": list("abc"), "sex": list("ffm"), "ill": list("xyz")})
    suppressed = np.array([False, False, True])
    out = publish_cut(frame, content, lambda matrix: Cut.at_levels(matrix, (1, 0), suppressed))
    assert out.data.rows() == [("north", "f", "x"), ("north", "f", "y"), ("*", "*", "*")]
    assert out.certificate["records"] == {"in": 3, "out": 3, "suppressed": 1, "withheld": 1}
    assert out.certificate["classes"]["count"] == 1
    audited = shoal.audit(out.data, out.policy, frame, trace=out.trace)
    assert audited.holds
    assert audited["records"]["suppressed"] == 1


def test_a_second_cut_recodes_what_the_first_suppressed(publish_cut):
    def twice(matrix):
        first, second = np.array([False, False, True, True, True]), np.array([False, False, True])
        rest = Cut.at_levels(matrix, (1, 0), second)
        return Cut.at_levels(matrix, (0, 0), first, next_round=rest)

    frame = {"at": list("aacdb"), "sex": list("ffmmm")}
    out = publish_cut(frame, content_of({"at": AT, "sex": SEX}), twice)
    assert out.data["at"].to_list() == ["a", "a", "south", "south", "*"]
    assert out.data["sex"].to_list() == ["f", "f", "m", "m", "*"]


def test_a_cut_that_breaks_a_promise_is_withheld(publish_cut):
    with pytest.raises(shoal.PromiseError):
        publish_cut({"at": list("abc")}, content_of({"at": AT}), levels(1))


def test_each_promise_counts_the_cells_of_its_own_attributes_and_none_is_left_out(publish_cut):
    content = content_of({"at": AT, "sex": SEX})
    content["promises"] = [
        {"model": "k-anonymity", "attributes": [name], "k": 2} for name in ("at", "sex")
    ]
    frame = {"at": list("abcd"), "sex": list("fmfm")}
    out = publish_cut(frame, content, levels(1, 0))
    measured = [
        (promise["attributes"], promise["measured"]) for promise in out.certificate["promises"]
    ]
    assert measured == [(["at"], 2), (["sex"], 2)]
    assert out.certificate["classes"]["min"] == 1
    content["promises"].pop()
    with pytest.raises(shoal.InputError, match=r"'sex'.*no k-anonymity promise"):
        publish_cut(frame, content, levels(1, 0))


def matrix_of(codes):
    """A matrix of linear attributes; only its codes and heights matter."""
    codes = np.array(codes, dtype=np.int32)
    d = codes.shape[1]
    empty = np.zeros(0, dtype=np.int32)
    return Matrix(
        codes,
        scale=np.ones(d),
        base=np.full(d, -1, dtype=np.int32),
        parent=empty,
        last=empty,
        width=np.zeros(0),
        heights=np.ones(d, dtype=np.int32),
    )


def test_a_cut_at_levels_suppresses_nobody_unless_it_says_whom():
    matrix = matrix_of([[3, 0], [1, 2], [0, 1]])
    made = Cut.at_levels(matrix, (1, 0), search_statistics={"searched": 4})
    assert made.suppressed.dtype == bool
    assert made.suppressed.tolist() == [False] * 3
    assert made.levels == (1, 0)
    assert made.search_statistics == {"searched": 4}
    assert [starts.tolist() for starts in made.starts] == [
        matrix.starts_at(0, 1).tolist(),
        matrix.starts_at(1, 0).tolist(),
    ]
    some = np.array([False, True, False])
    assert Cut.at_levels(matrix, (1, 0), some).suppressed.tolist() == some.tolist()


@given(st.data())
def test_every_record_shows_the_first_cut_that_does_not_suppress_it(data):
    rounds = data.draw(st.integers(1, 4))
    waiting = list(range(data.draw(st.integers(0, 8))))
    expected = dict.fromkeys(waiting, -1)
    marks = []
    for which in range(rounds):
        marked = data.draw(st.lists(st.booleans(), min_size=len(waiting), max_size=len(waiting)))
        marks.append(np.array(marked, dtype=bool))
        expected |= {i: which for i, later in zip(waiting, marked, strict=True) if not later}
        waiting = [i for i, later in zip(waiting, marked, strict=True) if later]
    cut = None
    for suppressed in reversed(marks):
        cut = Cut((), suppressed, next_round=cut)
    assert [made.suppressed.tolist() for made in cut.rounds] == [m.tolist() for m in marks]
    shown = cut.round_of_record()
    assert shown.dtype == np.int32
    assert shown.tolist() == list(expected.values())


@given(st.data())
def test_classes_are_the_records_of_one_round_that_show_the_same_spans(data):
    n, d = data.draw(st.integers(1, 9)), data.draw(st.integers(1, 3))
    row = st.lists(st.integers(0, 4), min_size=d, max_size=d)
    codes = data.draw(st.lists(row, min_size=n, max_size=n))
    ends = st.lists(st.sets(st.integers(1, 4)), min_size=d, max_size=d)
    first, second = data.draw(ends), data.draw(ends)
    late = data.draw(st.lists(st.booleans(), min_size=n, max_size=n))
    gone = data.draw(st.lists(st.booleans(), min_size=sum(late), max_size=sum(late)))

    def cut(inner, suppressed, **more):
        starts = tuple(np.array([0, *sorted(each)], dtype=np.int32) for each in inner)
        return Cut(starts, np.array(suppressed, dtype=bool), **more)

    found = cut(first, late, next_round=cut(second, gone)).partition(matrix_of(codes)).labels
    expected, left = [], iter(gone)
    for row, is_late in zip(codes, late, strict=True):
        if is_late and next(left):
            expected.append(None)
        else:
            inner = second if is_late else first
            spans = [sum(end <= code for end in e) for e, code in zip(inner, row, strict=True)]
            expected.append((is_late, *spans))
    assert [label < 0 for label in found] == [cell is None for cell in expected]
    pairs = {(label, cell) for label, cell in zip(found.tolist(), expected, strict=True) if cell}
    assert len(pairs) == len({cell for _, cell in pairs}) == len({label for label, _ in pairs})


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_any_cut_covers_the_truth_and_is_read_back_as_it_was_meant(publish_cut, data):
    """Whatever is cut where: equal spans are equal cells, and every cell covers its value."""
    content, frame = data.draw(policies_with_tables())
    promises = [{"model": "k-anonymity", "k": 2}]
    content = without_means(content) | {"promises": promises, "render": {"order": "input"}}
    made = {}

    def anywhere(matrix):
        starts = []
        for j in range(matrix.attributes):
            whole = int(matrix.codes[:, j].max(initial=0))
            if matrix.is_tree(j):
                level = data.draw(st.integers(0, int(matrix.heights[j])))
                starts.append(matrix.starts_at(j, level))
            else:
                points = data.draw(st.lists(st.integers(1, max(whole, 1)), max_size=3))
                missing = [int(matrix.missing[j])] if matrix.missing[j] >= 0 and points else []
                starts.append(np.unique([0, *points, *missing]).astype(np.int32))
        spans = Cut(tuple(starts), None).spans
        made["cells"] = np.column_stack([spans(j, c) for j, c in enumerate(matrix.codes.T)])
        alike = np.unique(made["cells"], axis=0, return_inverse=True, return_counts=True)
        made["kept"] = alike[2][alike[1].ravel()] >= 2
        return Cut(tuple(starts), ~made["kept"])

    try:
        out = publish_cut(frame, content, anywhere)
    except (shoal.InfeasibleError, shoal.PromiseError):
        return  # too few people in a class: records were counted here, people by the audit
    assert out.certificate["faults"] == {"uncovered": 0, "changed": 0}
    kept = out.classes >= 0
    if made and kept.sum() == made["kept"].sum():
        cells = np.unique(made["cells"][made["kept"]], axis=0)
        assert len(cells) == len(np.unique(out.classes[kept])) or content["missing"] == "value"
