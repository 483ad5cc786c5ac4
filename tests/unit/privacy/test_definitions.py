"""What each promise measures in a class, and whether it holds there, by its definition."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import naive
import published
from shoal.data.classes import Classes
from shoal.errors import InputError
from shoal.privacy import promise as comparing
from shoal.privacy.alpha_k_anonymity import AlphaKAnonymity
from shoal.privacy.beta_likeness import BetaLikeness
from shoal.privacy.delta_disclosure import DeltaDisclosure
from shoal.privacy.k_anonymity import KAnonymity
from shoal.privacy.k_l_diversity import KLDiversity
from shoal.privacy.l_diversity import LDiversity
from shoal.privacy.p_sensitive_k_anonymity import PSensitiveKAnonymity
from shoal.privacy.promises import infeasible_promises
from shoal.privacy.subject_share import SubjectShare
from shoal.privacy.t_closeness import UNITS, TCloseness

BOTH = ("s", "u")
S, S_AND_U, LEAST = st.just("s"), st.just(BOTH), st.integers(1, 5)
SHARES = st.sampled_from([0.1, 0.2, 0.25, 0.3, 0.4, 0.5, 0.6, 0.75, 1.0])
LIMITS = st.sampled_from([0.0, 0.1, 0.125, 0.15, 0.2, 0.25, 0.3, 0.375, 0.4, 0.5, 0.6, 0.75, 1.0])
FACTORS = st.sampled_from([0.1, 0.25, 0.5, 0.7, 1.0, 1.5, 2.0, 3.0])
DESIGNATED = st.sets(st.integers(0, 4)).map(lambda at: tuple(f"value {i}" for i in sorted(at)))


def written(number: float) -> Fraction:
    """The number that its digits name, not the nearest one of a float."""
    return Fraction(str(number))


@dataclass(frozen=True)
class Truth:
    """One class by plain Python."""

    classes: Classes
    which: int

    @cached_property
    def rows(self) -> tuple:
        """Labels, people and values of the first attribute, and the number of the class."""
        return *published.plain(self.classes), self.which

    @property
    def people(self) -> int:
        labels, subjects, _, which = self.rows
        return naive.k_measured(labels, subjects, which)

    @property
    def counts(self) -> list[int]:
        """How many people have each value."""
        return list(naive.frequencies(naive.pairs_in(*self.rows)).values())

    @property
    def fewest_values(self) -> int:
        """Different values of the attribute that has the fewest."""
        labels, subjects, values, which = self.rows
        return naive.fewest_distinct(
            labels, subjects, [values, published.plain(self.classes, "u")[2]], which
        )

    @property
    def largest_owner(self) -> Fraction | None:
        labels, subjects, _, which = self.rows
        return naive.largest_owner(labels, subjects, which)

    def largest_share(self, designated: tuple[str, ...]) -> Fraction | None:
        wanted = {int(label.removeprefix("value ")) for label in designated}
        return naive.largest_frequency(*self.rows, wanted or None)

    def largest_recursive(self, c: float) -> int:
        kept = (l for l in range(1, 8) if naive.is_recursive_diverse(self.counts, written(c), l))
        return max(kept, default=0)

    def distance(self) -> Fraction | None:
        """From the table, by the cheapest transport."""
        column = self.classes.sensitive["s"]
        labels, subjects, values, which = self.rows
        ground = naive.ground_of(column, labels)
        return naive.t_measured(labels, subjects, values, column.values, ground, which)

    def joint_distance(self) -> Fraction | None:
        """From the table, by the cheapest transport between combinations of values."""
        columns = [self.classes.sensitive[name] for name in BOTH]
        labels, subjects, _, which = self.rows
        grounds = [naive.ground_of(column, labels, in_halves=True) for column in columns]
        between = naive.joint_ground(grounds, UNITS)
        shown = list(zip(*(column.codes.tolist() for column in columns), strict=True))
        known = sorted({pair for pair, label in zip(shown, labels, strict=True) if label >= 0})
        ground = [[between(one, other) for other in known] for one in known]
        values = [known.index(pair) if pair in known else -1 for pair in shown]
        return naive.t_measured(labels, subjects, values, len(known), ground, which)


@dataclass(frozen=True)
class Definition:
    """Promises of one kind; what they measure in a class, None for nothing; whether they hold in
    one of somebody, given what they measure there.
    """

    promises: st.SearchStrategy[Any]
    measured: Callable[[Any, Truth], float | Fraction | None]
    holds: Callable[[Any, Truth, Any], bool]
    distance: str | None = None
    records: int = 24


def closeness(distance: str) -> Definition:
    return Definition(
        st.builds(TCloseness, S, LIMITS),
        lambda promise, of: of.distance(),
        lambda promise, of, distance: distance <= written(promise.t),
        distance,
        records=14,
    )


DEFINITIONS = {
    "k-anonymity": Definition(
        st.builds(KAnonymity, st.integers(2, 5)),
        lambda promise, of: of.people,
        lambda promise, of, people: people >= promise.k,
    ),
    "l-diversity, distinct": Definition(
        st.builds(LDiversity, S, LEAST),
        lambda promise, of: len(of.counts),
        lambda promise, of, values: values >= promise.l,
    ),
    "l-diversity, entropy": Definition(
        st.builds(LDiversity, S, LEAST, st.just("entropy")),
        lambda promise, of: naive.effective_values(of.counts),
        lambda promise, of, _: naive.is_entropy_diverse(of.counts, promise.l),
    ),
    "l-diversity, recursive": Definition(
        st.builds(LDiversity, S, LEAST, st.just("recursive"), FACTORS),
        lambda promise, of: of.largest_recursive(promise.c),
        lambda promise, of, _: naive.is_recursive_diverse(of.counts, written(promise.c), promise.l),
    ),
    "(k,l)-diversity": Definition(
        st.builds(KLDiversity, S_AND_U, st.integers(2, 4), LEAST),
        lambda promise, of: of.fewest_values,
        lambda promise, of, values: values >= promise.l and of.people >= promise.k,
    ),
    "p-sensitive k-anonymity": Definition(
        st.builds(PSensitiveKAnonymity, S_AND_U, LEAST, st.integers(2, 4)),
        lambda promise, of: of.fewest_values,
        lambda promise, of, values: values >= promise.p and of.people >= promise.k,
    ),
    "(alpha, k)-anonymity": Definition(
        st.builds(AlphaKAnonymity, S, SHARES, st.integers(2, 4), DESIGNATED),
        lambda promise, of: of.largest_share(promise.values),
        lambda promise, of, share: share <= written(promise.alpha) and of.people >= promise.k,
        distance="equal",
    ),
    "subject share": Definition(
        st.builds(SubjectShare, SHARES),
        lambda promise, of: of.largest_owner,
        lambda promise, of, share: share <= written(promise.share),
    ),
    "basic beta-likeness": Definition(
        st.builds(BetaLikeness, S, FACTORS, st.just("basic")),
        lambda promise, of: naive.greatest_gain(*of.rows) if of.people else None,
        lambda promise, of, gain: gain <= written(promise.beta),
    ),
    "enhanced beta-likeness": Definition(
        st.builds(BetaLikeness, S, FACTORS),
        lambda promise, of: naive.stretched_gain(*of.rows, promise.beta) if of.people else None,
        lambda promise, of, _: naive.is_enhanced_beta_like(*of.rows, written(promise.beta)),
    ),
    "delta-disclosure": Definition(
        st.builds(DeltaDisclosure, S, FACTORS),
        lambda promise, of: naive.disclosure(*of.rows) if of.people else None,
        lambda promise, of, apart: apart < promise.delta,
    ),
    **{f"t-closeness, {kind}": closeness(kind) for kind in published.DISTANCES},
    "t-closeness of combinations": Definition(
        st.builds(TCloseness, S_AND_U, LIMITS, joint=st.just(True)),
        lambda promise, of: of.joint_distance(),
        lambda promise, of, distance: distance <= written(promise.t),
        records=10,
    ),
}


@pytest.mark.parametrize("room", [comparing.ROOM, 1], ids=["64 bits", "beyond 64 bits"])
@pytest.mark.parametrize("defined", DEFINITIONS.values(), ids=DEFINITIONS)
@given(data=st.data())
def test_a_class_measures_and_keeps_what_the_definition_says(defined, room, data):
    """Compared exactly, also where whole numbers outgrow 64 bits."""
    drawn = published.classes(BOTH, max_records=defined.records, distance=defined.distance)
    classes, promise = data.draw(drawn), data.draw(defined.promises)
    truths = [Truth(classes, which) for which in range(classes.count)]
    measured = [defined.measured(promise, of) for of in truths]
    kept = [
        of.people > 0 and defined.holds(promise, of, found)
        for of, found in zip(truths, measured, strict=True)
    ]
    numbers = [math.nan if found is None else float(found) for found in measured]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(comparing, "ROOM", room)
        assert promise.measure(classes) == pytest.approx(numbers, nan_ok=True)
        assert promise.holds(classes).tolist() == kept


@pytest.mark.parametrize("model", [TCloseness, BetaLikeness, DeltaDisclosure])
@given(classes=published.classes(BOTH), limit=st.sampled_from([0.1, 0.25, 0.5, 1.0]))
def test_of_several_attributes_the_worst_counts(model, classes, limit):
    both, one, other = (model(names, limit) for names in (BOTH, "s", "u"))
    worst = np.maximum(one.measure(classes), other.measure(classes))
    assert both.measure(classes) == pytest.approx(worst, nan_ok=True)
    assert (both.holds(classes) == one.holds(classes) & other.holds(classes)).all()


@given(published.classes())
def test_a_certificate_states_k_beside_l(classes):
    report = KLDiversity("s", 3, 2).report(classes)
    assert (report["k"], report["asked"]) == (3, 2)
    assert report["k_measured"] == min(Classes.people(classes).tolist())


@pytest.mark.parametrize(("having", "holds"), [(3, True), (4, False)])
def test_a_share_of_exactly_alpha_holds_and_one_more_subject_fails(having, holds):
    classes = published.of_column([0] * having + [1] * (10 - having), labels=("a", "b"))
    assert AlphaKAnonymity("s", 0.3, 2, ("a",)).holds(classes)[0] == holds


def test_a_certificate_names_no_designated_value_and_states_k():
    classes = published.of_column([0, 1, 1], labels=("a", "b"))
    report = AlphaKAnonymity("s", 0.5, 4, ("a",)).report(classes)
    stated = {name: report[name] for name in ("k", "k_measured", "designated", "holds")}
    assert stated == {"k": 4, "k_measured": 3, "designated": 1, "holds": False}
    assert "a" not in report.values()


def test_values_of_a_column_without_labels_are_refused():
    with pytest.raises(InputError, match="can't be named"):
        AlphaKAnonymity("s", 0.5, 2, ("a",)).measure(published.of_column([0, 0]))


def test_an_attribute_without_a_name_is_refused():
    with pytest.raises(InputError):
        AlphaKAnonymity("", 0.5, 2)


@given(published.classes(), SHARES)
def test_merging_two_classes_that_hold_holds_also_where_they_share_people(classes, share):
    promise = SubjectShare(share)
    holds = promise.holds(classes)
    merged = replace(classes, labels=np.where(classes.labels == 1, 0, classes.labels))
    if classes.count > 1 and holds[:2].all():
        assert promise.holds(merged)[0]


def test_a_share_that_the_whole_table_breaks_is_infeasible_and_the_nearest_is_named():
    table = Classes(np.zeros(4, np.int32), 1, np.array([0, 0, 0, 1], np.int32))
    assert infeasible_promises([SubjectShare(0.5)], table) == [
        "promise 'subject-share': share = 0.5 asked, and somebody owns more of the whole table; the"
        " nearest that holds is share = 0.75"
    ]
    assert infeasible_promises([SubjectShare(0.75)], table) == []
