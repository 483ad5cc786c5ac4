"""Promises bound to a table, and what can't be promised at all."""

import math
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import naive
import published
from shoal.data.classes import Classes, SensitiveColumn
from shoal.errors import InputError
from shoal.policy import registry
from shoal.privacy.alpha_k_anonymity import AlphaKAnonymity
from shoal.privacy.beta_likeness import BetaLikeness
from shoal.privacy.class_sizes import AverageRisk, PopulationUniqueness, SampleUniqueness
from shoal.privacy.delta_disclosure import DeltaDisclosure
from shoal.privacy.k_anonymity import KAnonymity
from shoal.privacy.k_l_diversity import KLDiversity
from shoal.privacy.l_diversity import LDiversity
from shoal.privacy.p_sensitive_k_anonymity import PSensitiveKAnonymity
from shoal.privacy.population import DeltaPresence, KMap
from shoal.privacy.promise import Promise
from shoal.privacy.promises import BoundPromises, infeasible_promises
from shoal.privacy.subject_share import SubjectShare
from shoal.privacy.t_closeness import TCloseness

PROMISES = [
    KAnonymity(2),
    KAnonymity(3, ("age",)),
    LDiversity("s", 2),
    LDiversity("s", 2, "entropy"),
    LDiversity("s", 2, "recursive", 2.0),
    TCloseness("s", 0.3),
    AlphaKAnonymity("s", 0.5, 2),
    PSensitiveKAnonymity("s", 2, 2),
    KLDiversity("s", 2, 2),
    BetaLikeness("s", 0.5, "basic"),
    BetaLikeness("s", 1.0),
    DeltaDisclosure("s", 1.2),
]


def table(codes, subjects=None):
    labels = tuple(f"secret {place}" for place in range(max(codes) + 1))
    return published.of_column(codes, None, subjects, labels=labels)


@given(published.classes(), st.sets(st.integers(0, len(PROMISES) - 1)), st.data())
def test_hold_is_what_every_promise_says_of_a_full_labelling(classes, chosen, data):
    models = [PROMISES[i] for i in sorted(chosen)]
    labels = np.maximum(classes.labels, 0)
    labelled = published.relabelled(classes, labels, classes.count)
    template = published.in_one_class(labelled)
    expected = np.bincount(labels, minlength=classes.count) > 0
    for model in models:
        expected &= model.holds(labelled)
    assert (
        BoundPromises(models, template).holds(labels, classes.count).tolist() == expected.tolist()
    )


@pytest.mark.parametrize("joint", [False, True])
@given(published.classes(("s", "u")), st.sampled_from([0.0, 0.1, 0.15, 0.2, 0.25, 0.3, 0.5, 0.75]))
def test_a_part_of_the_records_is_compared_with_the_whole_table(joint, classes, t):
    # where nobody is left out, the whole table is what it is compared with anyway
    labels = np.where(classes.labels < 0, classes.count, classes.labels)
    everyone = published.relabelled(classes, labels, classes.count + 1)
    promise = TCloseness(("s", "u") if joint else "s", t, joint)
    bound = BoundPromises([promise], published.in_one_class(everyone))
    expected = promise.holds(everyone)[: classes.count]
    assert bound.holds(classes.labels, classes.count).tolist() == expected.tolist()


@given(published.classes(), st.lists(st.sampled_from(PROMISES), max_size=3))
def test_no_class_that_holds_has_fewer_than_k_subjects(classes, models):
    bound = BoundPromises(models, classes)
    labels, subjects, _ = published.plain(classes)
    for which in np.flatnonzero(bound.holds(classes.labels, classes.count)):
        assert naive.k_measured(labels, subjects, which) >= bound.k


@pytest.mark.parametrize(
    ("models", "k"),
    [
        ([], 1),
        ([KAnonymity(4), KAnonymity(7)], 7),
        ([KAnonymity(2), LDiversity("s", 3)], 3),
        ([LDiversity("s", 3, "recursive", 0.5)], 5),
        ([AlphaKAnonymity("s", 0.15, 2)], 7),
        ([AlphaKAnonymity("s", 0.15, 2, ("secret 0",))], 2),
        ([PSensitiveKAnonymity("s", 4, 2)], 4),
        ([KLDiversity("s", 2, 5)], 5),
        ([BetaLikeness("s", 0.5), DeltaDisclosure("s", 0.5)], 1),
        ([TCloseness("s", 0.1)], 1),
    ],
)
def test_k_is_the_largest_size_that_any_promise_implies(models, k):
    assert BoundPromises(models, table([0, 1, 2])).k == k


def test_values_of_one_subject_imply_no_size():
    assert BoundPromises([LDiversity("s", 3)], table([0, 1, 2], subjects=[0, 0, 0])).k == 1


