"""Global recoding: what a cut shows of every value."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import shoal
from sample_policies import content_of
from shoal.data.cut import Cut
from shoal.data.matrix import Matrix
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
        return shoal.publish(frame, content | {"method": {"name": "given"}})

    return publish


def policy(attributes, **more):
    return content_of(attributes, **more)


TREE = {"tree": {"north": ["a", "b"], "south": ["c", "d"]}}


def levels(*wanted):
    return lambda matrix: Cut.at_levels(matrix, wanted)


def test_every_value_is_generalized_alike_and_numbers_show_the_domains_grid(publish_cut):
    attributes = {
        "age": {"role": "quasi", "type": "number", "domain": [0, 120]},
        "at": {"role": "quasi", "hierarchy": TREE},
    }
    frame = pl.DataFrame({"age": [3, 9, 40, 41], "at": ["a", "b", "a", "a"]})
    starts = (np.array([0, 37]), np.array([0, 2]))
    out = publish_cut(frame, policy(attributes), lambda m: Cut(starts, np.zeros(4, bool)))
    assert out.data["age"].to_list() == ["[0, 36]", "[0, 36]", "[37, 120]", "[37, 120]"]
    assert out.data["at"].to_list() == ["north"] * 4
    assert out.certificate.holds


def test_decimals_and_orders_are_cut_on_their_own_grid(publish_cut):
    attributes = {
        "pay": {"role": "quasi", "type": "number", "domain": [0.5, 9.5]},
        "grade": {"role": "quasi", "type": "ordinal", "order": ["low", "mid", "high"]},
    }
    frame = pl.DataFrame(
        {"pay": ["1.25", "2", "7.5", "9.5"], "grade": ["low", "mid", "high", "high"]}
    )
    starts = (np.array([0, 250]), np.array([0, 2]))
    out = publish_cut(frame, policy(attributes), lambda m: Cut(starts, np.zeros(4, bool)))
    assert out.data["pay"].to_list() == ["[0.5, 2.99]", "[0.5, 2.99]", "[3.00, 9.5]", "[3.00, 9.5]"]
    assert out.data["grade"].to_list() == ["[low, mid]", "[low, mid]", "high", "high"]


def test_a_level_bears_the_labels_of_its_column_of_the_table(publish_cut, tmp_path):
    (tmp_path / "h.csv").write_text("a;A;left;*\nb;B;left;*\nc;C;right;*\nd;C;right;*\n")
    attributes = {"at": {"role": "quasi", "hierarchy": str(tmp_path / "h.csv")}}
    frame = pl.DataFrame({"at": ["a", "a", "b", "b", "c", "d"]})
    assert publish_cut(frame, policy(attributes), levels(1)).data["at"].to_list() == [
        "A",
        "A",
        "B",
        "B",
        "C",
        "C",
    ]
    assert publish_cut(frame, policy(attributes), levels(3)).data["at"].to_list() == ["*"] * 6


def test_a_suppressed_record_shows_the_mark_and_is_in_no_class(publish_cut):
    attributes = {
        "at": {"role": "quasi", "hierarchy": TREE},
        "sex": {"role": "quasi"},
        "ill": {"role": "sensitive"},
    }
    frame = pl.DataFrame({"at": ["a", "b", "c"], "sex": ["f", "f", "m"], "ill": ["x", "y", "z"]})
    out = publish_cut(
        frame,
        policy(attributes),
        lambda m: Cut.at_levels(m, (1, 0), np.array([False, False, True])),
    )
    assert out.data.rows() == [("north", "f", "x"), ("north", "f", "y"), ("*", "*", "*")]
    assert out.certificate["records"] == {"in": 3, "out": 3, "suppressed": 1, "withheld": 1}
    assert out.certificate["classes"]["count"] == 1
    audited = shoal.audit(
        out.data, policy(attributes) | {"method": {"name": "given"}}, frame, trace=out.trace
    )
    assert audited.holds
    assert audited["records"]["suppressed"] == 1


def test_a_second_cut_recodes_what_the_first_suppressed(publish_cut):
    attributes = {"at": {"role": "quasi", "hierarchy": TREE}, "sex": {"role": "quasi"}}
    frame = pl.DataFrame({"at": ["a", "a", "c", "d", "b"], "sex": ["f", "f", "m", "m", "m"]})

    def twice(matrix):
        rest = Cut.at_levels(matrix, (1, 0), np.array([False, False, True]))
        return Cut.at_levels(
            matrix, (0, 0), np.array([False, False, True, True, True]), next_round=rest
        )

    out = publish_cut(frame, policy(attributes), twice)
    assert out.data["at"].to_list() == ["a", "a", "south", "south", "*"]
    assert out.data["sex"].to_list() == ["f", "f", "m", "m", "*"]


def test_a_cut_that_breaks_a_promise_is_withheld(publish_cut):
    frame = pl.DataFrame({"at": ["a", "b", "c"]})
    with pytest.raises(shoal.PromiseError):
        publish_cut(frame, policy({"at": {"role": "quasi", "hierarchy": TREE}}), levels(1))


def test_each_promise_counts_the_cells_of_its_own_attributes(publish_cut):
    attributes = {"at": {"role": "quasi", "hierarchy": TREE}, "sex": {"role": "quasi"}}
    frame = pl.DataFrame({"at": ["a", "b", "c", "d"], "sex": ["f", "m", "f", "m"]})
    asked = [{"model": "k-anonymity", "attributes": [name], "k": 2} for name in attributes]
    out = publish_cut(frame, policy(attributes) | {"promises": asked}, levels(1, 0))
    assert [(p["attributes"], p["measured"]) for p in out.certificate["promises"]] == [
        (["at"], 2),
        (["sex"], 2),
    ]
    assert out.certificate["classes"]["min"] == 1


def test_a_quasi_identifier_in_no_promise_is_refused(publish_cut):
    attributes = {"at": {"role": "quasi", "hierarchy": TREE}, "sex": {"role": "quasi"}}
    frame = pl.DataFrame({"at": ["a", "b"], "sex": ["f", "m"]})
    asked = [{"model": "k-anonymity", "attributes": ["at"], "k": 2}]
    with pytest.raises(shoal.InputError, match=r"'sex'.*no k-anonymity promise"):
        publish_cut(frame, policy(attributes) | {"promises": asked}, levels(1, 0))


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


def test_a_code_lies_in_the_last_span_that_starts_at_or_before_it():
    cut = Cut((np.array([0]), np.array([0, 3, 4, 9])), np.zeros(1, dtype=bool))
    codes = np.arange(11)
    spans = cut.spans(1, codes)
    assert spans.dtype == np.int32
    assert spans.tolist() == [sum(start <= code for start in (3, 4, 9)) for code in codes]
    assert cut.spans(0, codes).tolist() == [0] * 11


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
    codes = data.draw(
        st.lists(st.lists(st.integers(0, 4), min_size=d, max_size=d), min_size=n, max_size=n)
    )
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
    content = without_means(content)
    content = content | {
        "promises": [{"model": "k-anonymity", "k": 2}],
        "render": {"order": "input"},
    }
    made = {}

    def anywhere(matrix):
        starts = []
        for j in range(matrix.attributes):
            whole = int(matrix.codes[:, j].max(initial=0))
            if matrix.is_tree(j):
                starts.append(
                    matrix.starts_at(j, data.draw(st.integers(0, int(matrix.heights[j]))))
                )
            else:
                points = data.draw(st.lists(st.integers(1, max(whole, 1)), max_size=3))
                missing = [int(matrix.missing[j])] if matrix.missing[j] >= 0 and points else []
                starts.append(np.unique([0, *points, *missing]).astype(np.int32))
        made["cells"] = np.column_stack(
            [Cut(tuple(starts), None).spans(j, c) for j, c in enumerate(matrix.codes.T)]
        )
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
        cells = made["cells"][made["kept"]]
        shown = out.classes[kept]
        assert (
            len(np.unique(cells, axis=0)) == len(np.unique(shown)) or content["missing"] == "value"
        )
