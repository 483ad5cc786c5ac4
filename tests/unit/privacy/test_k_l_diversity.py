"""(k,l)-diversity, as we read it."""

from hypothesis import given
from hypothesis import strategies as st

import naive
import published
from shoal.data.classes import Classes
from shoal.privacy.k_l_diversity import KLDiversity


@given(published.classes(names=("s", "u")), st.integers(2, 4), st.integers(1, 4))
def test_every_class_needs_k_people_and_l_values_of_each_attribute(classes, k, least):
    promise = KLDiversity(("s", "u"), k, least)
    labels, subjects, values = published.plain(classes)
    measured, holds = promise.judge(classes)
    for which in range(classes.count):
        fewest = naive.fewest_distinct(
            labels, subjects, [values, published.plain(classes, "u")[2]], which
        )
        assert measured[which] == fewest
        assert holds[which] == (fewest >= least and naive.k_measured(labels, subjects, which) >= k)


@given(published.classes())
def test_a_certificate_states_k_beside_l(classes):
    report = KLDiversity("s", 3, 2).report(classes)
    assert (report["k"], report["asked"]) == (3, 2)
    assert report["k_measured"] == min(Classes.people(classes).tolist())