@pytest.mark.parametrize(
    ("models", "subjects", "beyond"),
    [
        ([KAnonymity(2)], None, False),
        ([KAnonymity(2)], [4, 5, 6], False),
        ([KAnonymity(2)], [4, 4, 6], True),
        ([KAnonymity(2), TCloseness("s", 0.2)], None, True),
        ([], None, False),
    ],
)
def test_sizes_suffice_only_for_k_and_only_where_a_record_is_a_subject(models, subjects, beyond):
    assert BoundPromises(models, table([0, 1, 1], subjects)).needs_more_than_k is beyond


@given(published.classes(), st.data())
def test_promises_restricted_to_some_records_take_these_for_the_whole_table(classes, data):
    n = len(classes.labels)
    kept = np.array(data.draw(st.lists(st.booleans(), min_size=n, max_size=n)), dtype=bool)
    template = published.relabelled(classes, np.zeros(n, np.int32), 1)
    labels = np.where(kept, classes.labels, -1)
    some = published.relabelled(classes, labels, classes.count)
    everybody = published.in_one_class(classes, kept)
    for model in (TCloseness("s", 0.2), BetaLikeness("s", 0.5), KAnonymity(2)):
        bound = BoundPromises([model], template).restricted_to(kept)
        expected = model.against(everybody)(some) & (some.sizes > 0)
        assert bound.holds(labels, classes.count).tolist() == expected.tolist()


def test_a_promise_about_the_release_is_asked_of_all_classes_together():
    models = [KAnonymity(2), SampleUniqueness(0.2), AverageRisk(0.5)]
    bound = BoundPromises(models, table([0, 1, 1, 0, 1, 2]))
    assert bound.about_release
    assert bound.release_checks_are_monotone
    alone_in_six = np.array([0, 0, 0, 1, 1, 2])
    assert bound.release_holds(alone_in_six, 3)
    assert bound.holds(alone_in_six, 3).tolist() == [True, True, False]
    assert not bound.release_holds(np.array([0, 0, 0, 1, 2, 3]), 4)  # two of six are alone
    assert not bound.release_holds(np.array([0, 0, -1, -1, -1, 1]), 2)  # one of three


def test_only_what_is_about_the_release_is():
    bound = BoundPromises([KAnonymity(2), TCloseness("s", 0.1)], table([0, 1, 1]))
    assert not bound.about_release
    assert bound.relative
    assert bound.release_holds(np.array([0, 1, 2]), 3)
    assert not BoundPromises([KAnonymity(2), LDiversity("s", 2)], table([0, 1])).relative
    estimated = BoundPromises([PopulationUniqueness(0.1, 0.5, "snb")], table([0, 1]))
    assert estimated.about_release
    assert not estimated.release_checks_are_monotone


@pytest.mark.parametrize(
    ("models", "counted"),
    [
        ([], [((), 1)]),
        ([KAnonymity(3)], [((), 3)]),
        ([KAnonymity(3, ("age",)), KAnonymity(2, ("sex",))], [(("age",), 3), (("sex",), 2)]),
        ([KAnonymity(3, ("age",)), LDiversity("s", 2)], [(("age",), 3), ((), 2)]),
        ([LDiversity("s", 2), PSensitiveKAnonymity("s", 2, 4)], [((), 4)]),
    ],
)
def test_counts_of_people_are_listed_with_what_every_class_needs_last(models, counted):
    found = BoundPromises(models, table([0, 1, 2])).qids
    assert [(tuple(asked.attributes), asked.k) for asked in found] == counted


@pytest.mark.parametrize("subjects", [None, [0, 0, 1, 2, 2, 3]])
def test_what_methods_aim_at_is_the_table_that_the_promise_compares_with(subjects):
    bound = BoundPromises(
        [KAnonymity(2), TCloseness("s", 0.25)], table([0, 1, 1, 0, 0, 2], subjects)
    )
    (asked,) = bound.closeness
    assert (asked.column.name, asked.t) == ("s", 0.25)
    assert asked.frequencies.tolist() == ([3, 2, 1] if subjects is None else [2, 2, 1])


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        (KAnonymity(np.int64(3)), {"k": 3}),
        (LDiversity("s", np.int64(2), "recursive", np.int64(3)), {"l": 2, "c": 3.0}),
        (TCloseness("s", 1), {"t": 1.0}),
        (AlphaKAnonymity("s", 1, np.int64(2)), {"alpha": 1.0, "k": 2}),
        (PSensitiveKAnonymity("s", np.int64(3), np.int64(4)), {"p": 3, "k": 4}),
        (KLDiversity("s", np.int64(3), np.int64(2)), {"k": 3, "l": 2}),
        (BetaLikeness("s", 2), {"beta": 2.0}),
        (DeltaDisclosure("s", 2), {"delta": 2.0}),
        (KMap(np.int64(5), "people"), {"k": 5}),
        (DeltaPresence(1, "people", 0), {"delta_max": 1.0, "delta_min": 0.0}),
        (AverageRisk(1), {"threshold": 1.0}),
        (SampleUniqueness(0), {"threshold": 0.0}),
        (PopulationUniqueness(0, 1), {"threshold": 0.0, "fraction": 1.0}),
        (SubjectShare(1), {"share": 1.0}),
    ],
    ids=lambda case: getattr(case, "model", ""),
)
def test_numbers_are_kept_as_a_certificate_writes_them(given, kept):
    """Whole numbers as int, others as float, whatever kind of number was given."""
    found = {name: getattr(given, name) for name in kept}
    assert repr(found) == repr(kept)


