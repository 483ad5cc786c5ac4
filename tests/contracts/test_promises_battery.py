"""The same battery for every promise from the registry."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest

from shoal.policy import registry
from shoal.privacy.alpha_k_anonymity import AlphaKAnonymity
from shoal.privacy.beta_likeness import BetaLikeness
from shoal.privacy.class_sizes import AverageRisk, PopulationUniqueness, SampleUniqueness
from shoal.privacy.delta_disclosure import DeltaDisclosure
from shoal.privacy.holder_share import HolderShare
from shoal.privacy.k_anonymity import KAnonymity
from shoal.privacy.k_l_diversity import KLDiversity
from shoal.privacy.l_diversity import LDiversity
from shoal.privacy.p_sensitive_k_anonymity import PSensitiveKAnonymity
from shoal.privacy.population import DeltaPresence, KMap
from shoal.privacy.promise import Promise
from shoal.privacy.reidentification import GlobalRisk, IndividualRisk
from shoal.privacy.subject_share import SubjectShare
from shoal.privacy.t_closeness import TCloseness
from shoal.testing import check_promise
from thorough import examples

EXAMPLES = [
    HolderShare("ill", 0.7),
    KAnonymity(3),
    LDiversity("ill", 2),
    LDiversity("ill", 2, "entropy"),
    LDiversity("ill", 2, "recursive", 2.0),
    TCloseness(("ill",), 0.4),
    TCloseness(("ill", "where"), 0.5),
    TCloseness(("ill", "where"), 0.5, joint=True),
    AlphaKAnonymity("ill", 0.6, 2),
    PSensitiveKAnonymity(("ill",), 3, 2),
    KLDiversity(("ill",), 2, 2),
    BetaLikeness(("ill",), 1.5, "basic"),
    BetaLikeness(("ill",), 1.5),
    DeltaDisclosure(("ill",), 1.2),
    SubjectShare(0.4),
    KMap(5, "census"),
    DeltaPresence(0.8, "census", 0.2),
    AverageRisk(0.4),
    SampleUniqueness(0.3),
    IndividualRisk(0.3),
    GlobalRisk(0.2),
    GlobalRisk(0.3, households=True),
    PopulationUniqueness(0.3, 0.1),
    PopulationUniqueness(0.3, 0.1, "zayatz"),
]


@pytest.mark.parametrize("promise", EXAMPLES, ids=str)
def test_battery(promise):
    for seed in range(examples(1, 4)):
        check_promise(promise, seed)


def test_every_promise_has_an_example():
    assert {type(promise) for promise in EXAMPLES} == set(registry.models().values())


@dataclass(frozen=True)
class _Faulty(Promise):
    """At least two records in a class, as somebody would write it who forgot about people."""

    model: ClassVar[str] = "faulty"
    source: ClassVar[str] = "none"
    definition: ClassVar[str] = "Every class has at least two records."
    monotone: ClassVar[bool] = True
    higher_is_better: ClassVar[bool] = True
    attributes = ("ill",)

    @property
    def asked(self):
        return 2

    def judge(self, classes):
        return classes.sizes.astype(float), classes.sizes >= 2


class _CountsRows(_Faulty):
    pass


class _CountsOneToMany(_Faulty):
    def judge(self, classes):
        people = classes.people()
        return people.astype(float), people >= 1


class _SaysSoButIsNot(_Faulty):
    higher_is_better = False

    def judge(self, classes):
        people = classes.people()
        return people.astype(float), (people <= 2) & (people > 0)


class _Blabs(_Faulty):
    def judge(self, classes):
        people = classes.people()
        return people.astype(float), people >= 2

    def nearest(self, whole_table):
        column = whole_table.sensitive["ill"]
        return [f"not enough of {column.labels or column.hierarchy.labels}"]


class _KeepsEmptyClasses(_Faulty):
    def judge(self, classes):
        people = classes.people()
        return people.astype(float), people != 1


class _MeasuresAnother(_Faulty):
    def judge(self, classes):
        people = classes.people()
        return people.astype(float), people >= 2

    def measure(self, classes):
        return np.zeros(classes.count)


@pytest.mark.parametrize(
    ("faulty", "finding"),
    [
        (_CountsRows, "count people, not records"),
        (_CountsOneToMany, "holds, though 1"),
        (_SaysSoButIsNot, "a union of classes breaks it"),
        (_Blabs, "shows a sensitive value"),
        (_KeepsEmptyClasses, "without records holds"),
        (_MeasuresAnother, "report and worst disagree"),
    ],
)
def test_the_battery_finds_what_is_wrong(faulty, finding):
    with pytest.raises(AssertionError, match=finding):
        check_promise(faulty())
