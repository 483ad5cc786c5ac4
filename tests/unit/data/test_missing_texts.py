"""Several texts for "no value" in a sensitive column: no promise holds because of them."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import naive
import shoal
from sample_policies import content_of
from shoal.data.classes import Classes, encode_sensitive
from shoal.data.hierarchies.hierarchy import Hierarchy
from shoal.data.schema import Attribute, Kind, Role, Schema
from shoal.data.table import encode_text
from shoal.errors import InputError
from shoal.privacy.alpha_k_anonymity import AlphaKAnonymity
from shoal.privacy.beta_likeness import BetaLikeness
from shoal.privacy.delta_disclosure import DeltaDisclosure
from shoal.privacy.l_diversity import LDiversity
from shoal.privacy.p_sensitive_k_anonymity import PSensitiveKAnonymity
from shoal.privacy.t_closeness import TCloseness

MISSING = ("", "refused", "unknown")
TREE = Hierarchy.from_paths([["1", "low", "*"], ["2", "low", "*"], ["3", "high", "*"]])
KINDS = {
    "equal": Attribute("s", Role.SENSITIVE),
    "ordered": Attribute("s", Role.SENSITIVE, Kind.NUMBER),
    "hierarchical": Attribute("s", Role.SENSITIVE, hierarchy=TREE),
}


def encoded(cells, distance="equal"):
    attribute = KINDS[distance]
    schema = Schema((attribute,), missing_values=MISSING)
    column, wrong = encode_sensitive(
        attribute, encode_text(pl.Series("s", cells, pl.String)), schema
    )
    assert not wrong
    return column


def classes_of(cells, labels, distance="equal"):
    labels = np.array(labels, dtype=np.int32)
    count = int(labels.max(initial=-1)) + 1
    return Classes(labels, count, None, {"s": encoded(cells, distance)})


def measured(promise, classes):
    return promise.measure(classes).tolist()


REFUSED = (["", "", "flu", "flu", "refused", "refused", "flu", "flu"], [0] * 4 + [1] * 4)


def test_a_class_without_answer_and_one_that_refused():
    """A quarter of the table refused: in one class half of it did, in the other nobody."""
    classes = classes_of(*REFUSED)
    assert measured(TCloseness(("s",), 0.1), classes) == [0.25, 0.25]
    assert measured(LDiversity("s", 2), classes) == [2, 2]
    # half of a class has what a quarter of the table has: it gains once its share
    assert measured(BetaLikeness(("s",), 1), classes)[0] == pytest.approx(1.0)
    assert measured(DeltaDisclosure(("s",), 1), classes) == [np.inf, np.inf]


def test_the_audit_of_such_a_file():
    """The attack: call it "refused" in one class, and its patients stand out in a t of 0."""
    frame = pl.DataFrame({"age": ["1"] * 4 + ["2"] * 4, "ill": REFUSED[0]})
    near = {"model": "t-closeness", "attributes": ["ill"], "t": 0.1}
    three = {"model": "l-diversity", "attribute": "ill", "l": 3}
    columns = {"age": {"role": "quasi", "type": "number"}, "ill": "sensitive"}
    policy = content_of(columns, 2, near, three, missing_values=["", "refused"])
    _, close, diverse = shoal.audit(frame, policy)["promises"]
    assert (close["measured"], close["holds"]) == (0.25, False)
    assert (diverse["measured"], diverse["holds"]) == (2, False)


def test_a_designated_text_is_told_from_others_for_no_value_in_a_hierarchy_too():
    flat = classes_of(["", "refused", "unknown", "a", "a", "b"], [0] * 6)
    designated = AlphaKAnonymity("s", 0.5, 2, ("refused", "b"))
    assert measured(designated, flat) == pytest.approx([1 / 6])
    classes = classes_of(["", "refused", "refused", "1"], [0] * 4, "hierarchical")
    column = classes.sensitive["s"]
    assert [column.code_of(text) for text in ("1", "3", "", "refused", "x")] == [0, 2, 3, 4, None]
    assert measured(AlphaKAnonymity("s", 0.5, 2, ("refused",)), classes) == [0.5]


def test_a_joint_distance_tells_the_texts_apart():
    number = encoded(["", "", "refused", "refused"], "ordered")
    labels = np.array([0, 0, 1, 1], dtype=np.int32)
    classes = Classes(labels, 2, None, {"s": number, "o": encoded(["a", "b"] * 2)})
    assert measured(TCloseness(("s", "o"), 0.5, joint=True), classes) == [0.5, 0.5]


CELLS = st.sampled_from(["1", "2", "3", *MISSING])


@given(st.data(), st.sampled_from(sorted(KINDS)))
def test_against_the_definition(data, distance):
    cells = data.draw(st.lists(CELLS, min_size=1, max_size=10))
    labels = data.draw(st.lists(st.integers(-1, 1), min_size=len(cells), max_size=len(cells)))
    column = encoded(cells, distance)
    classes = Classes(np.array(labels, dtype=np.int32), 2, None, {"s": column})
    found = TCloseness(("s",), 0.2).measure(classes)
    spread = LDiversity("s", 2).measure(classes)
    for which in (0, 1):
        expected = naive.t_with_missing_texts(
            labels, cells, MISSING, which, distance, ["1", "2", "3"]
        )
        wanted = np.nan if expected is None else float(expected)
        assert found[which] == pytest.approx(wanted, nan_ok=True)
        inside = (cell for cell, label in zip(cells, labels, strict=True) if label == which)
        assert spread[which] == len({None if cell in MISSING else cell for cell in inside})


@given(st.lists(st.tuples(CELLS, st.integers(0, 1)), min_size=1, max_size=10))
@pytest.mark.parametrize("distance", sorted(KINDS))
def test_no_promise_gains_by_a_second_text(distance, rows):
    """Written as one text, every promise of counts measures the same and t no more."""
    cells, labels = zip(*rows, strict=True)
    one = ["" if cell in MISSING else cell for cell in cells]
    apart, merged = (classes_of(list(c), labels, distance) for c in (cells, one))
    for promise in (
        LDiversity("s", 2),
        LDiversity("s", 2, "entropy"),
        LDiversity("s", 2, "recursive", 2.5),
        AlphaKAnonymity("s", 0.5, 2),
        PSensitiveKAnonymity(("s",), 2, 2),
    ):
        assert np.array_equal(promise.measure(apart), promise.measure(merged), equal_nan=True)
    close = TCloseness(("s",), 0.2)
    far, near = close.measure(apart), close.measure(merged)
    assert (np.isnan(far) | (far >= near - 1e-12)).all()


@pytest.mark.parametrize(
    ("kind", "cells", "says"),
    [
        (
            "category",
            ["x", "", "x", "n/a"],
            '1 cell is empty (row 2); add "" to missing_values, or fill it',
        ),
        ("category", ["x", "", None, "x"], "2 cells are empty (rows 2, 3); add"),
        ("number", ["1", "", "n/a", "2"], "empty cell (row 2); add \"\" to 'missing_values'"),
    ],
)
def test_an_empty_cell_that_is_not_declared_missing_is_said_to_be_one(kind, cells, says):
    asked = {"a": {"role": "quasi", "type": kind}}
    policy = content_of(asked, other="plain", missing_values=["n/a"])
    with pytest.raises(InputError, match=r"^attribute 'a': ") as refused:
        # a row without any value would be nobody
        shoal.publish(pl.DataFrame({"a": cells, "b": ["y"] * len(cells)}), policy)
    assert says in str(refused.value)


@pytest.mark.parametrize(("texts", "shown"), [(["n/a", ""], "*"), (["n/a", "n/a"], "n/a")])
def test_a_class_that_mixes_texts_for_no_value_shows_the_mark(texts, shown):
    frame = pl.DataFrame({"q": ["a", "b"] * 4 + texts * 2, "s": ["x", "y"] * 6})
    columns = {"q": {"role": "quasi", "hierarchy": {"tree": {"X": ["a", "b"]}}}, "s": "sensitive"}
    asked = content_of(columns, 4, missing_values=["", "n/a"], render={"order": "input"})
    for method in ("full-domain", "mondrian"):
        release = shoal.publish(frame, asked | {"method": {"name": method}})
        assert release.data["q"].cast(pl.String).to_list()[-4:] == [shown] * 4


@pytest.mark.parametrize("render", ["range", "mean", "median"])
@pytest.mark.parametrize(
    ("sign", "cell", "is_value"),
    [("-9", "-9.00", True), ("-9", "-9.0", False), ("-9.0", "-9", False), ("007", "007", False)],
)
def test_a_file_with_types_reads_as_no_value_what_its_text_does(
    tmp_path, render, sign, cell, is_value
):
    number = {"type": "number", "domain": [-9, 50]}
    known = {
        "age": {"role": "quasi", "render": render, **number},
        "pay": {"role": "plain", **number},
    }
    asked = content_of(known | {"sex": "quasi"}, 4, missing_values=["", sign])
    policy = shoal.Policy.from_dict(asked)
    cells = [*map(str, range(20)), *[cell] * 4]
    pl.DataFrame({"age": cells, "pay": cells, "sex": ["f"] * 24}).write_csv(tmp_path / "in.csv")
    for name in ("o.csv", "o.parquet", "o.jsonl"):
        shoal.publish_file(tmp_path / "in.csv", policy, tmp_path / name)
        checks = shoal.verify(tmp_path / name, policy=policy, original=tmp_path / "in.csv")
        assert all(check.ok is not False for check in checks)
        read = shoal.read_release(tmp_path / name, numbers="mid").data
        assert read.null_count().row(0) == (*[0 if is_value else 4] * 2, 0)