NO_NUMBERS = [True, "1", None, math.nan]
SENSELESS = [
    (KAnonymity, {"k": [1, 0, -3, 2.0]}),
    (partial(LDiversity, "s"), {"l": [0, 3.0]}),
    (partial(LDiversity, "s", l=2, kind="recursive"), {"c": [0.0, math.inf]}),
    (partial(TCloseness, "s"), {"t": [-0.1, 1.5, math.inf]}),
    (partial(AlphaKAnonymity, "s", alpha=0.5, k=2), {"alpha": [0.0, 1.1], "k": [1, 2.0]}),
    (partial(PSensitiveKAnonymity, "s", p=2, k=2), {"p": [0, 2.0], "k": [1, 3.0]}),
    (partial(KLDiversity, "s", k=2, l=2), {"k": [1, 2.0], "l": [0, 2.0]}),
    (partial(BetaLikeness, "s"), {"beta": [0, -1.0]}),
    (partial(DeltaDisclosure, "s"), {"delta": [0, -1.0]}),
    (SubjectShare, {"share": [0, 1.5]}),
]


@pytest.mark.parametrize(
    ("make", "name", "number"),
    [
        (make, name, number)
        for make, asked in SENSELESS
        for name, numbers in asked.items()
        for number in [*numbers, *NO_NUMBERS]
        if not (name == "c" and number is None)  # which asks another thing
    ],
)
def test_a_promise_about_no_such_number_is_refused(make, name, number):
    with pytest.raises(InputError, match=f"{name} must be a (whole )?number"):
        make(**{name: number})


@pytest.mark.parametrize(
    "make", [partial(TCloseness, t=0.2), partial(PSensitiveKAnonymity, p=2, k=2)]
)
@pytest.mark.parametrize("attributes", [(), ("s", "s"), (1,), 7, [""]])
def test_attributes_are_names_each_once(make, attributes):
    with pytest.raises(InputError, match="attributes"):
        make(attributes)


def test_one_attribute_may_stand_without_a_list():
    of_all = (TCloseness("s", 0.1), BetaLikeness("s", 1.0), KLDiversity("s", 2, 2))
    for model in (*of_all, KAnonymity(3, "s"), KAnonymity(3, ["s"])):
        assert model.attributes == ("s",)


def test_a_plain_plug_in_is_asked_and_one_that_merging_breaks_is_not():
    @dataclass(frozen=True)
    class Stranger(Promise):
        model: ClassVar[str] = "stranger"
        source: ClassVar[str] = "nobody"
        definition: ClassVar[str] = "Never holds."
        higher_is_better: ClassVar[bool] = True
        attributes: ClassVar[tuple[str, ...]] = ()
        asked: ClassVar[float] = 1
        monotone: bool = True

        def judge(self, classes):
            return np.zeros(classes.count), np.zeros(classes.count, dtype=bool)

    labels = np.zeros(2, dtype=np.int32)
    assert not BoundPromises([Stranger()], table([0, 1])).holds(labels, 1)[0]
    assert BoundPromises([Stranger(monotone=False)], table([0, 1])).holds(labels, 1)[0]
    assert infeasible_promises([Stranger()], table([0, 1])) != []


@pytest.mark.parametrize(
    ("model", "nearest"),
    [
        (KAnonymity(7), KAnonymity(6)),
        (LDiversity("s", 4), LDiversity("s", 3)),
        (LDiversity("s", 3, "entropy"), LDiversity("s", 2, "entropy")),
        (LDiversity("s", 3, "recursive", 2.0), LDiversity("s", 2, "recursive", 2.0)),
        (AlphaKAnonymity("s", 0.4, 2), AlphaKAnonymity("s", 0.5, 2)),
        (AlphaKAnonymity("s", 0.4, 9, ("secret 1",)), AlphaKAnonymity("s", 0.4, 6, ("secret 1",))),
        (PSensitiveKAnonymity("s", 4, 2), PSensitiveKAnonymity("s", 3, 2)),
        (KLDiversity("s", 2, 4), KLDiversity("s", 2, 3)),
        (KLDiversity("s", 9, 2), KLDiversity("s", 6, 2)),
    ],
)
def test_an_infeasible_promise_is_reported_with_the_nearest_that_holds(model, nearest):
    whole = table([0, 0, 0, 1, 1, 2])
    findings = infeasible_promises([model], whole)
    assert len(findings) == 1
    assert "nearest that holds" in findings[0]
    assert infeasible_promises([nearest], whole) == []


