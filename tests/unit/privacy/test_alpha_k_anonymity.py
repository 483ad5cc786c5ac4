"""(alpha, k)-anonymity: how confidently a value can be guessed."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

import naive
import published
from shoal.errors import InputError
from shoal.privacy.alpha_k_anonymity import AlphaKAnonymity

ALPHAS = st.sampled_from([0.1, 0.2, 0.25, 0.3, 0.4, 0.5, 0.6, 0.75, 1.0])


@given(published.classes(distance="equal"), ALPHAS, st.integers(2, 4), st.sets(st.integers(0, 4)))
def test_asks_the_share_of_designated_values_and_k(classes, alpha, k, designated):
    promise = AlphaKAnonymity(
        "s", alpha, k, tuple(f"value {place}" for place in sorted(designated))
    )
    truth = published.plain(classes)
    wanted = designated or None
    share = [naive.largest_frequency(*truth, which, wanted) for which in range(classes.count)]
    people = [naive.k_measured(*truth[:2], which) for which in range(classes.count)]
    expected = [
        s is not None and s <= Fraction(str(alpha)) and size >= k
        for s, size in zip(share, people, strict=True)
    ]
    assert promise.holds(classes).tolist() == expected
    known = [float("nan") if s is None else float(s) for s in share]
    assert promise.measure(classes) == pytest.approx(known, nan_ok=True)


@pytest.mark.parametrize(("having", "holds"), [(3, True), (4, False)])
def test_a_share_of_exactly_alpha_holds_and_one_more_subject_fails(having, holds):
    classes = published.of_column([0] * having + [1] * (10 - having), labels=("a", "b"))
    assert AlphaKAnonymity("s", 0.3, 2, ("a",)).holds(classes)[0] == holds


def test_a_certificate_names_no_designated_value_and_states_k():
    classes = published.of_column([0, 1, 1], labels=("a", "b"))
    report = AlphaKAnonymity("s", 0.5, 4, ("a",)).report(classes)
    assert (report["k"], report["k_measured"], report["designated"], report["holds"]) == (
        4,
        3,
        1,
        False,
    )
    assert "a" not in report.values()


def test_values_of_a_column_without_labels_are_refused():
    with pytest.raises(InputError, match="can't be named"):
        AlphaKAnonymity("s", 0.5, 2, ("a",)).measure(published.of_column([0, 0]))


def test_an_attribute_without_a_name_is_refused():
    with pytest.raises(InputError):
        AlphaKAnonymity("", 0.5, 2)
