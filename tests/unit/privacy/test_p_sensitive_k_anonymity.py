"""p-sensitive k-anonymity: several values of each attribute in every class."""

from hypothesis import given
from hypothesis import strategies as st

import naive
import published
from shoal.privacy.p_sensitive_k_anonymity import PSensitiveKAnonymity


@given(published.classes(names=("s", "u")), st.integers(1, 4), st.integers(2, 4))
def test_asks_p_values_of_each_attribute_and_k_subjects(classes, p, k):
    promise = PSensitiveKAnonymity(("s", "u"), p, k)
    fewest, expected = [], []
    for which in range(classes.count):
        found = [naive.pairs_in(*published.plain(classes, name), which) for name in ("s", "u")]
        fewest.append(min(len(naive.frequencies(pairs)) for pairs in found))
        people = naive.k_measured(*published.plain(classes)[:2], which)
        expected.append(fewest[-1] >= p and people >= k)
    assert promise.measure(classes).tolist() == fewest
    assert promise.holds(classes).tolist() == expected