@pytest.mark.parametrize(
    "nearest",
    [
        lambda people: KAnonymity(5).nearest(Classes(np.zeros(people, dtype=np.int32), 1)),
        KMap(5, "p").nearest_among,
    ],
    ids=["in the table", "in the population"],
)
@pytest.mark.parametrize(
    ("people", "named"), [(9, None), (5, None), (4, "k = 4"), (2, "k = 2"), (1, "no k")]
)
def test_exactly_k_people_are_enough_and_of_fewer_the_nearest_k_is_named(nearest, people, named):
    findings = [finding.rsplit(";", 1) for finding in nearest(people)]
    assert len(findings) == (named is not None)
    assert all("k = 5 asked" in asked and named in remedy for asked, remedy in findings)


@given(published.classes(distance="equal"), st.sampled_from([0.1, 0.2, 0.3]))
def test_the_share_named_as_nearest_holds(classes, alpha):
    for finding in infeasible_promises([AlphaKAnonymity("s", alpha, 2)], classes):
        if "alpha = " in finding.split(";")[-1]:
            named = float(finding.rsplit("alpha = ", 1)[1])
            findings = infeasible_promises([AlphaKAnonymity("s", named, 2)], classes)
            assert not any("alpha = " in other for other in findings)


def test_findings_and_reports_name_no_value():
    whole = table([0, 0, 1])
    models = [
        *PROMISES,
        KAnonymity(9),
        LDiversity("s", 9),
        AlphaKAnonymity("s", 0.1, 9, ("secret 1",)),
    ]
    spoken = str(infeasible_promises(models, whole)) + str(
        [model.report(whole) for model in models]
    )
    assert "secret" not in spoken


def test_every_promise_says_what_it_is():
    for name, model in registry.models().items():
        assert model.model == name
        assert model.definition.endswith(".")
        assert model.monotone == (name != "population-uniqueness")
        assert model.source


@pytest.mark.parametrize("make", [partial(TCloseness, t=0.9), partial(BetaLikeness, beta=9.0)])
@pytest.mark.parametrize(
    ("labels", "is_said"), [([0, 0, 1, 1], True), ([0, 0, 1, -1], False)], ids=["kept", "withheld"]
)
def test_a_missing_value_that_is_compared_with_the_table_is_said(make, labels, is_said):
    classes = published.of_column([0, 1, 0, 2], labels, missing=1)
    promise = make(("s",))
    whole = promise.report(classes)
    parts = [promise.part(part, classes) for part in (classes, classes)]
    assert whole.get("measured_with_missing", False) is is_said
    assert promise.total(parts).get("measured_with_missing", False) is is_said


@given(st.data())
def test_what_is_measured_without_missing_values_is_as_counted_by_hand(data):
    labels = data.draw(st.lists(st.integers(0, 2), min_size=4, max_size=20))
    labels = [sorted({*labels}).index(one) for one in labels]
    cells = st.lists(st.integers(0, 3), min_size=len(labels), max_size=len(labels))
    columns = [data.draw(cells), data.draw(cells)]
    sensitive = {
        name: SensitiveColumn(name, np.array(codes, dtype=np.int32), 4, missing=1)
        for name, codes in zip("ab", columns, strict=True)
    }
    classes = Classes(np.array(labels, dtype=np.int32), max(labels) + 1, None, sensitive)

    def values_of(column):
        """Those of each class that are no missing ones."""
        shown = [*zip(labels, column, strict=True)]
        return [[one for own, one in shown if own == label and one < 3] for label in {*labels}]

    of_one, of_other = ([len({*own}) for own in values_of(column)] for column in columns)
    shares = [
        max(map(own.count, own), default=0) / max(len(own), 1) for own in values_of(columns[0])
    ]
    for promise, expected, better in (
        (PSensitiveKAnonymity(("a", "b"), 2, 2), min(*of_one, *of_other), min),
        (LDiversity("a", 2), min(of_one), min),
        (AlphaKAnonymity("a", 0.5, 2), max(shares), max),
    ):
        report = promise.report(classes)
        stated = report.get("measured_without_missing", report["measured"])
        assert stated == better(expected, report["measured"])
